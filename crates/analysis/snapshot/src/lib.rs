//! Reads a [`Cluster`] from manifests and Facts, and reports what it could not read.
//!
//! **Owns** the formats of Kubernetes objects (and `List`s of them), Facts, Scenarios and
//! LoadBalancer documents; folders with kustomizations and charts (`layout`); bundles, read and
//! written ([`mod@bundle`]); and the derivation of what missing objects leave open, where each
//! assumption becomes a [`uturn_model::Assumption`].
//!
//! **Out of scope:** YAML and JSON, which `uturn-document` reads; verdicts (a Service that selects
//! nothing is read like any other), API servers, and kernels.
//!
//! **Start reading** at [`load`], then `collect`, `kinds` (the table of decoders by kind), `decode`
//! (one module for each kind), and `derive` (the derivation of the cluster, by phases:
//! `derive::ground` recognises the cloud, the pod network and what serves Services,
//! `derive::populate` completes nodes and pods, `derive::serve` what serves calls, and
//! `derive::gaps` finds what is not known); [`scenario`] has the Scenario format.
//!
//! Files of a folder that have no object are left out and named (`layout`).
//!
//! From JSON only the fields that a decoder asks for are kept, and from a List one item at a time:
//! a file of a whole cluster is in memory as its text and as the objects read from it. A decoder
//! that asks for a new field adds its name to `wanted`.
//!
//! A run reports all faults: a document that cannot be read does not hide faults of the next, and
//! an object with three wrong fields has three faults.

mod as_json;
pub mod bundle;
mod capture;
mod captured_addresses;
mod collect;
mod decode;
mod derive;
mod documents;
mod identities;
#[cfg(test)]
mod json_equivalence;
mod kinds;
mod layout;
mod listing;
mod load_balancer;
pub mod manifests;
pub mod scenario;
mod trim;
mod wanted;

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

pub use uturn_document::{Fault, Source};
use uturn_model::{Capture, Cluster, Name, Text};

pub use as_json::{json_documents, json_objects};
pub use capture::read_capture;
pub use decode::fields::fields_of;
use decode::objects::Objects;
pub use identities::{Identities, base64_text};
pub use kinds::{ReadKind, config_maps, controller_settings, is_bridge_configuration, kinds};
use layout::OtherFiles;
pub use listing::Listing;
pub use load_balancer::{
    LbFile, RunningBalancer, read_lb_change, read_lb_config, read_lb_config_of_client,
    read_load_balancers, write_lb_config, write_load_balancers,
};
pub use manifests::Manifests;
pub use scenario::Scenario;
pub use trim::{LAST_APPLIED, trim};

/// The result of reading sources.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The cluster.
    ///
    /// Scenarios are not merged into it: each is a cluster of its own. If a single Scenario is all
    /// there is, this is the cluster of its largest case.
    pub cluster: Cluster,
    /// The Scenario documents among the sources.
    pub scenarios: Vec<Scenario>,
    /// The number of objects that were read, by kind.
    pub seen: BTreeMap<Text, usize>,
}

impl Loaded {
    /// Returns whether only Scenarios were read.
    pub fn has_only_scenarios(&self) -> bool {
        !self.scenarios.is_empty() && self.seen.keys().all(|kind| &**kind == SCENARIO)
    }
}

/// The kind of Scenario documents.
const SCENARIO: &str = "Scenario";

/// Reads the files and folders that `-f` names.
///
/// # Errors
/// All faults of all files.
pub fn load(paths: &[PathBuf]) -> Result<Loaded, Vec<Fault>> {
    load_with_bundles(paths, &[])
}

/// Reads the files and folders that `-f` names, and the bundles that `--bundle` names.
///
/// # Errors
/// All faults of all files.
pub fn load_with_bundles(paths: &[PathBuf], bundles: &[PathBuf]) -> Result<Loaded, Vec<Fault>> {
    let (manifests, faults) = Manifests::gather(paths, bundles);
    load_gathered(manifests, faults)
}

/// Reads gathered sources.
///
/// # Errors
/// All faults, including those of gathering.
pub fn load_gathered(manifests: Manifests, mut faults: Vec<Fault>) -> Result<Loaded, Vec<Fault>> {
    match manifests.into_loaded() {
        Ok(loaded) if faults.is_empty() => Ok(loaded),
        Ok(_) => Err(faults),
        Err(more) => {
            faults.extend(more);
            Err(faults)
        }
    }
}

/// Reads sources.
///
/// # Errors
/// All faults of all sources.
pub fn read(sources: Vec<Source>) -> Result<Loaded, Vec<Fault>> {
    let (other_files, listing) = (OtherFiles::default(), Listing::default());
    read_with(sources, BTreeMap::new(), &other_files, &listing, false, &mut |_| {})
}

/// Adds what is known of all texts together.
fn complete(
    mut objects: Objects,
    (other_files, listing): (&OtherFiles, &Listing),
    is_complete: bool,
) -> Objects {
    objects.listing = listing.clone();
    objects.notes.extend(other_files.notes());
    objects.complete = is_complete;
    objects
}

/// Reads sources. `keep` gets a copy of the decoded objects if nothing about them is odd.
fn read_with<S: Borrow<Source>>(
    sources: impl IntoIterator<Item = S>,
    captures: BTreeMap<Name, Capture>,
    other_files: &OtherFiles,
    listing: &Listing,
    complete: bool,
    keep: &mut dyn FnMut(Option<Objects>),
) -> Result<Loaded, Vec<Fault>> {
    let collected = collect::collect(sources, other_files, listing);
    let is_plain = collected.is_plain();
    let (unread, faults) = listing::unread(collected.faults.into_inner().into_vec(), listing);
    if !faults.is_empty() {
        return Err(faults);
    }
    let (objects, scenarios) = (collected.objects, collected.scenarios);
    let mut objects = self::complete(objects, (other_files, listing), complete);
    keep(is_plain.then(|| objects.clone()));
    objects.listing.unread.extend(unread);
    for name in captures.keys() {
        objects.facts.nodes.entry(name.clone()).or_default();
    }
    let mut seen = objects.seen.clone();
    if !scenarios.is_empty() {
        seen.insert(SCENARIO.into(), scenarios.len());
    }
    let largest = match scenarios.as_slice() {
        [only] if objects.is_empty() => only.cases.iter().max_by_key(|case| case.nodes),
        _ => None,
    };
    let mut cluster = match largest {
        Some(case) => case.cluster.clone(),
        None => derive::cluster(objects).map_err(|fault| vec![fault])?,
    };
    if !captures.is_empty() {
        seen.insert("node capture".into(), captures.len());
        let policies = Arc::make_mut(&mut cluster.network_policies);
        policies.captured = captures.keys().cloned().collect();
        cluster.captures = captures;
        captured_addresses::add(&mut cluster);
    }
    Ok(Loaded { cluster, scenarios, seen })
}
