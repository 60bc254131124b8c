//! A cluster that is analysed again and again while its objects change.

use std::sync::Arc;

use uturn_model::Cluster;
use uturn_scan::{KnownWalks, WalkCounts};
use uturn_snapshot::Manifests;

use super::{Analysis, AnalysisError, Options, analyze_knowing};

/// A cluster that is analysed again and again while its objects change: what a server or a webhook
/// holds between two analyses. It walks only what a change can have an effect on, and what it
/// returns is what [`analyze`](super::analyze) returns for the same objects.
///
/// It keeps what the walks of the last analysis found, and no object.
#[derive(Debug, Default)]
pub struct PreparedCluster {
    known: Arc<KnownWalks>,
    counts: WalkCounts,
}

impl PreparedCluster {
    /// Analyses the cluster as it is now.
    ///
    /// # Errors
    /// As [`analyze`](super::analyze).
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

    /// How much the last analysis walked, and how much was known.
    pub fn counts(&self) -> WalkCounts {
        self.counts
    }
}
