//! Writes a capture to a folder: the whole of it, or nothing.

use std::path::{Path, PathBuf};
use std::{fs, io, process};

use thiserror::Error;
use uturn_model::CaptureFile;

use crate::capture::Captured;

/// The folder of a bundle with a folder for each node.
const NODES: &str = "nodes";

/// Why a capture could not be written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// There is one already.
    #[error("{} is there already: remove it, or name another place", .0.display())]
    Exists(PathBuf),
    /// A file or folder could not be written.
    #[error("{}: {}", .0.display(), .1)]
    Io(PathBuf, io::Error),
}

/// Writes a capture as a node of a bundle: into `nodes/NAME` of this folder, which may be there.
/// Returns that folder.
///
/// All files are written to a folder beside it, which takes its place at the end.
///
/// # Errors
/// If the bundle has a capture of this node already, or a file cannot be written.
pub fn write(captured: &Captured, bundle: &Path) -> Result<PathBuf, WriteError> {
    let node = bundle.join(NODES).join(&captured.manifest.node);
    if node.exists() {
        return Err(WriteError::Exists(node));
    }
    let mut name = bundle.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".partial-{}", process::id()));
    let partial = bundle.with_file_name(name);
    let written = write_whole(captured, bundle, &partial);
    // Nothing of it is left, whether it went well or not.
    let _ = fs::remove_dir_all(&partial);
    written.map(|()| node)
}

fn write_whole(captured: &Captured, bundle: &Path, partial: &Path) -> Result<(), WriteError> {
    let nodes = partial.join(NODES);
    let folder = nodes.join(&captured.manifest.node);
    create(&folder)?;
    for (name, text) in &captured.files {
        put(&folder.join(name), text)?;
    }
    let manifest = serde_json::to_string_pretty(&captured.manifest)
        .expect("a manifest has no maps with other keys than texts");
    put(&folder.join(CaptureFile::Manifest.file_name()), &(manifest + "\n"))?;
    if !bundle.exists() {
        return rename(partial, bundle);
    }
    let there = bundle.join(NODES);
    if !there.exists() {
        return rename(&nodes, &there);
    }
    rename(&folder, &there.join(&captured.manifest.node))
}

fn create(folder: &Path) -> Result<(), WriteError> {
    fs::create_dir_all(folder).map_err(|why| WriteError::Io(folder.to_owned(), why))
}

fn put(path: &Path, text: &str) -> Result<(), WriteError> {
    fs::write(path, text).map_err(|why| WriteError::Io(path.to_owned(), why))
}

fn rename(from: &Path, to: &Path) -> Result<(), WriteError> {
    fs::rename(from, to).map_err(|why| WriteError::Io(to.to_owned(), why))
}
