//! Watched files, and the contents that were read from them.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use uturn_lb::hash::fnv1a;

/// Files and folders, and what they contained when they were read.
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

    /// Reads the files again. Returns whether their contents have changed.
    pub(super) fn look_again(&mut self) -> bool {
        let contents = contents(&self.paths);
        let has_changed = contents != self.contents;
        self.contents = contents;
        has_changed
    }
}

/// Returns each file with a hash of its contents; `None` if it cannot be read.
fn contents(paths: &[PathBuf]) -> Vec<(PathBuf, Option<u64>)> {
    let files = paths.iter().flat_map(|path| files(path));
    let hash = |path: &Path| fs::read(path).ok().map(|bytes| fnv1a(&bytes));
    files.map(|path| (hash(&path), path)).map(|(hash, path)| (path, hash)).collect()
}

/// Returns the files of a path: the path itself, or the files of the folder.
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

/// Visits a folder and those below it, each with the files and folders in it that are read.
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

/// Returns whether a file or folder of this name is read with the folder that contains it.
pub(super) fn is_read(name: &OsStr, is_folder: bool) -> bool {
    let extension = Path::new(name).extension().and_then(OsStr::to_str);
    let is_hidden = name.as_encoded_bytes().starts_with(b"..");
    !is_hidden && (is_folder || matches!(extension, Some("yaml" | "yml" | "json")))
}
