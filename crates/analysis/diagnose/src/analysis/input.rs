//! Manifests and the cluster that they describe.

use std::path::PathBuf;

use uturn_snapshot::{Fault, Loaded, Manifests};

/// Manifests longer than this (in bytes) are not edited, read and walked again for every finding
/// of a scan.
pub const MAX_BYTES: usize = 1 << 20;

/// What was read.
#[derive(Debug)]
pub struct Input {
    /// The texts, to be edited by cures. Empty if they were too long to keep.
    pub manifests: Manifests,
    /// The cluster, and how many objects of each kind there are.
    pub loaded: Loaded,
}

impl Input {
    /// Reads files, folders and bundles. Texts of more than `most_bytes` in all are not kept.
    /// `is_complete` says that what they do not contain does not exist.
    ///
    /// # Errors
    /// Returns every fault of all files.
    pub fn read(
        files: &[PathBuf],
        bundles: &[PathBuf],
        is_complete: bool,
        most_bytes: usize,
    ) -> Result<Self, Vec<Fault>> {
        let (gathered, faults) = Manifests::gather(files, bundles);
        Self::of(gathered.complete_if(is_complete), faults, most_bytes)
    }

    /// Reads texts that are there already. Texts of more than `most_bytes` in all are not kept.
    ///
    /// # Errors
    /// Returns every fault of all texts, and those that are known already.
    pub fn of(
        gathered: Manifests,
        mut faults: Vec<Fault>,
        most_bytes: usize,
    ) -> Result<Self, Vec<Fault>> {
        let (manifests, loaded) = match gathered.bytes() > most_bytes {
            true => (Manifests::default(), gathered.into_loaded()),
            false => {
                let loaded = gathered.load();
                (gathered, loaded)
            }
        };
        match loaded {
            Ok(loaded) if faults.is_empty() => {
                Ok(Self { manifests: of_only_scenario(manifests, &loaded), loaded })
            }
            Ok(_) => Err(faults),
            Err(more) => {
                faults.extend(more);
                Err(faults)
            }
        }
    }

    /// Whether there was no object at all.
    pub fn is_empty(&self) -> bool {
        self.loaded.seen.is_empty() && self.loaded.cluster.skipped.is_empty()
    }
}

/// If a single Scenario is all there is, its largest case is the cluster: edits are of that case.
fn of_only_scenario(manifests: Manifests, loaded: &Loaded) -> Manifests {
    let is_alone = loaded.seen.keys().all(|kind| &**kind == "Scenario");
    let [scenario] = loaded.scenarios.as_slice() else { return manifests };
    match scenario.cases.iter().max_by_key(|case| case.nodes) {
        Some(case) if is_alone => manifests.with_case(&scenario.name, &case.label),
        _ => manifests,
    }
}
