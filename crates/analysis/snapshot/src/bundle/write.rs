//! Writes a bundle completely, or not at all.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write as _};
use std::path::{Component, Path, PathBuf};
use std::process;

use flate2::Compression;
use flate2::write::GzEncoder;

/// The file extensions of archives.
const ENDINGS: [&str; 2] = [".tar.gz", ".tgz"];

/// Returns whether a path names an archive.
pub fn is_archive(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Writes a bundle under a temporary name beside its final one, to which [`BundleWriter::finish`]
/// renames it. A writer that is dropped before that removes what it wrote.
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
    /// Begins a bundle: an archive if the path ends in `.tar.gz` or `.tgz`, otherwise a folder.
    ///
    /// # Errors
    /// Returns an error if the path exists, or if its folder cannot be written to.
    pub fn create(path: &Path) -> io::Result<Self> {
        if path.symlink_metadata().is_ok() {
            let message = format!("{} exists already", path.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        let temporary = temporary(path)?;
        if !is_archive(path) {
            return Self::folder(path, &temporary);
        }
        let file = File::options().write(true).create_new(true).open(&temporary)?;
        let zipped = GzEncoder::new(file, Compression::default());
        let to = Some(Target::Archive(Box::new(tar::Builder::new(zipped))));
        Ok(Self { path: path.to_owned(), temporary, to })
    }

    /// Begins a folder under this temporary name.
    pub(super) fn folder(path: &Path, temporary: &Path) -> io::Result<Self> {
        fs::create_dir(temporary)?;
        let (path, temporary) = (path.to_owned(), temporary.to_owned());
        Ok(Self { path, temporary, to: Some(Target::Folder) })
    }

    /// Adds a file, such as `objects/pods.json`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written, or if the name leads out of the bundle.
    pub fn add(&mut self, name: &str, text: &[u8]) -> io::Result<()> {
        self.add_parts(name, &[text])
    }

    /// Adds a file whose text is in parts.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn add_parts(&mut self, name: &str, parts: &[&[u8]]) -> io::Result<()> {
        let mut steps = Path::new(name).components();
        if name.is_empty() || !steps.all(|step| matches!(step, Component::Normal(_))) {
            let message = format!("{name:?} is not a valid name within a bundle");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        match self.to.as_mut().expect("it is open until it is finished") {
            Target::Folder => {
                let path = self.temporary.join(name);
                fs::create_dir_all(path.parent().unwrap_or(&self.temporary))?;
                let file = File::options().write(true).create_new(true).open(path)?;
                let mut file = BufWriter::with_capacity(1 << 16, file);
                parts.iter().try_for_each(|part| file.write_all(part))?;
                file.flush()
            }
            Target::Archive(archive) => {
                let mut header = tar::Header::new_gnu();
                header.set_size(parts.iter().map(|part| part.len() as u64).sum());
                header.set_mode(0o644);
                header.set_cksum();
                archive.append_data(&mut header, name, Parts(parts, 0))
            }
        }
    }

    /// Completes the bundle and renames it to its final name.
    ///
    /// # Errors
    /// Returns an error if the rest cannot be written, or if the path exists by now.
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

/// Returns the temporary name of a bundle, beside its final one.
pub(super) fn temporary(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| {
        let message = format!("{} is not the name of a file or folder", path.display());
        io::Error::new(io::ErrorKind::InvalidInput, message)
    })?;
    let temporary = format!(".{}.{}.partial", name.to_string_lossy(), process::id());
    Ok(path.with_file_name(temporary))
}

/// A reader of one part after the other: the remaining parts, and the number of bytes read of the
/// first.
struct Parts<'p>(&'p [&'p [u8]], usize);

impl Read for Parts<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let [first, rest @ ..] = self.0 {
            let left = &first[self.1..];
            if left.is_empty() {
                (self.0, self.1) = (rest, 0);
                continue;
            }
            let count = left.len().min(buffer.len());
            buffer[..count].copy_from_slice(&left[..count]);
            self.1 += count;
            return Ok(count);
        }
        Ok(0)
    }
}

impl Drop for BundleWriter {
    fn drop(&mut self) {
        // After the renaming there is nothing to remove. An error is ignored.
        let _ = if self.temporary.is_dir() {
            fs::remove_dir_all(&self.temporary)
        } else {
            fs::remove_file(&self.temporary)
        };
    }
}
