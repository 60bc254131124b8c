//! Tests that the power may fail between any two operations and at any byte of one: acknowledged
//! commits survive, and an unacknowledged one survives as a whole or not at all.

use uturn_dice::Dice;

use super::disk::{Disk, Operation};
use super::{Accounts, after, batch, formatted, open};
use crate::cloud::Storage as _;

/// The number of commits.
const COMMITS: u64 = 5;
/// The number of orders in which unsynced operations are tried.
const ORDERS: usize = 6;

/// Commits that were made on a disk, and the disk's operations for them.
struct Run {
    /// The file before the first commit.
    start: Vec<u8>,
    log: Vec<Operation>,
    /// For each commit, the number of operations when it returned, and the accounts as stored after
    /// it.
    acknowledged: Vec<(usize, Accounts)>,
}

impl Run {
    fn record() -> Self {
        let disk = Disk::holding(formatted().file());
        let start = disk.file();
        let (store, mut accounts) = open(&disk).unwrap();
        let mut acknowledged = vec![(0, accounts.clone())];
        for number in 0..COMMITS {
            let batch = batch(number);
            store.commit(&batch).unwrap();
            accounts = after(&accounts, &batch);
            acknowledged.push((disk.operations(), accounts.clone()));
        }
        drop(store);
        Self { start, log: disk.log(), acknowledged }
    }

    /// Reopens a file that was left after this many operations, and checks its accounts. Returns
    /// the disk.
    fn check(&self, operations: usize, file: Vec<u8>) -> Disk {
        let disk = Disk::holding(file);
        let (_, found) =
            open(&disk).unwrap_or_else(|error| panic!("after {operations} operations: {error}"));
        self.check_accounts(operations, &found);
        disk
    }

    fn check_accounts(&self, operations: usize, found: &Accounts) {
        let last = self.acknowledged.iter().rposition(|(at, _)| *at <= operations).unwrap();
        let in_progress = self.acknowledged.get(last + 1);
        assert!(
            *found == self.acknowledged[last].1
                || in_progress.is_some_and(|(_, accounts)| found == accounts),
            "after {operations} operations: neither commit {last} nor the next: {found:?}"
        );
    }
}

/// Returns, for every number of operations, the file as of the last sync, and the operations since.
fn crashes(run: &Run) -> impl Iterator<Item = (usize, Vec<u8>, &[Operation])> {
    let mut synced = run.start.clone();
    let mut since = 0;
    (0..=run.log.len()).map(move |count| {
        if count > 0 && matches!(run.log[count - 1], Operation::Sync) {
            run.log[since..count].iter().for_each(|operation| operation.apply(&mut synced));
            since = count;
        }
        (count, synced.clone(), &run.log[since..count])
    })
}

#[test]
fn a_prefix_of_the_operations_opens_and_opens_again_when_that_is_cut_too() {
    let run = Run::record();
    let mut reopened = 0;
    for (count, synced, unsynced) in crashes(&run) {
        let mut file = synced;
        unsynced.iter().for_each(|operation| operation.apply(&mut file));
        let recovery = run.check(count, file.clone()).log();
        for operation in recovery {
            operation.apply(&mut file);
            run.check(count, file.clone());
            reopened += 1;
        }
    }
    assert!(reopened > run.log.len(), "{reopened}");
}

#[test]
fn what_was_not_synced_may_be_lost_or_reordered() {
    let run = Run::record();
    let mut dice = Dice::new(1);
    for (count, synced, unsynced) in crashes(&run) {
        run.check(count, synced.clone());
        for _ in 0..if unsynced.len() > 1 { ORDERS } else { 0 } {
            let mut file = synced.clone();
            let mut left: Vec<&Operation> = unsynced.iter().collect();
            for _ in 0..dice.below(unsynced.len() + 1) {
                let operation = left.swap_remove(dice.below(left.len()));
                cut(operation, dice.below(5_000)).apply(&mut file);
            }
            run.check(count, file);
        }
    }
}

#[test]
fn the_last_write_may_end_at_any_byte() {
    let run = Run::record();
    let mut cuts = 0;
    for (count, synced, unsynced) in crashes(&run) {
        let Some((Operation::Write { offset, bytes }, before)) = unsynced.split_last() else {
            continue;
        };
        let mut file = synced;
        before.iter().for_each(|operation| operation.apply(&mut file));
        if file.len() < offset + bytes.len() {
            file.resize(offset + bytes.len(), 0);
        }
        for (position, byte) in bytes.iter().enumerate() {
            // A cut behind a byte that does not change the file is the same as the previous cut.
            if file[offset + position] != *byte {
                file[offset + position] = *byte;
                // The head of the file determines which pages are valid. Other pages hold
                // repetitive text, so that some of their bytes are enough.
                if offset + position < 512 || position % 127 == 0 {
                    run.check(count, file.clone());
                    cuts += 1;
                }
            }
        }
    }
    assert!(cuts > 500, "{cuts}");
}

/// Returns a write of which only the first `length` bytes reach the file. Other operations are not
/// cut.
fn cut(operation: &Operation, length: usize) -> Operation {
    match operation {
        Operation::Write { offset, bytes } => {
            Operation::Write { offset: *offset, bytes: bytes[..bytes.len().min(length)].to_vec() }
        }
        other => other.clone(),
    }
}
