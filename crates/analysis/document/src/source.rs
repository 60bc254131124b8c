//! Reads texts from files, folders and standard input.

mod encoding;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use uturn_model::{Origin, Text};

use crate::fault::{Fault, Faults};
use crate::room::Room;

/// A text and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The path as the user typed it; `-` for standard input.
    pub name: Text,
    /// The content.
    pub text: String,
}

/// Reads files, folders (with everything in them) and `-`, standard input.
///
/// In a folder, `.yaml`, `.yml` and `.json` files are read in the order of their names; a file that
/// the user names may have any name. Files that are reached twice are read once.
///
/// # Errors
/// One fault for each path that cannot be read.
pub fn gather(paths: &[PathBuf]) -> (Vec<Source>, Vec<Fault>) {
    let mut room = Room::default();
    let gathered = gather_selected(paths, Named::ByUser, &mut room, &mut |_, _| {});
    (gathered.sources, gathered.faults)
}

/// Reads a file that was found in a folder, up to the limit of `room`.
pub fn gather_of_folder(file: &Path, room: &mut Room) -> (Vec<Source>, Vec<Fault>) {
    let paths = [file.to_owned()];
    let gathered = gather_selected(&paths, Named::ByFolder, room, &mut |_, _| {});
    (gathered.sources, gathered.faults)
}

/// Selects the entries of a folder: is called with the folder and its sorted entries before they
/// are read, and removes those that are not to be read.
pub type Select<'s> = &'s mut dyn FnMut(&Path, &mut Vec<PathBuf>);

/// The result of reading files and folders.
#[derive(Debug)]
pub struct Gathered {
    /// The texts, in the order in which they were reached.
    pub sources: Vec<Source>,
    /// The names of the texts that were found in a folder rather than named by the user.
    pub of_folders: HashSet<Text>,
    /// A fault for each path that cannot be read.
    pub faults: Vec<Fault>,
}

/// Reads files and folders up to the limit of `room`; of each folder, the entries that `select`
/// leaves.
pub fn gather_selected(
    paths: &[PathBuf],
    named: Named,
    room: &mut Room,
    select: Select<'_>,
) -> Gathered {
    let mut gathering = Gathering {
        sources: Vec::new(),
        of_folders: HashSet::new(),
        faults: Faults::default(),
        reached: HashSet::new(),
        depth: 0,
        named,
        room,
        select,
    };
    paths.iter().for_each(|path| gathering.path(path));
    let Gathering { sources, of_folders, faults, .. } = gathering;
    Gathered { sources, of_folders, faults: faults.into_vec() }
}

/// How a file was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// The user named it: it may be a pipe, and may have any content.
    ByUser,
    /// It was found in a folder: anything but a regular file is not read.
    ByFolder,
}

struct Gathering<'r> {
    sources: Vec<Source>,
    /// The names of sources that were found in a folder.
    of_folders: HashSet<Text>,
    faults: Faults,
    /// The real paths of files and folders that were reached.
    reached: HashSet<PathBuf>,
    /// The number of folders that are being read.
    depth: usize,
    named: Named,
    room: &'r mut Room,
    select: Select<'r>,
}

impl Gathering<'_> {
    fn path(&mut self, path: &Path) {
        if self.room.is_exceeded() {
            return;
        }
        let of_folder = self.depth > 0 || self.named == Named::ByFolder;
        if path == Path::new("-") && !of_folder {
            if self.reached.insert(path.to_owned()) {
                let bytes = read(&mut io::stdin().lock(), 0, self.room);
                self.take(path, bytes);
            }
            return;
        }
        match path.canonicalize() {
            Ok(real) if !self.reached.insert(real.clone()) => {}
            Ok(real) if real.is_dir() => self.folder(path),
            // Opening a pipe would block until another process writes to it.
            Ok(real) if of_folder && !real.is_file() => {
                self.faults.push(Fault::new(origin(path), "neither a file nor a folder"));
            }
            Ok(_) => {
                let bytes = File::open(path).and_then(|file| read_file(file, self.room));
                self.take(path, bytes);
            }
            Err(error) => self.fault(path, &error),
        }
    }

    fn folder(&mut self, folder: &Path) {
        let before = self.sources.len() + self.faults.count();
        let entries = std::fs::read_dir(folder).and_then(|entries| {
            entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()
        });
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(error) => return self.fault(folder, &error),
        };
        entries.retain(|path| !path.file_name().is_some_and(starts_with_dots));
        entries.sort();
        (self.select)(folder, &mut entries);
        self.depth += 1;
        for path in entries {
            if path.is_dir() || is_manifest(&path) {
                self.path(&path);
            }
        }
        self.depth -= 1;
        let found = self.sources.len() + self.faults.count() > before;
        let top = !found && folder.ancestors().skip(1).all(|above| !self.holds(above));
        if top {
            let fault = Fault::new(origin(folder), "no .yaml, .yml or .json file in this folder");
            self.faults.push(fault);
        }
    }

    /// Returns whether a folder is being read, so that a folder below it may be empty.
    fn holds(&self, folder: &Path) -> bool {
        !folder.as_os_str().is_empty()
            && folder.canonicalize().is_ok_and(|real| self.reached.contains(&real))
    }

    fn take(&mut self, path: &Path, read: io::Result<Vec<u8>>) {
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(error) => return self.fault(path, &error),
        };
        if self.room.is_exceeded() {
            return self.faults.push(self.room.fault(origin(path)));
        }
        let bytes = match encoding::to_utf8(bytes) {
            Ok(bytes) => bytes,
            Err(at) => {
                let message = format!(
                    "its first bytes say UTF-16, but it is not valid UTF-16 at offset {at}"
                );
                return self.faults.push(Fault::new(origin(path), message));
            }
        };
        let head = &bytes[..bytes.len().min(HEAD)];
        if let Some(at) = head.iter().position(|byte| *byte == 0) {
            let message = format!("not a text: a zero byte at offset {at}");
            return self.faults.push(Fault::new(place(path, &bytes[..at]), message));
        }
        match String::from_utf8(bytes) {
            Ok(text) => {
                if self.depth > 0 {
                    self.of_folders.insert(name(path));
                }
                self.sources.push(Source { name: name(path), text });
            }
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                let bytes = error.as_bytes();
                let message = format!("not UTF-8: byte 0x{:02x} at offset {at}", bytes[at]);
                self.faults.push(Fault::new(place(path, &bytes[..at]), message));
            }
        }
    }

    fn fault(&mut self, path: &Path, error: &io::Error) {
        let message = match error.kind() {
            io::ErrorKind::NotFound => "no such file or folder".to_owned(),
            io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
            _ => format!("cannot be read: {error}"),
        };
        self.faults.push(Fault::new(origin(path), message));
    }
}

/// The length of a file's head: binary files have a zero byte there. (The parser rejects a later
/// one.)
const HEAD: usize = 1 << 16;

fn read_file(mut file: File, room: &mut Room) -> io::Result<Vec<u8>> {
    let size = file.metadata().map_or(0, |about| about.len().min(room.left()));
    read(&mut file, usize::try_from(size).unwrap_or(0), room)
}

/// Reads a file, up to one byte more than `room` has left; only the head of a file whose head shows
/// that it is not a text. With `size`, the expected size of the file, the buffer is allocated once,
/// so that no second copy of a growing text is in memory.
fn read(file: &mut dyn Read, size: usize, room: &mut Room) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(HEAD as u64).read_to_end(&mut bytes)?;
    if !bytes.contains(&0) || encoding::is_utf16(&bytes) {
        // One byte more than expected, to detect the end.
        bytes.reserve_exact(size.saturating_sub(bytes.len()) + 1);
        let most = room.left().saturating_sub(bytes.len() as u64) + 1;
        file.take(most).read_to_end(&mut bytes)?;
    }
    room.count(bytes.len() as u64);
    Ok(bytes)
}

/// Returns whether a name is reserved in its folder: Kubernetes stores the files of a mounted
/// ConfigMap in folders such as `..data`, to which links beside them lead.
pub fn starts_with_dots(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b"..")
}

/// Returns whether a file that was found in a folder is read.
pub fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("yaml" | "yml" | "json"))
}

fn name(path: &Path) -> Text {
    path.to_string_lossy().into()
}

fn origin(path: &Path) -> Origin {
    Origin::file(name(path))
}

/// Returns the line and column of the byte after `before`.
fn place(path: &Path, before: &[u8]) -> Origin {
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
    let saturated = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Origin::at(name(path), saturated(line), saturated(column))
}
