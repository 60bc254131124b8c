//! Cures of host ports that nothing forwards.

use uturn_document::edit::{Change, Tree};
use uturn_model::network::Plugin;
use uturn_model::{NamespacedName, ObjectKind, ObjectRef};

use super::super::{Case, Proposal, host_network, way};
use crate::Finding;

/// The namespaces in which the network plugin's settings are sought.
const NAMESPACES: [&str; 2] = ["kube-system", "cilium"];

pub(super) fn propose(case: &Case<'_>, fault: &Finding) -> Vec<Proposal> {
    chained(case).into_iter().chain(host_network::propose(case, &fault.subject)).collect()
}

/// Proposes that a plugin which forwards host ports is chained to the network's.
fn chained(case: &Case<'_>) -> Option<Proposal> {
    if case.cluster().network.plugin.value != Plugin::Cilium {
        return None;
    }
    let mut maps = NAMESPACES.into_iter().filter_map(|namespace| {
        let name = NamespacedName::new(namespace, "cilium-config").ok()?;
        Some(ObjectRef::namespaced(ObjectKind::ConfigMap, &name))
    });
    let map = maps.find(|map| case.manifests.has(map))?;
    let title = format!("cni-chaining-mode: portmap in {map}");
    Some(
        Proposal::new("chain-portmap", 10, title)
            .edit(map, way!["data", "cni-chaining-mode"], Change::Set(Tree::text("portmap")))
            .ask(
                "the plugin portmap is in /opt/cni/bin of each node",
                "packages of CNI plugins put it there; the agents write the chain when they start",
            )
            .costs("the agents have to be restarted, and these pods deleted, so that they are made anew"),
    )
}
