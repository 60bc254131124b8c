//! Files as they were read.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use uturn_lb::hash::fnv1a;

/// Files and folders, and what they held when they were read.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    paths: Vec<PathBuf>,
    contents: Vec<(PathBuf, Option<u64>)>,
}

impl Seen {
    /// Reads files, and the files of folders that end with `.yaml`, `.yml` and `.json`.
    pub fn now(paths: Vec<PathBuf>) -> Self {
        let contents = contents(&paths);
        Self { paths, contents }
    }

    pub(super) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Reads them again. Returns whether they hold something else now.
    pub(super) fn look_again(&mut self) -> bool {
        let contents = contents(&self.paths);
        let has_changed = contents != self.contents;
        self.contents = contents;
        has_changed
    }
}

/// Each file with a hash of what it holds; `None` if it cannot be read.
fn contents(paths: &[PathBuf]) -> Vec<(PathBuf, Option<u64>)> {
    let files = paths.iter().flat_map(|path| files(path));
    let hash = |path: &Path| fs::read(path).ok().map(|bytes| fnv1a(&bytes));
    files.map(|path| (hash(&path), path)).map(|(hash, path)| (path, hash)).collect()
}

/// The files of a path: itself, or those of a folder.
fn files(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    let mut files = Vec::new();
    each_folder(path, &mut HashSet::new(), &mut |_, entries| {
        files.extend(entries.iter().filter(|entry| !entry.is_dir()).cloned());
    });
    files
}

/// Visits a folder and those below it, with what of each is read.
pub(super) fn each_folder(
    folder: &Path,
    visited: &mut HashSet<PathBuf>,
    visit: &mut dyn FnMut(&Path, &[PathBuf]),
) {
    let is_new = folder.canonicalize().is_ok_and(|real| visited.insert(real));
    let Some(entries) = fs::read_dir(folder).ok().filter(|_| is_new) else { return };
    let mut entries: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.file_name().is_some_and(|name| is_read(name, path.is_dir())))
        .collect();
    entries.sort();
    visit(folder, &entries);
    for entry in entries.iter().filter(|entry| entry.is_dir()) {
        each_folder(entry, visited, visit);
    }
}

/// Whether a file or folder of this name is read with the folder that it is in.
pub(super) fn is_read(name: &OsStr, is_folder: bool) -> bool {
    let extension = Path::new(name).extension().and_then(OsStr::to_str);
    let is_hidden = name.as_encoded_bytes().starts_with(b"..");
    !is_hidden && (is_folder || matches!(extension, Some("yaml" | "yml" | "json")))
}
