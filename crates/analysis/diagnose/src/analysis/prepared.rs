//! A cluster that is analysed repeatedly while its objects change.

use std::sync::Arc;

use uturn_model::Cluster;
use uturn_scan::{KnownWalks, WalkCounts};
use uturn_snapshot::Manifests;

use super::{Analysis, AnalysisError, Options, analyze_knowing};

/// A cluster that is analysed repeatedly while its objects change, which a server or a webhook
/// holds between two analyses. It walks only what a change can affect, and its result is the one
/// that [`analyze`](super::analyze) returns for the same objects.
///
/// It keeps the results of the last analysis's walks, and no object.
#[derive(Debug, Default)]
pub struct PreparedCluster {
    known: Arc<KnownWalks>,
    counts: WalkCounts,
}

impl PreparedCluster {
    /// Analyses the cluster as it is now.
    ///
    /// # Errors
    /// Returns the same errors as [`analyze`](super::analyze).
    pub fn analyze(
        &mut self,
        manifests: &Manifests,
        cluster: &Cluster,
        options: &Options<'_>,
    ) -> Result<Analysis, AnalysisError> {
        let analysis = analyze_knowing(manifests, cluster, options, Some(&self.known));
        self.counts = self.known.end_round();
        analysis
    }

    /// Returns how much the last analysis walked, and how much was known.
    pub fn counts(&self) -> WalkCounts {
        self.counts
    }
}
