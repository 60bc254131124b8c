//! The programs that run in a cluster, by the names of their images.

use uturn_model::pod::Container;
use uturn_model::{Cluster, Version, image};

use super::{ALL, CloudEntry};

/// Parts of the names of programs that give addresses to Services and are of no entry: those of
/// clouds' controllers, and others that are not described.
const ASSIGN: &[&str] = &[
    "cloud-controller",
    "cloud-provider",
    "-ccm",
    "loadbalancer",
    "load-balancer",
    "lb-controller",
    "loxilb",
    "porter",
    "purelb",
    "kube-router",
];

/// The program of a pod network that gives addresses to Services, with its first release that does.
const OF_NETWORK: (&str, Version) = ("kube-controllers", Version::new(3, 30, 0));

/// The beginnings of providerIDs that distributions write for nodes of no cloud.
const IDS_WITHOUT_CLOUD: [&str; 4] = ["kind://", "k3s://", "rke2://", "minikube://"];

/// Returns whether a node's providerID shows that no cloud made the node.
pub fn is_id_without_cloud(id: &str) -> bool {
    id.is_empty() || IDS_WITHOUT_CLOUD.iter().any(|begins| id.starts_with(begins))
}

/// Returns whether a program whose name fulfils a condition runs in a cluster, or will.
pub(crate) fn runs(cluster: &Cluster, is_it: impl Fn(&str) -> bool) -> bool {
    containers(cluster).any(|container| is_it(container.program()))
}

/// Returns whether a program in a cluster may give addresses to Services, by its name.
pub fn may_assign_addresses(cluster: &Cluster) -> bool {
    let is_late = |container: &Container| {
        let release = image::tag(&container.image).and_then(|tag| tag.parse::<Version>().ok());
        release.is_none_or(|release| release >= OF_NETWORK.1)
    };
    containers(cluster).any(|container| {
        let program = container.program();
        ASSIGN.iter().any(|part| program.contains(part) || program == "ccm")
            || ALL.iter().any(|entry| is_of(entry, program))
            || (program == OF_NETWORK.0 && is_late(container))
    })
}

/// Returns whether a program is one of an entry.
fn is_of(entry: &CloudEntry, program: &str) -> bool {
    entry.announcer_images.contains(&program)
        || entry.versions_of.contains(&program)
        || entry.arguments.iter().any(|argument| argument.images.contains(&program))
        || entry.markers.program_names.iter().any(|begins| program.starts_with(begins))
}

/// Iterates over the names of programs that give addresses to Services where there is no cloud.
pub fn names_of_programs() -> impl Iterator<Item = &'static str> {
    let programs = ALL.into_iter().filter(|entry| !entry.markers.program_names.is_empty());
    programs.map(|entry| entry.cloud.name())
}

fn containers(cluster: &Cluster) -> impl Iterator<Item = &Container> {
    let workloads = cluster.workloads.values().map(|workload| &workload.template);
    let pods = cluster.pods.values().map(|pod| &pod.spec);
    workloads.chain(pods).flat_map(|spec| &spec.containers)
}
