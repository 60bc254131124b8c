//! Manifests and the cluster that they describe.

use std::path::PathBuf;

use uturn_snapshot::{Fault, Loaded, Manifests};

/// The maximum size of manifests, in bytes, in which all cures of a finding are tried unasked.
pub const MAX_BYTES: usize = 1 << 20;

/// The maximum size of manifests, in bytes, in which a scan tries cures of a finding until one
/// works.
pub const MAX_SCANNED_BYTES: usize = 64 << 20;

/// The manifests and the cluster that were read.
#[derive(Debug)]
pub struct Input {
    /// The texts, to be edited by cures. Empty if they were too long to keep.
    pub manifests: Manifests,
    /// The cluster, and the number of objects of each kind.
    pub loaded: Loaded,
}

impl Input {
    /// Reads files, folders and bundles. Texts of more than `most_bytes` in total are not kept.
    /// `is_complete` states that objects which they do not contain do not exist.
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

    /// Reads texts that are in memory. Texts of more than `most_bytes` in total are not kept.
    ///
    /// # Errors
    /// Returns every fault of all texts, including the known ones.
    pub fn of(
        gathered: Manifests,
        mut faults: Vec<Fault>,
        most_bytes: usize,
    ) -> Result<Self, Vec<Fault>> {
        let (manifests, loaded) = if gathered.bytes() > most_bytes {
            (Manifests::default(), gathered.into_loaded())
        } else {
            let loaded = gathered.load();
            (gathered, loaded)
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

    /// Returns whether there was no object at all.
    pub fn is_empty(&self) -> bool {
        self.loaded.seen.is_empty() && self.loaded.cluster.skipped.is_empty()
    }
}

/// Selects the largest case if a single Scenario is all there is, so that edits apply to that case.
fn of_only_scenario(manifests: Manifests, loaded: &Loaded) -> Manifests {
    let is_alone = loaded.seen.keys().all(|kind| &**kind == "Scenario");
    let [scenario] = loaded.scenarios.as_slice() else { return manifests };
    match scenario.cases.iter().max_by_key(|case| case.nodes) {
        Some(case) if is_alone => manifests.with_case(&scenario.name, &case.label),
        _ => manifests,
    }
}
