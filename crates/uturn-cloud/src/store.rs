//! Records on disk: an embedded database (redb) in the state folder.
//!
//! Each request's changes are one transaction, which is on the disk before the request is
//! answered. A process that is killed at any moment leaves the last complete transaction.

use std::fs;
use std::path::Path;

use redb::{Database, DatabaseError, ReadableDatabase as _, ReadableTable as _, TableDefinition};

use crate::cloud::{Batch, Storage, StorageError};
use crate::state::{Accounts, Place, Record, RecordKey, RecordKind};

/// Records as JSON, by account, region, kind and id.
const RECORDS: TableDefinition<'_, (&str, &str, &str, &str), &[u8]> =
    TableDefinition::new("records");

/// The version of the form of what is stored.
const FORM: TableDefinition<'_, &str, u32> = TableDefinition::new("form");
const FORM_KEY: &str = "version";
const FORM_VERSION: u32 = 1;

/// The name of the database in the state folder.
const FILE: &str = "cloud.redb";

/// Records on disk.
#[derive(Debug)]
pub struct Store {
    database: Database,
}

impl Store {
    /// Opens the database in this folder, which is made if it is not there, and reads what is
    /// stored.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be opened or read: another process has it open, a later uturn wrote
    /// it, or the disk says so.
    pub fn open(folder: &Path) -> Result<(Self, Accounts), StorageError> {
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            StorageError(format!("{}: {what}: {error}", folder.display()))
        };
        fs::create_dir_all(folder).map_err(|error| failed("cannot be made", &error))?;
        let file = folder.join(FILE);
        let database = Database::create(&file).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => {
                StorageError(format!("{} is open in another process", file.display()))
            }
            error => failed(FILE, &error),
        })?;
        let store = Self { database };
        store.check_form().map_err(|error| failed(FILE, &error))?;
        let accounts = store.read().map_err(|error| failed(FILE, &error))?;
        Ok((store, accounts))
    }

    /// Refuses what a later version wrote; marks what is new.
    fn check_form(&self) -> Result<(), StorageError> {
        let transaction = self.database.begin_write().map_err(stored)?;
        {
            let mut form = transaction.open_table(FORM).map_err(stored)?;
            let version = form.get(FORM_KEY).map_err(stored)?.map(|version| version.value());
            match version {
                Some(FORM_VERSION) => {}
                Some(version) => {
                    return Err(StorageError(format!(
                        "it has the form {version}, and this program reads {FORM_VERSION}"
                    )));
                }
                None => drop(form.insert(FORM_KEY, FORM_VERSION).map_err(stored)?),
            }
            transaction.open_table(RECORDS).map_err(stored)?;
        }
        transaction.commit().map_err(stored)
    }

    fn read(&self) -> Result<Accounts, StorageError> {
        let transaction = self.database.begin_read().map_err(stored)?;
        let table = transaction.open_table(RECORDS).map_err(stored)?;
        let mut accounts = Accounts::new();
        for row in table.iter().map_err(stored)? {
            let (key, record) = row.map_err(stored)?;
            let (account, region, kind, id) = key.value();
            let faulty = |what: &dyn std::fmt::Display| {
                StorageError(format!("the record {kind} {id}: {what}"))
            };
            let kind = RecordKind::parse(kind).ok_or_else(|| faulty(&"its kind is not known"))?;
            let record: Record =
                serde_json::from_slice(record.value()).map_err(|error| faulty(&error))?;
            let place = Place { account: account.to_owned(), region: region.to_owned() };
            let key = RecordKey { kind, id: id.to_owned() };
            accounts.entry(place).or_default().apply(key, Some(record));
        }
        Ok(accounts)
    }
}

impl Storage for Store {
    fn commit(&self, batch: &Batch) -> Result<(), StorageError> {
        let transaction = self.database.begin_write().map_err(stored)?;
        {
            let mut table = transaction.open_table(RECORDS).map_err(stored)?;
            for (place, changes) in batch {
                for (key, record) in changes {
                    let row = (&*place.account, &*place.region, key.kind.name(), &*key.id);
                    match record {
                        Some(record) => {
                            let json = serde_json::to_vec(record).map_err(stored)?;
                            table.insert(row, json.as_slice()).map_err(stored)?;
                        }
                        None => drop(table.remove(row).map_err(stored)?),
                    }
                }
            }
        }
        transaction.commit().map_err(stored)
    }
}

fn stored(error: impl std::fmt::Display) -> StorageError {
    StorageError(error.to_string())
}
