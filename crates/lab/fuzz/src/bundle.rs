//! Bundles, and their redaction. An input is the files of a bundle (`files.rs`), or an archive as
//! it is.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use uturn_redact::{Key, RedactError, redact};
use uturn_snapshot::Manifests;
use uturn_snapshot::bundle::BundleWriter;

use crate::files::files;
use crate::text;

/// The first bytes of an archive.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Reads a bundle as an archive and as a folder. Each is read or refused with reasons, and read the
/// same each time. If both are read, both have the same objects.
pub fn bundle(data: &[u8]) -> bool {
    let place = Place::new();
    let archive = place.0.join("bundle.tar.gz");
    if data.starts_with(&GZIP) {
        fs::write(&archive, data).expect("a file of our own");
        return texts(&archive).is_some();
    }
    let folder = place.0.join("bundle");
    if !write(data, &archive) || !write(data, &folder) {
        return false;
    }
    let [in_archive, in_folder] = [texts(&archive), texts(&folder)];
    if let (Some(in_archive), Some(in_folder)) = (&in_archive, &in_folder)
        && is_usual(data)
    {
        assert_eq!(in_archive, in_folder, "in an archive and in a folder");
    }
    in_archive.or(in_folder).is_some()
}

/// Returns whether all files are at the top, or in the folders that bundles have: another folder
/// may have files that are left out, such as those of dependencies.
fn is_usual(data: &[u8]) -> bool {
    files(&text(data)).iter().all(|(name, _)| match name.split_once('/') {
        Some(("objects", rest)) => !rest.contains('/') && !rest.to_lowercase().contains("kustom"),
        Some(("nodes", _)) => true,
        Some(_) => false,
        None => true,
    })
}

/// Returns the texts of a bundle's objects.
fn texts(path: &Path) -> Option<Vec<String>> {
    let texts = || {
        let manifests = gather(path)?;
        Some(manifests.sources().iter().map(|source| source.text.clone()).collect::<Vec<String>>())
    };
    let read = texts();
    assert_eq!(read, texts(), "read twice");
    read
}

/// Redacts what can be read. The result is the same each time, and can be read.
pub fn redaction(data: &[u8]) -> bool {
    let place = Place::new();
    let archive = place.0.join("bundle.tar.gz");
    let Some(manifests) = write(data, &archive).then(|| gather(&archive)).flatten() else {
        return false;
    };
    let [first, second] =
        ["fuzz", "fuzz"].map(|key| redact(&manifests, &Key::given(key.as_bytes())));
    match (first, second) {
        (Ok(first), Ok(second)) => {
            assert_eq!(first.files, second.files);
            assert_eq!(first.map(), second.map());
            true
        }
        (Err(RedactError::Faults(faults)), Err(RedactError::Faults(_))) => {
            assert!(!faults.is_empty(), "a refusal says why");
            false
        }
        (first, _) => panic!("redacted into what cannot be read: {first:?}"),
    }
}

/// A folder that is removed when this is dropped.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("uturn-fuzz-{}-{number}", std::process::id());
        let place = std::env::temp_dir().join(name);
        fs::create_dir(&place).expect("a folder of our own");
        Self(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A folder that remains is in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Writes the files of an input as a bundle. Returns `false` if one of their names is invalid.
fn write(data: &[u8], path: &Path) -> bool {
    let text = text(data);
    let files = files(&text);
    let Ok(mut writer) = BundleWriter::create(path) else { return false };
    files.iter().all(|(name, text)| writer.add(name, text.as_bytes()).is_ok())
        && writer.finish().is_ok()
}

fn gather(path: &Path) -> Option<Manifests> {
    let (manifests, faults) = Manifests::gather(&[], &[path.to_owned()]);
    for fault in &faults {
        assert!(!fault.to_string().is_empty(), "a refusal says why");
    }
    faults.is_empty().then_some(manifests)
}
