//! Reads texts from files, folders and standard input.

mod encoding;
mod foreign;
mod layout;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use uturn_model::{Origin, Text};

use crate::fault::{Fault, Faults};

pub(crate) use layout::{OtherFiles, TEMPLATE};

/// A text and what the user calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// As the user typed it; `-` for standard input.
    pub name: Text,
    /// Its text.
    pub text: String,
}

/// Reads files, folders (with all that is in them) and `-`, standard input.
///
/// Of a folder, `.yaml`, `.yml` and `.json` files are read in the order of their names; a file
/// that the user names may have any name. Files that are reached twice are read once.
///
/// # Errors
/// One fault for each path that cannot be read.
pub fn gather(paths: &[PathBuf]) -> (Vec<Source>, Vec<Fault>) {
    let gathering = Gathering::default().with(paths);
    (gathering.sources, gathering.faults.into_vec())
}

/// The same without the files of folders that hold no object of a cluster, or are of other projects.
pub(crate) fn gather_manifests(paths: &[PathBuf]) -> (Vec<Source>, OtherFiles, Vec<Fault>) {
    let gathering = Gathering { leaves_foreign: true, ..Gathering::default() };
    let Gathering { mut sources, faults, mut beside, .. } = gathering.with(paths);
    beside.leave_out(&mut sources);
    (sources, beside, faults.into_vec())
}

#[derive(Default)]
struct Gathering {
    sources: Vec<Source>,
    faults: Faults,
    /// Files and folders that were reached, by their real path.
    reached: HashSet<PathBuf>,
    beside: OtherFiles,
    /// How many folders are open.
    depth: usize,
    /// Whether folders of other projects are left out.
    leaves_foreign: bool,
}

impl Gathering {
    fn with(mut self, paths: &[PathBuf]) -> Self {
        for path in paths {
            self.path(path);
        }
        self
    }

    fn path(&mut self, path: &Path) {
        if path == Path::new("-") {
            if self.reached.insert(path.to_owned()) {
                self.take(path, read(&mut io::stdin().lock(), 0));
            }
            return;
        }
        match path.canonicalize() {
            Ok(real) if !self.reached.insert(real.clone()) => {}
            Ok(real) if real.is_dir() => self.folder(path),
            Ok(_) => self.take(path, File::open(path).and_then(read_file)),
            Err(error) => self.fault(path, &error),
        }
    }

    fn folder(&mut self, folder: &Path) {
        let before = self.sources.len() + self.faults.len();
        let entries = std::fs::read_dir(folder).and_then(|entries| {
            entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()
        });
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(error) => return self.fault(folder, &error),
        };
        entries.retain(|path| !path.file_name().is_some_and(starts_with_dots));
        entries.sort();
        self.beside.look_at(folder);
        self.depth += 1;
        let siblings = foreign::Siblings::of(&entries);
        for path in entries {
            if self.leaves_foreign && siblings.make_foreign(&path) {
                self.beside.leave_folder_out(&path, foreign::manifests(&path));
            } else if path.is_dir() || is_manifest(&path) {
                self.path(&path);
            }
        }
        self.depth -= 1;
        let found = self.sources.len() + self.faults.len() > before;
        let top = !found && folder.ancestors().skip(1).all(|above| !self.holds(above));
        if top {
            let fault = Fault::new(origin(folder), "no .yaml, .yml or .json file in this folder");
            self.faults.push(fault);
        }
    }

    /// Whether a folder is being read, so that one below it may well be empty.
    fn holds(&self, folder: &Path) -> bool {
        !folder.as_os_str().is_empty()
            && folder.canonicalize().is_ok_and(|real| self.reached.contains(&real))
    }

    fn take(&mut self, path: &Path, read: io::Result<Vec<u8>>) {
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(error) => return self.fault(path, &error),
        };
        let bytes = match encoding::to_utf8(bytes) {
            Ok(bytes) => bytes,
            Err(at) => {
                let message = format!("not UTF-16, as its first bytes say: see offset {at}");
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
                    self.beside.of_folders.insert(name(path));
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

/// Binary files have a zero byte early. (The reader rejects one further on.)
const HEAD: usize = 1 << 16;

/// How much is read at most.
const MAX: u64 = 4 << 30;

fn read_file(mut file: File) -> io::Result<Vec<u8>> {
    let size = file.metadata().map_or(0, |about| about.len().min(MAX));
    read(&mut file, usize::try_from(size).unwrap_or(0))
}

/// Reads all of a file; only its head, where that is enough to see that it is no text.
/// `size` is what it is expected to have: a text that is not moved while it grows is in
/// memory once.
fn read(file: &mut dyn Read, size: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(HEAD as u64).read_to_end(&mut bytes)?;
    if !bytes.contains(&0) || encoding::is_utf16(&bytes) {
        // One byte more than expected, to detect the end.
        bytes.reserve_exact(size.saturating_sub(bytes.len()) + 1);
        file.take(MAX).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 >= MAX {
        return Err(io::Error::other("larger than 4 GiB"));
    }
    Ok(bytes)
}

/// Whether a folder keeps this for itself: Kubernetes has the files of a mounted ConfigMap in folders such
/// as `..data`, to which links beside them lead.
pub(crate) fn starts_with_dots(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b"..")
}

/// Whether a file of a folder is read.
pub(crate) fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("yaml" | "yml" | "json"))
}

fn name(path: &Path) -> Text {
    path.to_string_lossy().into()
}

fn origin(path: &Path) -> Origin {
    Origin::file(name(path))
}

/// The place after `before`.
fn place(path: &Path, before: &[u8]) -> Origin {
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
    let saturated = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Origin::at(name(path), saturated(line), saturated(column))
}
