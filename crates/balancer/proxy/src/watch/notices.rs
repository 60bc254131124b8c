//! The kernel's notices of file changes: inotify(7).

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{
    self, CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, remove_watch,
};
use rustix::io::Errno;

use super::drain;
use super::files::{each_folder, is_read};

/// The time without further events after which a change is complete.
const PAUSE: Duration = Duration::from_millis(100);

/// The longest time to wait for a change to be complete.
const LONGEST: Duration = Duration::from_secs(2);

/// The number of symbolic links that are followed on a path.
const LINKS: usize = 40;

/// The events that may change what a path refers to. Written files count when they are closed.
const CHANGES: WatchFlags = WatchFlags::CLOSE_WRITE
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// The reason why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// Something may have changed, or other files are to be watched.
    Look,
    /// Nothing is to be watched any more.
    End,
}

/// The kernel's queue of notices.
#[derive(Debug)]
pub(super) struct Notices {
    queue: OwnedFd,
    woken: UnixStream,
    folders: HashMap<i32, Folder>,
}

/// A folder that is watched.
#[derive(Debug, Default)]
struct Folder {
    path: PathBuf,
    names: HashSet<OsString>,
    /// Whether the folder is watched for all files with names like `a.yaml`.
    is_whole: bool,
}

impl Notices {
    /// Returns an empty queue. Anything that comes in at `woken` ends a wait.
    ///
    /// # Errors
    /// When the kernel cannot make another queue.
    pub(super) fn new(woken: UnixStream) -> io::Result<Self> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        Ok(Self { queue, woken, folders: HashMap::new() })
    }

    /// Watches these files and folders, and no others. A path that does not exist is noticed when
    /// it is created.
    pub(super) fn watch(&mut self, paths: &[PathBuf]) {
        let mut wanted: HashMap<PathBuf, Folder> = HashMap::new();
        for path in paths {
            want(path, &mut wanted);
        }
        let before = std::mem::take(&mut self.folders);
        for (path, folder) in wanted {
            // The parent of a folder that does not exist, or may not be read, is watched too.
            if let Ok(number) = add_watch(&self.queue, &path, CHANGES | WatchFlags::MASK_ADD) {
                self.folders.insert(number, Folder { path, ..folder });
            }
        }
        for number in before.keys().filter(|number| !self.folders.contains_key(number)) {
            // This fails if the folder is gone, and its watch with it.
            let _ = remove_watch(&self.queue, *number);
        }
    }

    /// Waits for a change, and then until changes pause.
    pub(super) fn wait(&self) -> News {
        loop {
            self.poll(None);
            match drain(&self.woken) {
                None => return News::End,
                Some(true) => return News::Look,
                Some(false) => {}
            }
            if self.read() {
                break;
            }
        }
        let end = Instant::now() + LONGEST;
        while self.poll(Some(PAUSE)) && Instant::now() < end {
            match drain(&self.woken) {
                None => return News::End,
                Some(true) => return News::Look,
                Some(false) => self.read(),
            };
        }
        News::Look
    }

    /// Waits until there is something to read. Returns `false` if the time is over first.
    fn poll(&self, limit: Option<Duration>) -> bool {
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        let mut files =
            [PollFd::new(&self.queue, PollFlags::IN), PollFd::new(&self.woken, PollFlags::IN)];
        loop {
            match poll(&mut files, limit.as_ref()) {
                Err(Errno::INTR) => {}
                Ok(count) => return count > 0,
                Err(_) => return false,
            }
        }
    }

    /// Empties the queue. Returns whether one of the events matters.
    fn read(&self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.queue, &mut buffer);
        let mut is_relevant = false;
        while let Ok(event) = reader.next() {
            let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
            is_relevant |= self.is_relevant(event.wd(), event.events(), name);
        }
        is_relevant
    }

    fn is_relevant(&self, number: i32, events: ReadFlags, name: Option<&OsStr>) -> bool {
        if events.contains(ReadFlags::QUEUE_OVERFLOW) {
            return true;
        }
        let Some(folder) = self.folders.get(&number) else { return false };
        // An event without a name concerns the folder itself.
        let Some(name) = name else { return true };
        let is_folder = events.contains(ReadFlags::ISDIR);
        let is_watched = folder.is_whole && is_read(name, is_folder);
        if !is_watched && !folder.names.contains(name) {
            return false;
        }
        // A new file is empty until it is closed; a new link or folder already has contents.
        !events.contains(ReadFlags::CREATE) || !is_new_file(&folder.path.join(name))
    }
}

fn is_new_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.is_file() && about.nlink() == 1)
}

/// Adds the folders that have to be watched for a path.
fn want(path: &Path, wanted: &mut HashMap<PathBuf, Folder>) {
    let mut names = |path: &Path| {
        each_link(path, &mut |folder, name| {
            wanted.entry(folder.to_owned()).or_default().names.insert(name.to_owned());
        });
    };
    names(path);
    let mut whole = Vec::new();
    if path.is_dir() {
        each_folder(path, &mut HashSet::new(), &mut |folder, entries| {
            whole.extend(folder.canonicalize());
            entries.iter().for_each(|entry| names(entry));
        });
    }
    for folder in whole {
        wanted.entry(folder).or_default().is_whole = true;
    }
}

/// Visits every name on the way to a path with the folder that contains it: those of all folders,
/// and of all links that are followed.
fn each_link(path: &Path, visit: &mut dyn FnMut(&Path, &OsStr)) {
    let Ok(path) = std::path::absolute(path) else { return };
    let (mut at, mut links) = (PathBuf::from("/"), 0);
    let mut rest = parts(&path);
    while let Some(part) = rest.pop() {
        if part == ".." {
            at.pop();
            continue;
        }
        visit(&at, &part);
        at.push(&part);
        if let Ok(target) = fs::read_link(&at)
            && links < LINKS
        {
            links += 1;
            at.pop();
            if target.is_absolute() {
                at = PathBuf::from("/");
            }
            rest.extend(parts(&target));
        }
    }
}

/// Returns the parts of a path, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let part = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    };
    path.components().rev().filter_map(part).collect()
}
