//! Reads a bundle from an archive in memory: nothing of it is written to disk. Files are read one
//! after the other, and only the contents of files that the bundle keeps are stored.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path};

use tar::{Archive, Entry, EntryType, PaxExtensions};
use uturn_document::{Fault, Room, Source, UnpackLimit, is_manifest, starts_with_dots};
use uturn_model::capture::CapturedText;
use uturn_model::{Capture, CaptureFile, Name, Origin};

use super::limits::{Met, Unpacked};
use super::{Bundle, MANIFEST, NODES, OBJECTS, node_name, place, unreadable};

/// The maximum number of files, folders and headers of an archive.
const MAX_ENTRIES: usize = 200_000;
/// The maximum length of a file's name, in bytes.
const MAX_NAME: u64 = 4096;
/// The maximum size of a header that extends the next one, in bytes.
const MAX_EXTENSION: u64 = 64 << 10;

/// Reads an archive.
pub(super) fn read(path: &Path, room: &mut Room) -> Bundle {
    let mut bundle = Bundle::default();
    if room.is_exceeded() {
        return bundle;
    }
    let files = File::open(path).map_err(|why| unreadable(path, &why));
    match files.and_then(|file| unpack(path, file, room)) {
        Ok(files) => fill(&mut bundle, path, without_top(files)),
        Err(fault) => bundle.faults.push(fault),
    }
    bundle
}

/// The contents of an archive's files by name; `None` for files that no bundle keeps.
type Files = BTreeMap<String, Option<Vec<u8>>>;

fn unpack(path: &Path, from: impl Read, room: &mut Room) -> Result<Files, Fault> {
    let unpacked = Unpacked::new(from, room);
    let (met, count) = (unpacked.met(), unpacked.unpacked());
    let mut archive = Archive::new(unpacked);
    let mut reading = Reading { limit: room.limit(), ..Reading::default() };
    let read = reading.all(&mut archive);
    // Reading the rest of the archive verifies its checksum.
    let read = read.and_then(|()| {
        io::copy(&mut archive.into_inner(), &mut io::sink()).map(drop).map_err(Trouble::Io)
    });
    let Reading { files, last, .. } = reading;
    let was_read_before = room.left() < room.limit().bytes();
    room.count(count.get());
    let fault = |message: String| Fault::new(place(path), message);
    match (read, met.get()) {
        (Ok(()), _) => Ok(files),
        (Err(Trouble::Refused(message)), None) => Err(fault(message)),
        (Err(Trouble::Io(why)), None) => Err(fault(format!("cannot be read as an archive: {why}"))
            .hint("expected a folder, or a .tar.gz of one")),
        (Err(_), Some(met)) => {
            let at = last.map_or_else(String::new, |name| format!(", at {name:?}"));
            let before = match met {
                Met::Bytes(_) if was_read_before => " together with what was read before",
                _ => "",
            };
            Err(fault(format!("{met}{before}{at}")).hint(Room::advice()))
        }
    }
}

/// The reason why an archive is not read to its end.
enum Trouble {
    Io(io::Error),
    Refused(String),
}

impl From<io::Error> for Trouble {
    fn from(why: io::Error) -> Self {
        Self::Io(why)
    }
}

/// The state of reading an archive.
#[derive(Default)]
struct Reading {
    limit: UnpackLimit,
    files: Files,
    folders: BTreeSet<String>,
    entries: usize,
    /// The name of the file that was begun last.
    last: Option<String>,
    /// The name of the next file, if a header states it.
    next_name: Option<Vec<u8>>,
}

impl Reading {
    fn all<R: Read>(&mut self, archive: &mut Archive<R>) -> Result<(), Trouble> {
        // `raw` yields headers that extend the next one as entries, so that their size can be
        // limited.
        for entry in archive.entries()?.raw(true) {
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return Err(Trouble::Refused(format!("more than {MAX_ENTRIES} files and folders")));
            }
            self.entry(entry?)?;
        }
        Ok(())
    }

    fn entry<R: Read>(&mut self, mut entry: Entry<'_, R>) -> Result<(), Trouble> {
        let kind = entry.header().entry_type();
        match kind {
            EntryType::GNULongName => {
                let mut name = extension(&mut entry, MAX_NAME + 1)?;
                name.truncate(name.iter().position(|byte| *byte == 0).unwrap_or(name.len()));
                self.next_name = Some(name);
                return Ok(());
            }
            EntryType::XHeader => {
                let text = extension(&mut entry, MAX_EXTENSION)?;
                for field in PaxExtensions::new(&text) {
                    let field = field?;
                    match field.key_bytes() {
                        b"path" => self.next_name = Some(field.value_bytes().to_owned()),
                        b"size" => {
                            let why = "a file whose size is not in its header, as with files of 8 \
                                       GiB and more";
                            return Err(Trouble::Refused(why.to_owned()));
                        }
                        key if key.starts_with(b"GNU.sparse.") => {
                            return Err(Trouble::Refused("it has a sparse file".to_owned()));
                        }
                        _ => {}
                    }
                }
                return Ok(());
            }
            EntryType::XGlobalHeader => return Ok(()),
            _ => {}
        }
        let stated = self.next_name.take();
        let name = stated.unwrap_or_else(|| entry.path_bytes().into_owned());
        let lossy = || String::from_utf8_lossy(&name).chars().take(200).collect::<String>();
        if name.len() as u64 > MAX_NAME {
            let message = format!("{:?}…: a name of more than {MAX_NAME} bytes", lossy());
            return Err(Trouble::Refused(message));
        }
        let Some(name) = name_within(&name) else {
            return Err(Trouble::Refused(format!("{:?} leads out of the archive", lossy())));
        };
        match kind {
            EntryType::Regular | EntryType::Continuous => {}
            EntryType::Directory => {
                self.folders.insert(name);
                return Ok(());
            }
            _ => {
                let message = format!("{name:?} is neither a file nor a folder");
                return Err(Trouble::Refused(message));
            }
        }
        if self.files.contains_key(&name) || self.folders.contains(&name) {
            return Err(Trouble::Refused(format!("{name:?} is in it twice")));
        }
        self.last = Some(name.clone());
        let bytes = if may_be_kept(&name) {
            Some(whole(&mut entry, self.limit)?)
        } else {
            // Iterating to the next header skips the contents.
            None
        };
        self.files.insert(name, bytes);
        Ok(())
    }
}

/// Reads all bytes of a file into a buffer that is allocated once.
fn whole<R: Read>(entry: &mut Entry<'_, R>, limit: UnpackLimit) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // Reserved memory is not used before it is written, so a false size in a header costs nothing.
    let size = entry.header().size()?.min(limit.bytes());
    bytes.reserve_exact(usize::try_from(size).unwrap_or(0));
    entry.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a header that extends the next one. A header of more than `most` bytes is refused.
fn extension<R: Read>(entry: &mut Entry<'_, R>, most: u64) -> Result<Vec<u8>, Trouble> {
    let size = entry.header().size()?;
    if size > most {
        return Err(Trouble::Refused(format!(
            "a header of {size} bytes, which is more than the {most} that one may have"
        )));
    }
    let mut bytes = Vec::new();
    entry.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns whether [`fill`] may keep a file of this name, in any folder.
fn may_be_kept(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    file == MANIFEST || is_object(name) || captured(file).is_some()
}

fn is_object(name: &str) -> bool {
    let path = Path::new(name);
    is_manifest(path) && !path.iter().any(starts_with_dots)
}

fn captured(file: &str) -> Option<CaptureFile> {
    CaptureFile::ALL.into_iter().find(|captured| captured.file_name() == file)
}

/// Normalizes a name to a path within the archive. Returns `None` if it leads out of the archive.
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
    // A backslash would lead out of the archive on other systems; here it is an ordinary character,
    // but of no use.
    (!name.contains('\\')).then(|| parts.join("/"))
}

/// Removes the top folder if all files are in it: archives are made of a folder or of its contents.
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
    // The order is that of a folder: the names of its entries, then of those below each.
    let mut files: Vec<_> = files.into_iter().collect();
    files.sort_by(|(one, _), (other, _)| Path::new(one).cmp(Path::new(other)));
    for (name, bytes) in files {
        let shown = format!("{}/{name}", path.display());
        let parts: Vec<&str> = name.split('/').collect();
        let kind = match parts.as_slice() {
            [MANIFEST] => FileKind::Manifest,
            [NODES, node, file] => match captured(file) {
                Some(file) => FileKind::Captured((*node).to_owned(), file),
                None => continue,
            },
            [NODES, ..] => continue,
            _ if is_object(&name) => FileKind::Objects,
            _ => continue,
        };
        let Ok(text) = String::from_utf8(bytes.unwrap_or_default()) else {
            bundle.faults.push(Fault::new(Origin::file(shown), "not UTF-8"));
            continue;
        };
        match kind {
            FileKind::Manifest => bundle.add_manifest(Origin::file(shown), &text),
            FileKind::Objects => {
                let source = Source { name: shown.into(), text };
                if parts.len() > 1 {
                    bundle.other_files.note_of_folder(&source);
                }
                bundle.sources.push(source);
            }
            FileKind::Captured(node, file) => match node_name(&node, || Origin::file(&*shown)) {
                Ok(node) => {
                    let text = CapturedText { path: (&*shown).into(), text: text.into() };
                    capture(bundle, node).files.insert(file, text);
                }
                Err(fault) => bundle.faults.push(fault),
            },
        }
    }
    bundle.other_files.leave_out(&mut bundle.sources);
    if bundle.sources.is_empty() && bundle.captures.is_empty() && bundle.faults.is_empty() {
        let fault = Fault::new(place(path), "no objects and no captures in this archive");
        bundle.faults.push(fault);
    }
}

/// The role of a file in a bundle.
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
