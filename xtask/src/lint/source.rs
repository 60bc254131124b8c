//! The crates of the tree, and their files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::{self, Failure};

/// Returns the `src` folders of all crates, including xtask's own.
pub(super) fn crates() -> Result<Vec<PathBuf>, Failure> {
    let crates = shell::root().join("crates");
    let mut folders = vec![shell::root().join("xtask/src"), crates.join("uturn/src")];
    for room in entries(&crates)? {
        for entry in entries(&room)? {
            folders.push(entry.join("src"));
        }
    }
    folders.retain(|folder| folder.is_dir());
    folders.sort();
    Ok(folders)
}

/// Returns all Rust files below a folder, in order.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = all_files(folder)?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    Ok(files)
}

/// Returns all files below a folder, in order.
pub(super) fn all_files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in entries(folder)? {
        if path.is_dir() {
            files.extend(all_files(&path)?);
        } else {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Reads a file.
pub(super) fn read(file: &Path) -> Result<String, Failure> {
    fs::read_to_string(file).map_err(|error| unreadable(file, &error))
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = fs::read_dir(folder).map_err(|error| unreadable(folder, &error))?;
    entries.map(|entry| Ok(entry.map_err(|error| unreadable(folder, &error))?.path())).collect()
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure(format!("{} cannot be read: {error}", path.display()))
}
