//! Deal names: the second name of a task, made of digits.

use jiff::Timestamp;

use super::time;
use crate::state::{Task, Transaction};

/// The digits of a deal name behind its date.
const DIGITS: u128 = 1_000_000_000_000_000;

/// The deal name of the request that the transaction belongs to.
pub(super) fn name(transaction: &Transaction<'_>) -> String {
    name_of(transaction.context.request_id, transaction.context.now)
}

/// The task with this deal name.
pub(super) fn task<'t>(transaction: &'t Transaction<'_>, name: &str) -> Option<&'t Task> {
    let mut tasks = transaction.tasks().iter();
    let found = tasks.find(|(request, task)| name_of(request, task.began) == name);
    found.map(|(_, task)| task)
}

/// The date, and digits that the request's id determines: a task need not keep its deal name.
fn name_of(request: &str, began: Timestamp) -> String {
    let hexadecimal: String = request.chars().filter(char::is_ascii_hexdigit).collect();
    let number = u128::from_str_radix(&hexadecimal, 16).unwrap_or_default() % DIGITS;
    format!("{}{number:015}", time::date(began))
}
