//! The state on disk of a run, which lets the next run clean up after it.
//!
//! A run's folder holds a lock that dies with its process, the list of processes that it started,
//! and their files. Namespaces carry the run's name. A folder whose lock can be taken belongs to a
//! dead run.

use std::env;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, dup};
use rustix::process::{Pid, geteuid};

use crate::LabError;
use crate::linux::kernel::system::During;

/// The folder of root's runs.
const FOLDER: &str = "/run/uturn-lab";

/// The number of runs of this process so far: several may begin at the same time.
static RUNS: AtomicUsize = AtomicUsize::new(0);

/// Returns the folder of all runs of this user. Users other than root keep clusters in small
/// machines.
pub(crate) fn folder() -> PathBuf {
    let user = geteuid();
    if user.is_root() {
        return FOLDER.into();
    }
    let own = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_dir());
    let temporary = || env::temp_dir().join(format!("uturn-lab-{}", user.as_raw()));
    own.map_or_else(temporary, |own| own.join("uturn-lab"))
}

/// Returns the folder of all runs if it exists.
///
/// # Errors
/// If the folder belongs to another user, whose records this user cannot rely on.
pub(crate) fn existing_folder() -> io::Result<Option<PathBuf>> {
    let folder = folder();
    match fs::symlink_metadata(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
        Ok(found) if found.is_dir() && found.uid() == geteuid().as_raw() => Ok(Some(folder)),
        Ok(_) => {
            let why = format!("{} is another user's", folder.display());
            Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
        }
    }
}

/// A run. It is alive as long as this value.
#[derive(Debug)]
pub(crate) struct Run {
    id: String,
    folder: PathBuf,
    lock: File,
}

impl Run {
    pub(crate) fn new() -> Result<Self, LabError> {
        let during = "record the run";
        let _guard = lock_folder().during(during)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let nth = RUNS.fetch_add(1, Ordering::Relaxed);
        let id = format!("{}-{:05x}-{nth}", std::process::id(), now.subsec_micros());
        let folder = folder().join(&id);
        fs::create_dir(&folder).during(during)?;
        let lock = File::create_new(folder.join("lock")).during(during)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).during(during)?;
        Ok(Self { id, folder, lock })
    }

    /// Returns a handle of the lock that programs inherit: the run is alive until the last of them
    /// ends.
    pub(crate) fn inherited_lock(&self) -> io::Result<OwnedFd> {
        // Unlike the lock's own handle, a copy stays open in programs that are started.
        Ok(dup(&self.lock)?)
    }

    /// Returns the name of a namespace of this run.
    pub(crate) fn namespace(&self, what: &str) -> String {
        format!("{}{what}", prefix(&self.id))
    }

    /// Returns the name of this run's instance of the kernel's tracer.
    pub(crate) fn tracing(&self) -> String {
        tracing(&self.id)
    }

    /// Returns the run's folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of a file in the run's folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Records a process.
    pub(crate) fn started(&self, process: u32) -> io::Result<()> {
        record_process(&self.folder, process)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // The next sweep removes what could not be removed now.
        let _ = fs::remove_dir_all(&self.folder);
        remove_folder();
    }
}

/// Records a process in the folder of a run.
pub(crate) fn record_process(folder: &Path, process: u32) -> io::Result<()> {
    let start_time = start_time(process).unwrap_or_default();
    let mut file = File::options().create(true).append(true).open(folder.join("processes"))?;
    // A single write is necessary: others append and read meanwhile, and `writeln!` would write
    // each part by itself.
    file.write_all(format!("{process} {start_time}\n").as_bytes())
}

/// Returns the recorded processes that are still the ones that were started.
pub(crate) fn processes(folder: &Path) -> io::Result<Vec<Pid>> {
    let text = match fs::read_to_string(folder.join("processes")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    let same = |line: &str| {
        let (process, was) = line.split_once(' ')?;
        let process = process.parse().ok()?;
        (start_time(process)? == was).then(|| Pid::from_raw(i32::try_from(process).ok()?))?
    };
    Ok(text.lines().filter_map(same).collect())
}

/// Returns the start time of a process in clock ticks: the 22nd field of its `stat`.
pub(crate) fn start_time(process: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field is a name in brackets that may contain anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(19).map(String::from)
}

pub(crate) fn is_dead(folder: &Path) -> io::Result<bool> {
    let lock = match File::open(folder.join("lock")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        lock => lock?,
    };
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Locks the folder, so that no other run is created or swept meanwhile.
pub(crate) fn lock_folder() -> io::Result<File> {
    let folder = folder();
    let path = folder.join(".lock");
    loop {
        let mode = if geteuid().is_root() { 0o755 } else { 0o700 };
        DirBuilder::new().recursive(true).mode(mode).create(&folder)?;
        existing_folder()?;
        let lock = match File::create(&path) {
            // Another run was the last one, and took the folder away.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            lock => lock?,
        };
        flock(&lock, FlockOperation::LockExclusive)?;
        // The previous holder of the lock may have removed the file.
        let inode = lock.metadata()?.ino();
        if fs::metadata(&path).is_ok_and(|named| named.ino() == inode) {
            return Ok(lock);
        }
    }
}

/// Removes the folder of all runs if no run is left.
pub(crate) fn remove_folder() {
    let is_run = |entry: io::Result<fs::DirEntry>| entry.is_ok_and(|entry| entry.path().is_dir());
    if let Ok(_guard) = lock_folder()
        && fs::read_dir(folder()).is_ok_and(|mut entries| !entries.any(is_run))
    {
        let _ = fs::remove_file(folder().join(".lock"));
        let _ = fs::remove_dir(folder());
    }
}

pub(crate) fn tracing(id: &str) -> String {
    format!("uturn-{id}")
}

pub(crate) fn prefix(id: &str) -> String {
    format!("uturn-{id}-")
}
