//! Reads a node's capture: a folder of dumps of its kernel, as text.
//!
//! The files have the names of [`CaptureFile`]; other files are ignored. A folder without any
//! file of a capture is a fault.

use std::path::{Path, PathBuf};

use uturn_document::{Fault, Room, gather_of_folder};
use uturn_model::capture::CapturedText;
use uturn_model::{Capture, CaptureFile, Name, Origin};

/// Reads a folder as the capture of a node.
///
/// # Errors
/// Returns faults if the folder or a file cannot be read, or if the folder has no file of a
/// capture.
pub fn read_capture(folder: &Path, node: Name) -> Result<Capture, Vec<Fault>> {
    read_capture_within(folder, node, &mut Room::default())
}

/// Reads a folder as the capture of a node, up to the limit of `room`.
pub(crate) fn read_capture_within(
    folder: &Path,
    node: Name,
    room: &mut Room,
) -> Result<Capture, Vec<Fault>> {
    let whole = Origin::file(folder.display().to_string());
    if !folder.is_dir() {
        let found = if folder.exists() { "something else" } else { "nothing" };
        return Err(vec![Fault::new(whole, format!("expected a folder, found {found}"))]);
    }
    let there: Vec<(CaptureFile, PathBuf)> = CaptureFile::ALL
        .into_iter()
        .map(|file| (file, folder.join(file.file_name())))
        .filter(|(_, path)| path.exists())
        .collect();
    if there.is_empty() {
        let names = CaptureFile::ALL.iter().filter(|file| **file != CaptureFile::Manifest);
        let names: Vec<&str> = names.map(|file| file.file_name()).collect();
        let fault = Fault::new(whole, "no file of a capture in this folder");
        return Err(vec![fault.hint(format!("expected some of: {}", names.join(", ")))]);
    }
    let mut capture = Capture { node, files: Default::default() };
    let mut faults = Vec::new();
    for (file, path) in there {
        let (sources, more) = gather_of_folder(&path, room);
        faults.extend(more);
        for source in sources {
            let text = CapturedText { path: source.name, text: source.text.into() };
            capture.files.insert(file, text);
        }
    }
    if faults.is_empty() { Ok(capture) } else { Err(faults) }
}
