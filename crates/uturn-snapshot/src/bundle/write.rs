//! Writes a bundle: all of it, or nothing.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};
use std::process;

use flate2::Compression;
use flate2::write::GzEncoder;

/// How an archive's name ends.
const ENDINGS: [&str; 2] = [".tar.gz", ".tgz"];

/// Whether a path names an archive.
pub fn is_archive(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Writes a bundle under a temporary name beside its own, which it gets in [`BundleWriter::finish`].
/// Dropped before that, it leaves nothing.
pub struct BundleWriter {
    path: PathBuf,
    temporary: PathBuf,
    to: Option<Target>,
}

enum Target {
    Folder,
    Archive(Box<tar::Builder<GzEncoder<File>>>),
}

impl fmt::Debug for BundleWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BundleWriter").field("path", &self.path).finish_non_exhaustive()
    }
}

impl BundleWriter {
    /// Begins a bundle: an archive if the path ends in `.tar.gz` or `.tgz`, else a folder.
    ///
    /// # Errors
    /// If there is something at the path already, or its folder cannot be written to.
    pub fn create(path: &Path) -> io::Result<Self> {
        if path.symlink_metadata().is_ok() {
            let message = format!("{} exists already", path.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        let name = path.file_name().ok_or_else(|| {
            let message = format!("{} is no name of a file or folder", path.display());
            io::Error::new(io::ErrorKind::InvalidInput, message)
        })?;
        let temporary = format!(".{}.{}.partial", name.to_string_lossy(), process::id());
        let temporary = path.with_file_name(temporary);
        let to = match is_archive(path) {
            true => {
                let file = File::options().write(true).create_new(true).open(&temporary)?;
                let zipped = GzEncoder::new(file, Compression::default());
                Target::Archive(Box::new(tar::Builder::new(zipped)))
            }
            false => {
                fs::create_dir(&temporary)?;
                Target::Folder
            }
        };
        Ok(Self { path: path.to_owned(), temporary, to: Some(to) })
    }

    /// Adds a file: `objects/pods.json`.
    ///
    /// # Errors
    /// If it cannot be written, or the name leads out of the bundle.
    pub fn add(&mut self, name: &str, text: &[u8]) -> io::Result<()> {
        let parts = Path::new(name).components();
        if name.is_empty() || !parts.clone().all(|part| matches!(part, Component::Normal(_))) {
            let message = format!("{name:?} is no name within a bundle");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        match self.to.as_mut().expect("it is open until it is finished") {
            Target::Folder => {
                let path = self.temporary.join(name);
                fs::create_dir_all(path.parent().unwrap_or(&self.temporary))?;
                File::options().write(true).create_new(true).open(path)?.write_all(text)
            }
            Target::Archive(archive) => {
                let mut header = tar::Header::new_gnu();
                header.set_size(text.len() as u64);
                header.set_mode(0o644);
                header.set_cksum();
                archive.append_data(&mut header, name, text)
            }
        }
    }

    /// Gives the bundle its name.
    ///
    /// # Errors
    /// If the rest cannot be written, or there is something at the path by now.
    pub fn finish(mut self) -> io::Result<()> {
        if let Some(Target::Archive(archive)) = self.to.take() {
            archive.into_inner()?.finish()?.sync_all()?;
        }
        if self.path.symlink_metadata().is_ok() {
            let message = format!("{} exists already", self.path.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        fs::rename(&self.temporary, &self.path)
    }
}

impl Drop for BundleWriter {
    fn drop(&mut self) {
        // Once it has its name there is nothing here; and what cannot be removed, stays.
        let _ = match self.temporary.is_dir() {
            true => fs::remove_dir_all(&self.temporary),
            false => fs::remove_file(&self.temporary),
        };
    }
}
