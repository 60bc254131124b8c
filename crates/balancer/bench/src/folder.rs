//! A folder for configurations and logs.

use std::fs;
use std::path::PathBuf;

use crate::failure::Failure;

/// A folder that is removed when this is dropped.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn make() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("uturn-bench-{}", std::process::id()));
        let doing = format!("make the folder {}", path.display());
        fs::create_dir(&path).map_err(Failure::of(doing))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
