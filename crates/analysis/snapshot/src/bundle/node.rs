//! Adds the capture of a node to a bundle completely, or not at all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use thiserror::Error;
use uturn_document::whole_file;

use super::write::{BundleWriter, temporary};
use super::{BundleManifest, MANIFEST, NODES, NodeCaptured, is_archive};

/// The reason why a capture cannot be added to a bundle.
#[derive(Debug, Error)]
pub enum AddError {
    /// The bundle has a capture of this node already.
    #[error("{} exists already: remove it, or name another place", .0.display())]
    Exists(PathBuf),
    /// The bundle is an archive: captures can only be added to a folder.
    #[error("{} is an archive: name a folder, and pack it once all nodes are in it", .0.display())]
    Archive(PathBuf),
    /// The `bundle.json` of the bundle cannot be read.
    #[error("{}: not the description of a bundle: {}", .0.display(), .1)]
    Manifest(PathBuf, serde_json::Error),
    /// A file or folder could not be read or written.
    #[error("{}: {}", .0.display(), .1)]
    Io(PathBuf, io::Error),
}

/// Adds these files as `nodes/NAME` to a bundle that is a folder, which is created if it does not
/// exist. If the bundle has a `bundle.json`, the node is listed there. Returns the node's folder.
///
/// # Errors
/// Returns an error if the bundle has a capture of this node already, is an archive, or cannot be
/// written to.
pub fn add_node(
    bundle: &Path,
    node: &NodeCaptured,
    files: &BTreeMap<String, String>,
) -> Result<PathBuf, AddError> {
    let nodes = bundle.join(NODES);
    let folder = nodes.join(&node.node);
    if folder.exists() {
        return Err(AddError::Exists(folder));
    }
    if is_archive(bundle) || bundle.is_file() {
        return Err(AddError::Archive(bundle.to_owned()));
    }
    let manifest = listed(bundle, node)?;
    let failed = |why| AddError::Io(folder.clone(), why);
    if !bundle.exists() {
        let mut new = BundleWriter::create(bundle).map_err(failed)?;
        for (name, text) in files {
            new.add(&format!("{NODES}/{}/{name}", node.node), text.as_bytes()).map_err(failed)?;
        }
        new.finish().map_err(failed)?;
        return Ok(folder);
    }
    let beside = temporary(bundle).map_err(failed)?;
    let mut own = BundleWriter::folder(&folder, &beside).map_err(failed)?;
    for (name, text) in files {
        own.add(name, text.as_bytes()).map_err(failed)?;
    }
    fs::create_dir_all(&nodes).map_err(|why| AddError::Io(nodes, why))?;
    own.finish().map_err(failed)?;
    if let Some(text) = manifest {
        let path = bundle.join(MANIFEST);
        let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, &path));
        written.map_err(|why| {
            let _ = fs::remove_file(&beside);
            AddError::Io(path, why)
        })?;
    }
    Ok(folder)
}

/// Returns the text of the bundle's `bundle.json` with this node added. Returns `None` if there is
/// no such file.
fn listed(bundle: &Path, node: &NodeCaptured) -> Result<Option<String>, AddError> {
    let path = bundle.join(MANIFEST);
    let text = match whole_file::text_of(&path, whole_file::SETTINGS) {
        Ok(text) => text,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(why) => return Err(AddError::Io(path, why)),
    };
    let mut manifest: BundleManifest =
        serde_json::from_str(&text).map_err(|why| AddError::Manifest(path, why))?;
    manifest.nodes.retain(|known| known.node != node.node);
    manifest.nodes.push(node.clone());
    Ok(Some(manifest.text()))
}
