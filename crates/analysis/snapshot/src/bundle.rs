//! Reads and writes bundles: a folder with a cluster's objects and captures of its nodes, or an
//! archive of such a folder.
//!
//! ```text
//! bundle/
//!   bundle.json             what it is made of, and what could not be read
//!   objects/*.yaml          manifests and Facts, in any files and folders
//!   nodes/n1/iptables.save  the capture of node n1, as `read_capture` wants it
//! ```
//!
//! A bundle without `bundle.json` was put together by hand, and is assumed to hold the whole
//! cluster.

mod archive;
mod limits;
mod manifest;
mod node;
mod write;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use uturn_document::{Fault, Named, Room, Source, gather_of_folder, is_manifest, starts_with_dots};
use uturn_model::{Capture, Name, Origin};

use crate::capture::read_capture_within;
use crate::layout::{OtherFiles, gather_manifests};
use crate::listing::Listing;

pub use manifest::{BundleManifest, KindRead, NodeCaptured, ObjectsManifest};
pub use node::{AddError, add_node};
pub use uturn_document::UnpackLimit;
pub use write::{BundleWriter, is_archive};

/// The folder of a bundle that has the captures.
pub const NODES: &str = "nodes";
/// The folder of a bundle that has the objects.
pub const OBJECTS: &str = "objects";
/// The file with the [`BundleManifest`].
pub const MANIFEST: &str = "bundle.json";

/// The contents of a bundle.
#[derive(Debug, Default)]
pub(crate) struct Bundle {
    pub(crate) sources: Vec<Source>,
    pub(crate) other_files: OtherFiles,
    pub(crate) captures: BTreeMap<Name, Capture>,
    pub(crate) faults: Vec<Fault>,
    /// The contents of `bundle.json`. `None` if the bundle was put together by hand.
    pub(crate) manifest: Option<BundleManifest>,
}

impl Bundle {
    /// Returns whether the bundle is assumed to hold a whole cluster, since it has no
    /// `bundle.json`.
    pub(crate) fn is_whole(&self) -> bool {
        self.manifest.is_none()
    }

    /// Returns what an API server returned in full, and what it did not return.
    pub(crate) fn listing(&self) -> Option<Listing> {
        self.manifest.as_ref()?.objects.as_ref().map(ObjectsManifest::listing)
    }

    fn add_manifest(&mut self, place: Origin, text: &str) {
        match serde_json::from_str(text) {
            Ok(manifest) => self.manifest = Some(manifest),
            Err(error) => {
                let message = format!("not the description of a bundle: {error}");
                self.faults.push(Fault::new(place, message));
            }
        }
    }
}

/// Reads a bundle, which is a folder or an archive, up to the limit of `room`.
pub(crate) fn read(path: &Path, room: &mut Room) -> Bundle {
    if path.is_file() {
        return archive::read(path, room);
    }
    let mut bundle = Bundle::default();
    let mut others = Vec::new();
    for path in entries(path, &mut bundle.faults) {
        let is = |name: &str| path.file_name().is_some_and(|own| own == name);
        if is(NODES) && path.is_dir() {
            for node in entries(&path, &mut bundle.faults) {
                match read_node(&node, room) {
                    Ok(capture) => drop(bundle.captures.insert(capture.node.clone(), capture)),
                    Err(faults) => bundle.faults.extend(faults),
                }
            }
        } else if is(MANIFEST) {
            let (sources, faults) = gather_of_folder(&path, room);
            sources.iter().for_each(|source| bundle.add_manifest(place(&path), &source.text));
            bundle.faults.extend(faults);
        } else if (path.is_dir() || is_manifest(&path))
            && !path.file_name().is_some_and(starts_with_dots)
        {
            others.push(path);
        }
    }
    let (sources, other_files, faults) = gather_manifests(&others, Named::ByFolder, room);
    (bundle.sources, bundle.other_files) = (sources, other_files);
    bundle.faults.extend(faults);
    bundle
}

fn read_node(folder: &Path, room: &mut Room) -> Result<Capture, Vec<Fault>> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let name = node_name(&name, || place(folder)).map_err(|fault| vec![fault])?;
    read_capture_within(folder, name, room)
}

fn node_name(name: &str, place: impl FnOnce() -> Origin) -> Result<Name, Fault> {
    Name::new(name)
        .map_err(|_| Fault::new(place(), format!("{name:?} is not a valid name of a node")))
}

fn place(path: &Path) -> Origin {
    Origin::file(path.display().to_string())
}

fn unreadable(path: &Path, why: &std::io::Error) -> Fault {
    Fault::new(place(path), format!("cannot be read: {why}"))
}

/// Returns the sorted paths of a folder's entries.
fn entries(folder: &Path, faults: &mut Vec<Fault>) -> Vec<PathBuf> {
    let listed = fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>());
    match listed {
        Ok(mut paths) => {
            paths.sort();
            paths
        }
        Err(why) => {
            faults.push(unreadable(folder, &why));
            Vec::new()
        }
    }
}
