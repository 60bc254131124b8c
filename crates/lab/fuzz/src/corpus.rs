//! The seeds: a folder of `fuzz/corpus` for each target.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// Returns the folder `fuzz` of this repository.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz")
}

/// Returns the seeds of a target, sorted by name; none if it has no folder.
///
/// # Errors
/// If a seed cannot be read.
pub fn seeds(target: &str) -> io::Result<Vec<(String, Vec<u8>)>> {
    let folder = folder().join("corpus").join(target);
    let read = |name: String| std::fs::read(folder.join(&name)).map(|bytes| (name, bytes));
    names(&folder)?.into_iter().map(read).collect()
}

/// Returns the names in a folder, sorted; none if the folder does not exist.
///
/// # Errors
/// If the folder exists and cannot be listed.
pub fn names(folder: &Path) -> io::Result<BTreeSet<String>> {
    match std::fs::read_dir(folder) {
        Ok(list) => {
            list.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(error),
    }
}
