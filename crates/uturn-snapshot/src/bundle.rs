//! Bundles: a folder with a cluster's objects and captures of its nodes.
//!
//! ```text
//! bundle/
//!   objects/*.yaml          manifests and Facts, in any files and folders
//!   nodes/n1/iptables.save  the capture of node n1, as `read_capture` wants it
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use uturn_model::{Capture, Name, Origin};

use crate::capture::read_capture;
use crate::fault::Fault;
use crate::source::{OtherFiles, Source, gather_manifests};

/// Where the captures are.
const NODES: &str = "nodes";

/// What a bundle holds.
#[derive(Debug, Default)]
pub(crate) struct Bundle {
    pub(crate) sources: Vec<Source>,
    pub(crate) beside: OtherFiles,
    pub(crate) captures: BTreeMap<Name, Capture>,
    pub(crate) faults: Vec<Fault>,
}

/// Reads a bundle.
pub(crate) fn read(folder: &Path) -> Bundle {
    let mut bundle = Bundle::default();
    let place = |path: &Path| Origin::file(path.display().to_string());
    if folder.is_file() {
        let fault = Fault::new(place(folder), "a bundle in one file cannot be read");
        bundle.faults.push(fault.hint("unpack it and name its folder"));
        return bundle;
    }
    let mut others = Vec::new();
    for path in entries(folder, &mut bundle.faults) {
        if path.file_name().is_some_and(|name| name == NODES) && path.is_dir() {
            for node in entries(&path, &mut bundle.faults) {
                match read_node(&node) {
                    Ok(capture) => drop(bundle.captures.insert(capture.node.clone(), capture)),
                    Err(faults) => bundle.faults.extend(faults),
                }
            }
        } else {
            others.push(path);
        }
    }
    let (sources, beside, faults) = gather_manifests(&others);
    (bundle.sources, bundle.beside) = (sources, beside);
    bundle.faults.extend(faults);
    bundle
}

fn read_node(folder: &Path) -> Result<Capture, Vec<Fault>> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let name = Name::new(&*name).map_err(|_| {
        let place = Origin::file(folder.display().to_string());
        vec![Fault::new(place, format!("{name:?} is no name of a node"))]
    })?;
    read_capture(folder, name)
}

/// What is in a folder, in order.
fn entries(folder: &Path, faults: &mut Vec<Fault>) -> Vec<PathBuf> {
    let listed = fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>());
    match listed {
        Ok(mut paths) => {
            paths.sort();
            paths
        }
        Err(why) => {
            let place = Origin::file(folder.display().to_string());
            faults.push(Fault::new(place, format!("cannot be read: {why}")));
            Vec::new()
        }
    }
}
