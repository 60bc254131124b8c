//! Deal names: second names of tasks, which consist of digits.

use jiff::Timestamp;

use super::time;
use crate::state::{Task, Transaction};

/// The upper bound of the number after the date of a deal name, which has 15 digits.
const DIGITS: u128 = 1_000_000_000_000_000;

/// Returns the deal name of the request that the transaction belongs to.
pub(super) fn name(transaction: &Transaction<'_>) -> String {
    name_of(transaction.context.request_id, transaction.context.now)
}

/// Returns the task with this deal name.
pub(super) fn task<'t>(transaction: &'t Transaction<'_>, name: &str) -> Option<&'t Task> {
    let mut tasks = transaction.tasks().iter();
    let found = tasks.find(|(request, task)| name_of(request, task.began) == name);
    found.map(|(_, task)| task)
}

/// Returns the date, and digits that are derived from the request's id, so that a task need not
/// store its deal name.
fn name_of(request: &str, began: Timestamp) -> String {
    let hexadecimal: String = request.chars().filter(char::is_ascii_hexdigit).collect();
    let number = u128::from_str_radix(&hexadecimal, 16).unwrap_or_default() % DIGITS;
    format!("{}{number:015}", time::date(began))
}
