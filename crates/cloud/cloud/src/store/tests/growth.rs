//! Tests that the file does not grow with the number of commits.

use super::{batch, formatted, open};
use crate::cloud::Storage as _;

#[test]
fn pages_of_old_records_are_used_again() {
    let disk = formatted();
    let (store, _) = open(&disk).unwrap();
    let write = |numbers: std::ops::Range<u64>| {
        numbers.for_each(|number| store.commit(&batch(number)).unwrap());
        disk.file().len()
    };
    let early = write(0..50);
    let late = write(50..1_000);
    assert!(late <= early, "{early} bytes after 50 commits, {late} after 1,000");
}
