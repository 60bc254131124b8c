//! Reads a bundle from an archive, in memory: nothing of it is written to disk.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path};

use flate2::read::MultiGzDecoder;
use uturn_model::capture::CapturedText;
use uturn_model::{Capture, CaptureFile, Name, Origin};

use super::{Bundle, MANIFEST, NODES, OBJECTS, node_name, place, unreadable};
use crate::fault::Fault;
use crate::source::Source;

/// How much all files may hold in all: an archive of a few bytes can be many once unpacked.
const MAX_BYTES: u64 = 2 << 30;
/// How many files there may be.
const MAX_FILES: usize = 200_000;

/// Reads an archive.
pub(super) fn read(path: &Path) -> Bundle {
    let mut bundle = Bundle::default();
    let files = File::open(path).map_err(|why| unreadable(path, &why));
    match files.and_then(|file| unpack(path, file, MAX_BYTES)) {
        Ok(files) => fill(&mut bundle, path, without_top(files)),
        Err(fault) => bundle.faults.push(fault),
    }
    bundle
}

type Files = BTreeMap<String, Vec<u8>>;

/// The files of an archive by name.
fn unpack(path: &Path, from: impl Read, most: u64) -> Result<Files, Fault> {
    let broken = |why: &io::Error| {
        let fault = Fault::new(place(path), format!("cannot be read as an archive: {why}"));
        fault.hint("expected a folder, or a .tar.gz of one")
    };
    let mut archive = tar::Archive::new(MultiGzDecoder::new(from).take(most + (64 << 20)));
    let mut files = Files::new();
    let mut left = most;
    for entry in archive.entries().map_err(|why| broken(&why))? {
        let mut entry = entry.map_err(|why| broken(&why))?;
        let name = entry.path_bytes().into_owned();
        let within = |message: String| Fault::new(place(path), message);
        let Some(name) = name_within(&name) else {
            let name = String::from_utf8_lossy(&name).into_owned();
            return Err(within(format!("{name:?} leads out of the archive")));
        };
        match entry.header().entry_type() {
            tar::EntryType::Regular | tar::EntryType::Continuous => {}
            tar::EntryType::Directory | tar::EntryType::XGlobalHeader => continue,
            _ => return Err(within(format!("{name:?} is neither a file nor a folder"))),
        }
        let mut bytes = Vec::new();
        let read = (&mut entry).take(left + 1).read_to_end(&mut bytes);
        let read = read.map_err(|why| broken(&why))? as u64;
        if read > left {
            return Err(within(format!("more than {} MiB once unpacked", most >> 20)));
        }
        left -= read;
        files.insert(name, bytes);
        if files.len() > MAX_FILES {
            return Err(within(format!("more than {MAX_FILES} files")));
        }
    }
    // What follows the last file shows whether all is as it was written.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(|why| broken(&why))?;
    Ok(files)
}

/// A name as a path within the archive. Returns `None` if it leads elsewhere.
fn name_within(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    let mut parts = Vec::new();
    for part in Path::new(name).components() {
        match part {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::CurDir => {}
            _ => return None,
        }
    }
    // What another system takes for a way out is none here, and of no use.
    (!name.contains('\\')).then(|| parts.join("/"))
}

/// Leaves out the folder that all files are in: archives are made of a folder or of what is in it.
fn without_top(files: Files) -> Files {
    let is_bundle = |name: &str| {
        let first = name.split('/').next().unwrap_or_default();
        name == MANIFEST || first == NODES || first == OBJECTS
    };
    let top = |name: &str| name.split_once('/').map(|(top, _)| top.to_owned());
    let first = files.keys().next().and_then(|name| top(name));
    match first {
        Some(first)
            if !files.keys().any(|name| is_bundle(name))
                && files.keys().all(|name| top(name).as_ref() == Some(&first)) =>
        {
            let below = |name: String| name[first.len() + 1..].to_owned();
            files.into_iter().map(|(name, bytes)| (below(name), bytes)).collect()
        }
        _ => files,
    }
}

fn fill(bundle: &mut Bundle, path: &Path, files: Files) {
    for (name, bytes) in files {
        let shown = format!("{}/{name}", path.display());
        let parts: Vec<&str> = name.split('/').collect();
        let is_object = || [".yaml", ".yml", ".json"].iter().any(|end| name.ends_with(end));
        let captured =
            |file: &str| CaptureFile::ALL.into_iter().find(|captured| captured.file_name() == file);
        let kind = match parts.as_slice() {
            [MANIFEST] => FileKind::Manifest,
            [NODES, node, file] => match captured(file) {
                Some(file) => FileKind::Captured((*node).to_owned(), file),
                None => continue,
            },
            [NODES, ..] => continue,
            _ if is_object() => FileKind::Objects,
            _ => continue,
        };
        let Ok(text) = String::from_utf8(bytes) else {
            bundle.faults.push(Fault::new(Origin::file(shown), "not UTF-8"));
            continue;
        };
        match kind {
            FileKind::Manifest => bundle.add_manifest(Origin::file(shown), &text),
            FileKind::Objects => bundle.sources.push(Source { name: shown.into(), text }),
            FileKind::Captured(node, file) => match node_name(&node, || Origin::file(&*shown)) {
                Ok(node) => {
                    let text = CapturedText { path: (&*shown).into(), text: text.into() };
                    capture(bundle, node).files.insert(file, text);
                }
                Err(fault) => bundle.faults.push(fault),
            },
        }
    }
    if bundle.sources.is_empty() && bundle.captures.is_empty() && bundle.faults.is_empty() {
        let fault = Fault::new(place(path), "no objects and no captures in this archive");
        bundle.faults.push(fault);
    }
}

/// What a file of an archive is.
enum FileKind {
    Manifest,
    Objects,
    Captured(String, CaptureFile),
}

fn capture(bundle: &mut Bundle, node: Name) -> &mut Capture {
    let new = Capture { node: node.clone(), files: BTreeMap::default() };
    bundle.captures.entry(node).or_insert(new)
}

#[cfg(test)]
mod tests;
