//! Records on disk: an embedded database (redb) in the state folder.
//!
//! Requests that wait at the same time are stored in one transaction, which is on the disk before
//! any of them is answered. If the process is killed, the last complete transaction remains.
//!
//! After a failed transaction, for instance on a full disk, it is not known which part of it
//! reached the disk. The database is then closed. The next commit opens it again, and if the failed
//! transaction is there, undoes it in its own transaction. So requests that were answered with an
//! error have no effect, and the stored records match those in memory.

mod folder;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;
use std::sync::Mutex;

use redb::{
    Database, DatabaseError, ReadTransaction, ReadableDatabase as _, ReadableTable as _,
    TableDefinition, TableError,
};

use self::folder::StateFolder;
use crate::cloud::{Batch, Storage, StorageError};
use crate::state::{Accounts, Place, Record, RecordKey, RecordKind};

/// Records as JSON, by account, region, kind and id.
const RECORDS: TableDefinition<'_, (&str, &str, &str, &str), &[u8]> =
    TableDefinition::new("records");

/// The version of the storage format.
const FORM: TableDefinition<'_, &str, u32> = TableDefinition::new("form");
const FORM_KEY: &str = "version";
const FORM_VERSION: u32 = 1;

/// The number of the last transaction.
const COMMITS: TableDefinition<'_, &str, u64> = TableDefinition::new("commits");
const COMMITS_KEY: &str = "last";

/// A function that opens the database.
type Open = Box<dyn Fn() -> Result<Database, DatabaseError> + Send + Sync>;

/// The store of records on disk.
pub struct Store {
    open: Open,
    journal: Mutex<Journal>,
    /// Kept locked while the store is open.
    _folder: Option<StateFolder>,
}

impl fmt::Debug for Store {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Store").field("journal", &self.journal).finish_non_exhaustive()
    }
}

/// The database, and the state of its last transactions.
#[derive(Debug)]
struct Journal {
    /// `None` after a transaction that failed.
    database: Option<Database>,
    /// The number of the next transaction.
    next: u64,
    /// Failed transactions, of which one may be on the disk all the same.
    failed: Vec<FailedCommit>,
}

/// A transaction that failed.
#[derive(Debug)]
struct FailedCommit {
    number: u64,
    replaced: Replaced,
}

/// The rows that a transaction replaced, with their previous content; `None` for rows that did not
/// exist.
type Replaced = Vec<(Row, Option<Vec<u8>>)>;

/// The key under which a record is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    place: Place,
    key: RecordKey,
}

impl Row {
    fn name(&self) -> (&str, &str, &str, &str) {
        (&self.place.account, &self.place.region, self.key.kind.name(), &self.key.id)
    }
}

impl Store {
    /// Opens the database in this folder and reads all records. Creates the folder and the database
    /// if they do not exist.
    ///
    /// # Errors
    ///
    /// Returns why the database cannot be opened or read: another process has it open, it is
    /// damaged or a file of another program, a later uturn wrote it, or the disk reports an error.
    pub fn open(folder: &Path) -> Result<(Self, Accounts), StorageError> {
        let folder = StateFolder::open(folder)?;
        let file = folder.database();
        if !folder.has_database()? {
            folder.make_database(initialize)?;
        }
        let open = {
            let file = file.clone();
            Box::new(move || folder::open_database(&file))
        };
        let (mut store, accounts) =
            Self::open_with(open).map_err(|error| folder::explain(&file, &error))?;
        store._folder = Some(folder);
        Ok((store, accounts))
    }

    /// Opens the database with `open`, and reads all records.
    fn open_with(open: Open) -> Result<(Self, Accounts), OpenError> {
        let database = open()?;
        let transaction = database.begin_read().map_err(OpenError::damaged)?;
        check_form(&transaction)?;
        let accounts = read(&transaction).map_err(OpenError::damaged)?;
        let last = last_commit(&transaction).map_err(OpenError::damaged)?;
        drop(transaction);
        let journal = Journal { database: Some(database), next: last + 1, failed: Vec::new() };
        Ok((Self { open, journal: Mutex::new(journal), _folder: None }, accounts))
    }
}

/// The reason why a database could not be opened.
#[derive(Debug, thiserror::Error)]
enum OpenError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error("{0}")]
    Damaged(String),
    #[error("it has format {0}, and this program reads format {FORM_VERSION}")]
    Form(u32),
}

impl OpenError {
    fn damaged(error: impl fmt::Display) -> Self {
        Self::Damaged(error.to_string())
    }
}

/// Turns an empty database into one of this program.
fn initialize(database: &Database) -> Result<(), StorageError> {
    let transaction = database.begin_write().map_err(stored)?;
    transaction
        .open_table(FORM)
        .map_err(stored)?
        .insert(FORM_KEY, FORM_VERSION)
        .map(drop)
        .map_err(stored)?;
    transaction.open_table(RECORDS).map(drop).map_err(stored)?;
    transaction.open_table(COMMITS).map(drop).map_err(stored)?;
    transaction.commit().map_err(stored)
}

/// Refuses a database that a later version or another program wrote.
fn check_form(transaction: &ReadTransaction) -> Result<(), OpenError> {
    let foreign = || OpenError::damaged("it holds no records of the cloud");
    let form = match transaction.open_table(FORM) {
        Ok(form) => form,
        Err(TableError::TableDoesNotExist(_) | TableError::TableTypeMismatch { .. }) => {
            return Err(foreign());
        }
        Err(error) => return Err(OpenError::damaged(error)),
    };
    match form.get(FORM_KEY).map_err(OpenError::damaged)?.map(|version| version.value()) {
        Some(FORM_VERSION) => Ok(()),
        Some(version) => Err(OpenError::Form(version)),
        None => Err(foreign()),
    }
}

fn read(transaction: &ReadTransaction) -> Result<Accounts, StorageError> {
    let table = transaction.open_table(RECORDS).map_err(stored)?;
    let mut accounts = Accounts::new();
    for row in table.iter().map_err(stored)? {
        let (key, record) = row.map_err(stored)?;
        let (account, region, kind, id) = key.value();
        let faulty = |what: &dyn fmt::Display| {
            StorageError(format!("the record {kind} {id} cannot be read: {what}"))
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

fn last_commit(transaction: &ReadTransaction) -> Result<u64, StorageError> {
    let table = transaction.open_table(COMMITS).map_err(stored)?;
    Ok(table.get(COMMITS_KEY).map_err(stored)?.map_or(0, |last| last.value()))
}

impl Storage for Store {
    fn commit(&self, batch: &Batch) -> Result<(), StorageError> {
        let mut journal = self.journal.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let database = match journal.database.take() {
            Some(database) => database,
            None => self.reopen(&mut journal)?,
        };
        let number = journal.next;
        journal.next += 1;
        let mut replaced = Replaced::new();
        let undo = journal.failed.first().map_or(&[][..], |commit| &commit.replaced);
        match write(&database, number, undo, batch, &mut replaced) {
            Ok(()) => {
                journal.failed.clear();
                journal.database = Some(database);
                Ok(())
            }
            Err(error) => {
                journal.failed.push(FailedCommit { number, replaced });
                Err(error)
            }
        }
    }
}

impl Store {
    /// Opens the database again after a failed transaction. Keeps in `failed` only the transaction
    /// that is in the database, if any.
    fn reopen(&self, journal: &mut Journal) -> Result<Database, StorageError> {
        let database = (self.open)().map_err(stored)?;
        let last = last_commit(&database.begin_read().map_err(stored)?)?;
        journal.failed.retain(|commit| commit.number == last);
        Ok(database)
    }
}

/// Writes one transaction: applies `undo`, then the changes, and notes in `replaced` how to undo
/// these.
fn write(
    database: &Database,
    number: u64,
    undo: &[(Row, Option<Vec<u8>>)],
    batch: &Batch,
    replaced: &mut Replaced,
) -> Result<(), StorageError> {
    let transaction = database.begin_write().map_err(stored)?;
    {
        let mut table = transaction.open_table(RECORDS).map_err(stored)?;
        for (row, before) in undo {
            match before {
                Some(json) => drop(table.insert(row.name(), json.as_slice()).map_err(stored)?),
                None => drop(table.remove(row.name()).map_err(stored)?),
            }
        }
        let changes = batch
            .iter()
            .flat_map(|(place, changes)| changes.iter().map(move |change| (place, change)));
        for (place, (key, record)) in changes {
            let row = Row { place: place.clone(), key: key.clone() };
            let before = match record {
                Some(record) => {
                    let json = serde_json::to_vec(record).map_err(stored)?;
                    let before = table.insert(row.name(), json.as_slice()).map_err(stored)?;
                    before.map(|json| json.value().to_vec())
                }
                None => {
                    let before = table.remove(row.name()).map_err(stored)?;
                    before.map(|json| json.value().to_vec())
                }
            };
            replaced.push((row, before));
        }
        let mut commits = transaction.open_table(COMMITS).map_err(stored)?;
        commits.insert(COMMITS_KEY, number).map_err(stored)?;
    }
    transaction.commit().map_err(stored)
}

fn stored(error: impl fmt::Display) -> StorageError {
    StorageError(error.to_string())
}
