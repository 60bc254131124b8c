//! Network namespaces: creates, names (as `ip netns` shows them), enters and removes them.
//!
//! A namespace belongs to a thread, so work inside one runs on a new thread ([`Namespace::run`]).
//! Sockets keep the namespace they were opened in.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::mount::{
    MountPropagationFlags, UnmountFlags, mount_bind, mount_bind_recursive, mount_change, unmount,
};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use uturn_netns::{in_new_thread, run_in};

/// The folder in which `ip netns` looks for namespaces.
const NAMES: &str = "/run/netns";

/// The calling thread's own namespace.
const OWN: &str = "/proc/thread-self/ns/net";

/// A namespace of the lab. It is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Namespace {
    name: String,
    file: File,
}

impl Namespace {
    /// Creates a namespace with this name.
    pub(crate) fn new(name: String) -> io::Result<Self> {
        make_folder()?;
        let path = path_of(&name);
        File::create_new(&path)?;
        let made = in_new_thread(|| {
            new_network_namespace()?;
            Ok(mount_bind(OWN, &path)?)
        });
        match made.and_then(|()| File::open(&path)) {
            Ok(file) => Ok(Self { name, file }),
            Err(error) => {
                let _ = remove(&name);
                Err(error)
            }
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Runs a closure on a new thread inside the namespace.
    pub(crate) fn run<T: Send>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send,
    ) -> io::Result<T> {
        run_in(&self.file, work)
    }

    /// Returns a handle for entering the namespace. It does not keep the namespace's name.
    pub(crate) fn handle(&self) -> io::Result<Handle> {
        self.file.try_clone().map(Handle)
    }

    /// Runs a closure as [`Namespace::run`] does, in a new mount namespace: its mounts are private,
    /// and disappear with the last process that was started there.
    pub(crate) fn run_with_own_mounts<T: Send>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send,
    ) -> io::Result<T> {
        self.run(|| {
            new_mount_namespace()?;
            mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
            work()
        })
    }

    /// Sets a sysctl: `net/ipv4/ip_forward`. Works only within [`Namespace::run`].
    pub(crate) fn set_sysctl(path: &str, value: &str) -> io::Result<()> {
        fs::write(Path::new("/proc/sys").join(path), value)
    }
}

/// A handle for entering a namespace that something else owns.
#[derive(Debug)]
pub(crate) struct Handle(File);

impl Handle {
    /// Returns a handle for the namespace with this name.
    pub(crate) fn open(name: &str) -> io::Result<Self> {
        File::open(path_of(name)).map(Self)
    }

    /// Runs a closure on a new thread inside the namespace.
    pub(crate) fn run<T: Send>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send,
    ) -> io::Result<T> {
        run_in(&self.0, work)
    }

    /// Moves the calling thread into the namespace, and into a mount namespace of its own.
    pub(crate) fn enter(&self) -> io::Result<()> {
        uturn_netns::enter(&self.0)?;
        new_mount_namespace()?;
        Ok(mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The next sweep removes what could not be removed now.
        let _ = remove(&self.name);
    }
}

/// Returns the names of namespaces that begin with this prefix.
pub(crate) fn names_with(prefix: &str) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(NAMES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        if let Ok(name) = entry?.file_name().into_string()
            && name.starts_with(prefix)
        {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Removes a namespace's name. A namespace without a name and without a process ends, with its
/// links, addresses and rules.
pub(crate) fn remove(name: &str) -> io::Result<()> {
    let path = path_of(name);
    let unmounted = unmount(&path, UnmountFlags::DETACH);
    // A file that was never mounted on (because its creation was interrupted) is removed too. One
    // that is still mounted is not.
    fs::remove_file(&path).map_err(|error| unmounted.map_or_else(Into::into, |()| error))
}

/// Makes the folder of names as `ip netns add` does: a shared mount of its own. Otherwise the first
/// `ip` would mount a copy of the folder, with all mounts in it, over names that are in use, which
/// could then not be removed any more.
fn make_folder() -> io::Result<()> {
    fs::create_dir_all(NAMES)?;
    let folder = File::open(NAMES)?;
    // `ip` locks the folder too while it makes the mount.
    flock(&folder, FlockOperation::LockExclusive)?;
    let share = || mount_change(NAMES, MountPropagationFlags::SHARED | MountPropagationFlags::REC);
    match share() {
        Err(Errno::INVAL) => {
            mount_bind_recursive(NAMES, NAMES)?;
            Ok(share()?)
        }
        shared => Ok(shared?),
    }
}

fn path_of(name: &str) -> PathBuf {
    Path::new(NAMES).join(name)
}

#[expect(unsafe_code, reason = "unshare is unsafe only where file descriptors are unshared")]
fn new_network_namespace() -> io::Result<()> {
    // SAFETY: the flag is not FILES, so no thread loses sight of a descriptor.
    Ok(unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?)
}

#[expect(unsafe_code, reason = "unshare is unsafe only where file descriptors are unshared")]
fn new_mount_namespace() -> io::Result<()> {
    // SAFETY: the flag is not FILES, so no thread loses sight of a descriptor.
    Ok(unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?)
}
