//! Notes about the analysis itself.

use std::fmt;

use uturn_model::{Cluster, ObjectRef, ProxyMode};
use uturn_path::what_if;
use uturn_scan::ScanResult;

use super::ignore::{ANNOTATION, IgnoreRules};
use crate::{Code, Finding};

/// A note about the analysis that is not a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The cluster is too large to examine each mode of kube-proxy, and nothing states its mode.
    OneModeOnly(ProxyMode),
    /// There are targets, but no client could call them.
    NoFlows,
    /// An annotation ignores a code of which the object has no finding.
    IgnoresNothing {
        /// The object.
        object: ObjectRef,
        /// The code.
        code: Code,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OneModeOnly(mode) => write!(
                f,
                "the cluster is large, so it was judged for kube-proxy mode {mode} only, and the \
                 input does not say that this is the mode: state spec.kubeProxy.mode in Facts"
            ),
            Self::NoFlows => f.write_str(
                "no flow was judged: expected a Service or an Ingress with an address, and a pod \
                 or a workload that could call it",
            ),
            Self::IgnoresNothing { object, code } => {
                write!(f, "{object}: {ANNOTATION}: the object has no finding {code}")
            }
        }
    }
}

/// Returns the notes on an analysis.
pub(super) fn of<'f>(
    cluster: &Cluster,
    scanned: &[ScanResult],
    ignore: &IgnoreRules,
    findings: impl Iterator<Item = &'f Finding> + Clone,
) -> Vec<Note> {
    let mode = &cluster.proxy.mode;
    let one_mode = cluster.pods.len() > what_if::MAX_PODS && mode.is_supposed();
    let no_flows = scanned.is_empty() && has_targets(cluster);
    let mut notes = Vec::new();
    notes.extend(one_mode.then_some(Note::OneModeOnly(mode.value)));
    notes.extend(no_flows.then_some(Note::NoFlows));
    notes.extend(ignore.unused(findings));
    notes
}

/// Returns whether a cluster has anything that can be called.
pub(super) fn has_targets(cluster: &Cluster) -> bool {
    !cluster.services.is_empty() || !cluster.ingresses.is_empty()
}
