//! The state folder. Only one process uses it at a time, only its owner can read its files, which
//! hold private keys, and its database is created completely or not at all.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use redb::backends::FileBackend;
use redb::{Builder, Database, DatabaseError, StorageError as DiskError};

use super::OpenError;
use crate::cloud::StorageError;

/// The name of the database in the folder.
const DATABASE: &str = "cloud.redb";
/// The name of a database that is being created.
const NEW_DATABASE: &str = "cloud.redb.new";
/// The name of the file that is locked while a process uses the folder.
const LOCK: &str = "lock";

/// The memory for pages of the database. It is small because all records are in memory already.
const CACHE: usize = 16 << 20;

/// A folder that only this process uses, until this is dropped.
#[derive(Debug)]
pub(super) struct StateFolder {
    path: PathBuf,
    _lock: File,
}

impl StateFolder {
    /// Creates the folder if it does not exist, and locks it.
    pub(super) fn open(path: &Path) -> Result<Self, StorageError> {
        let failed = |what: &str, error: io::Error| {
            StorageError(format!("{} cannot be {what}: {error}", path.display()))
        };
        make_folder(path).map_err(|error| failed("made", error))?;
        let lock = owners(OpenOptions::new().write(true).create(true).truncate(false))
            .open(path.join(LOCK))
            .map_err(|error| failed("used", error))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => {
                Err(StorageError(format!("{} is open in another process", path.display())))
            }
            Err(TryLockError::Error(error)) => Err(failed("locked", error)),
        }
    }

    /// Returns the path of the database.
    pub(super) fn database(&self) -> PathBuf {
        self.path.join(DATABASE)
    }

    /// Returns whether there is a database, in any state.
    pub(super) fn has_database(&self) -> Result<bool, StorageError> {
        let file = self.database();
        fs::exists(&file).map_err(|error| StorageError(format!("{}: {error}", file.display())))
    }

    /// Creates a database under another name, and renames it when it is complete.
    pub(super) fn make_database(
        &self,
        initialize: impl FnOnce(&Database) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        let new = self.path.join(NEW_DATABASE);
        let failed =
            |error: &dyn std::fmt::Display| StorageError(format!("{}: {error}", new.display()));
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&error)),
            _ => {}
        }
        let file = owners(OpenOptions::new().read(true).write(true).create_new(true))
            .open(&new)
            .map_err(|error| failed(&error))?;
        let backend = FileBackend::new(file).map_err(|error| failed(&error))?;
        let database =
            Builder::new().create_with_backend(backend).map_err(|error| failed(&error))?;
        initialize(&database).map_err(|error| failed(&error))?;
        database.close().map_err(|error| failed(&error))?;
        fs::rename(&new, self.database()).map_err(|error| failed(&error))?;
        sync_folder(&self.path).map_err(|error| failed(&error))
    }
}

/// Opens an existing database, and checks all of it. A file of any other kind is an error.
pub(super) fn open_database(file: &Path) -> Result<Database, DatabaseError> {
    restrict(file).map_err(|error| DatabaseError::Storage(DiskError::Io(error)))?;
    Builder::new().set_cache_size(CACHE).set_check_integrity_on_open(true).open(file)
}

/// Returns the error for a database that could not be opened, with its path and a remedy.
pub(super) fn explain(file: &Path, error: &OpenError) -> StorageError {
    let file = file.display();
    let is_damaged = match error {
        OpenError::Database(DatabaseError::DatabaseAlreadyOpen) => {
            return StorageError(format!("{file} is open in another process"));
        }
        OpenError::Form(_) => {
            return StorageError(format!("{file}: {error}: use the program that wrote it"));
        }
        OpenError::Damaged(_) => true,
        OpenError::Database(DatabaseError::Storage(DiskError::Io(io))) => {
            matches!(io.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
        }
        OpenError::Database(_) => true,
    };
    if !is_damaged {
        return StorageError(format!("{file}: {error}"));
    }
    StorageError(format!(
        "{file} is damaged or not a database of uturn cloud: {error}; put a copy of \
         it back, or move it away to begin with an empty cloud"
    ))
}

/// Creates a folder that only its owner can read, with its parent folders. An existing folder keeps
/// its permissions.
fn make_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let above = match path.parent() {
        Some(above) if !above.as_os_str().is_empty() => above,
        _ => Path::new("."),
    };
    fs::create_dir_all(above)?;
    owners_folder().create(path)?;
    sync_folder(above)
}

/// Returns a builder of folders that only their owner can read.
#[cfg(unix)]
fn owners_folder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// Returns a builder of folders with the permissions that they inherit.
#[cfg(not(unix))]
fn owners_folder() -> DirBuilder {
    DirBuilder::new()
}

/// Makes created files readable only by their owner.
fn owners(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Restricts a file's permissions to its owner.
#[cfg(unix)]
fn restrict(file: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;

    let mut permissions = fs::metadata(file)?.permissions();
    if permissions.mode() & 0o077 != 0 {
        permissions.set_mode(permissions.mode() & !0o077);
        fs::set_permissions(file, permissions)?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn restrict(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Makes the entries of a folder durable.
#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
