//! The seeds: a folder of `fuzz/corpus` a target.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// The folder `fuzz` of this tree.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// Every seed of a target by its name, in the order of names; none when it has no folder.
///
/// # Errors
/// When a seed cannot be read.
pub fn seeds(target: &str) -> io::Result<Vec<(String, Vec<u8>)>> {
    let folder = folder().join("corpus").join(target);
    let read = |name: String| std::fs::read(folder.join(&name)).map(|bytes| (name, bytes));
    names(&folder)?.into_iter().map(read).collect()
}

/// Names in a folder, in order; none when there is no such folder.
///
/// # Errors
/// When it is there and cannot be listed.
pub fn names(folder: &Path) -> io::Result<BTreeSet<String>> {
    match std::fs::read_dir(folder) {
        Ok(list) => list.map(|one| Ok(one?.file_name().to_string_lossy().into_owned())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(error),
    }
}
