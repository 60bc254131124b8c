//! Tests of files that were cut, changed or written by others: opening fails, or finds all records.

use redb::{Builder, TableDefinition};
use uturn_dice::Dice;

use super::disk::Disk;
use super::{Accounts, after, batch, formatted, open};
use crate::cloud::Storage as _;
use crate::store::{FORM, FORM_KEY, OpenError};

/// Returns a file that was closed in order, and its accounts.
fn written() -> (Vec<u8>, Accounts) {
    let disk = formatted();
    let (store, mut accounts) = open(&disk).unwrap();
    for number in 0..8 {
        let batch = batch(number);
        store.commit(&batch).unwrap();
        accounts = after(&accounts, &batch);
    }
    drop(store);
    (disk.file(), accounts)
}

#[test]
fn a_file_that_was_cut_is_refused_or_whole() {
    let (file, accounts) = written();
    let lengths = (1..600).chain((600..file.len()).step_by(509)).chain([file.len() - 1]);
    for length in lengths {
        if let Ok((_, found)) = open(&Disk::holding(file[..length].to_vec())) {
            assert!(found == accounts, "cut to {length} bytes of {}: {found:?}", file.len());
        }
    }
    assert!(open(&Disk::holding(file)).unwrap().1 == accounts);
}

#[test]
fn a_byte_that_was_changed_is_noticed_or_no_matter() {
    let (file, accounts) = written();
    let mut dice = Dice::new(2);
    let mut refused = 0;
    for round in 0..600 {
        let mut changed = file.clone();
        let position = if round < 320 { round } else { dice.below(file.len()) };
        changed[position] ^= u8::try_from(1 + dice.below(255)).unwrap();
        match open(&Disk::holding(changed)) {
            Ok((_, found)) => assert!(found == accounts, "byte {position}: {found:?}"),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 10, "{refused}");
}

#[test]
fn the_database_of_another_program_or_version_is_refused() {
    const OTHER: TableDefinition<'_, &str, &str> = TableDefinition::new("form");
    let disk = Disk::default();
    let database = Builder::new().create_with_backend(disk.clone()).unwrap();
    database.close().unwrap();
    let empty = open(&disk).unwrap_err();
    assert!(matches!(empty, OpenError::Damaged(_)), "{empty}");

    let database = Builder::new().create_with_backend(disk.clone()).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(OTHER).unwrap().insert("a", "b").unwrap();
    transaction.commit().unwrap();
    database.close().unwrap();
    let foreign = open(&disk).unwrap_err();
    assert!(matches!(foreign, OpenError::Damaged(_)), "{foreign}");

    let disk = formatted();
    let database = Builder::new().create_with_backend(disk.clone()).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(FORM).unwrap().insert(FORM_KEY, 9).unwrap();
    transaction.commit().unwrap();
    database.close().unwrap();
    let later = open(&disk).unwrap_err();
    assert_eq!(later.to_string(), "it has format 9, and this program reads format 1");
}
