//! Tests of the store on disks that lose power, fill up, or return damaged data.

mod damage;
mod disk;
mod folder;
mod full;
mod growth;
mod power;

use std::collections::BTreeMap;

use jiff::Timestamp;
use redb::Builder;

use self::disk::Disk;
use super::{Accounts, OpenError, Store, initialize};
use crate::cloud::Batch;
use crate::state::{Account, Place, Record, RecordKey, RecordKind, Task, TaskStatus};

/// Returns a disk that holds an empty database.
fn formatted() -> Disk {
    let disk = Disk::default();
    let database = Builder::new().create_with_backend(disk.clone()).unwrap();
    initialize(&database).unwrap();
    database.close().unwrap();
    disk
}

/// Opens the database on a disk in the way that the real one is opened.
fn open(disk: &Disk) -> Result<(Store, Accounts), OpenError> {
    let disk = disk.clone();
    Store::open_with(Box::new(move || {
        Builder::new().set_check_integrity_on_open(true).create_with_backend(disk.clone())
    }))
}

/// Returns the changes of one request: it adds its task and one more record, removes another, and
/// sometimes makes the file grow. It changes two accounts.
fn batch(number: u64) -> Batch {
    let text = |length: usize| format!("{number}-").repeat(length);
    let size = if number % 5 == 3 { 9_000 } else { 40 };
    let key = |kind, id: u64| RecordKey { kind, id: format!("id-{id}") };
    let task = Task {
        listeners: Vec::new(),
        load_balancers: vec![text(2)],
        began: Timestamp::from_second(1_760_000_000).unwrap(),
        status: TaskStatus::Done,
    };
    let changes = BTreeMap::from([
        (key(RecordKind::Task, number), Some(Record::Task(task))),
        (key(RecordKind::ClientToken, number % 4), Some(Record::ClientToken(vec![text(size)]))),
        (key(RecordKind::Task, number.saturating_sub(3)), None),
    ]);
    let other = BTreeMap::from([(
        key(RecordKind::ClientToken, 0),
        Some(Record::ClientToken(vec![text(3)])),
    )]);
    BTreeMap::from([(place("one"), changes), (place("two"), other)])
}

fn place(account: &str) -> Place {
    Place { account: account.to_owned(), region: "ap-test".to_owned() }
}

/// Returns the accounts with a batch applied.
fn after(accounts: &Accounts, batch: &Batch) -> Accounts {
    let mut accounts = accounts.clone();
    for (place, changes) in batch {
        let account = accounts.entry(place.clone()).or_default();
        for (key, record) in changes {
            account.apply(key.clone(), record.clone());
        }
    }
    accounts.retain(|_, account| *account != Account::EMPTY);
    accounts
}
