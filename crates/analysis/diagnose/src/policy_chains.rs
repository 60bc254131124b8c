//! Recognises chains in which a pod network, or a policy that users wrote, decides what pods may
//! call. A drop in these chains is intended.

use uturn_model::{Evidence, StepKind, Verdict};

/// The prefixes of such chains' names.
const POLICIES: [&str; 12] = [
    "cali-",
    "felix-",
    "CILIUM_",
    "OLD_CILIUM_",
    "ANTREA-",
    "WEAVE-",
    "KUBE-ROUTER-",
    "KUBE-POD-FW-",
    "KUBE-NWPLCY-",
    "KUBE-FIREWALL",
    "GALAXY-",
    "AWS-CONNMARK",
];

/// Returns whether a chain of iptables is such a chain.
pub(crate) fn is_one(chain: &str) -> bool {
    POLICIES.iter().any(|start| chain.starts_with(start))
}

/// Returns whether rules of such chains stop all failing calls of a verdict.
pub(crate) fn stop(verdict: &Verdict) -> bool {
    let mut failing = verdict.routes.iter().filter(|route| route.outcome.is_bad()).peekable();
    let stopped = |step: &uturn_model::route::Step| {
        matches!(step.kind, StepKind::Drop | StepKind::Reject)
            && matches!(
                &step.by,
                Evidence::Iptables { chain, .. } | Evidence::IptablesPolicy { chain, .. }
                    if is_one(chain)
            )
    };
    failing.peek().is_some()
        && failing.all(|route| route.hops.iter().flat_map(|hop| &hop.steps).any(stopped))
}
