//! Tests that the disk may run full at any operation: the commit fails and changes nothing, and
//! later commits succeed when there is room again.

use super::disk::Disk;
use super::{after, batch, formatted, open};
use crate::cloud::Storage as _;

const COMMITS: u64 = 6;

#[test]
fn a_commit_that_fails_at_any_operation_is_taken_back_by_the_next() {
    let start = formatted().file();
    let mut failures = 0;
    for room in 0.. {
        let disk = Disk::holding(start.clone());
        let (store, mut accounts) = open(&disk).unwrap();
        disk.set_room(Some(room));
        let mut failed = false;
        for number in 0..COMMITS {
            let batch = batch(number);
            match store.commit(&batch) {
                Ok(()) => accounts = after(&accounts, &batch),
                Err(error) => {
                    assert!(disk.is_full(), "{error}");
                    // The disk is still full at the next commit, which fails too; then there is
                    // room again.
                    store.commit(&batch).unwrap_err();
                    disk.set_room(None);
                    failed = true;
                }
            }
        }
        disk.set_room(None);
        store.commit(&batch(COMMITS)).unwrap();
        accounts = after(&accounts, &batch(COMMITS));
        drop(store);
        let (_, found) = open(&disk).unwrap();
        assert!(found == accounts, "room for {room} operations: {found:?}");
        if !failed {
            break;
        }
        failures += 1;
    }
    assert!(failures > 20, "{failures}");
}

#[test]
fn a_disk_that_is_full_again_and_again_is_no_matter() {
    let disk = Disk::holding(formatted().file());
    let (store, mut accounts) = open(&disk).unwrap();
    let (mut failed, mut succeeded) = (0, 0);
    for number in 0..60 {
        let batch = batch(number);
        disk.set_room(Some(usize::try_from(number * 7 % 23).unwrap()));
        match store.commit(&batch) {
            Ok(()) => {
                accounts = after(&accounts, &batch);
                succeeded += 1;
            }
            Err(_) => failed += 1,
        }
    }
    disk.set_room(None);
    store.commit(&batch(99)).unwrap();
    accounts = after(&accounts, &batch(99));
    drop(store);
    assert!(open(&disk).unwrap().1 == accounts);
    assert!(failed > 10 && succeeded > 10, "{failed} and {succeeded}");
}
