//! Alibaba Cloud and its load balancers.
//!
//! | file | what it says |
//! | --- | --- |
//! | `annotations` | the keys that the controller reads, and lists within their values |
//! | `markers` | the markers by which the cloud is recognised, and the product of a Service |
//! | `clb` | Classic Load Balancers |
//! | `nlb` | Network Load Balancers |
//! | `remedies` | the annotations that change their behaviour |

mod annotations;
mod clb;
mod markers;
mod nlb;
mod remedies;

use uturn_model::lb::{HealthQuestion, Profile};
use uturn_model::network::Plugin;
use uturn_model::service::{Policy, ServicePort};
use uturn_model::{Cluster, Service};

use super::{CloudEntry, PortPlan, Targets, Words};
use crate::cloud::product::{check, pods_have_network_addresses, to_pods};

/// The description of Alibaba Cloud.
pub static ENTRY: CloudEntry = CloudEntry {
    translates_public_addresses: true,
    annotations: &[annotations::READ, annotations::READ_BELOW[0], annotations::READ_BELOW[1]],
    words: Words::with_firewall("security group"),
    products: &[&clb::Clb, &nlb::Nlb],
    remedies: remedies::remedies,
    ..CloudEntry::recognised("alibaba", "Alibaba Cloud", markers::MARKERS)
};

/// Returns the plan of a port, with the properties that both products share. `times` are the
/// interval and the timeout of health checks, in seconds.
fn plan(
    service: &Service,
    port: &ServicePort,
    mut profile: Profile,
    times: (u64, u64),
) -> PortPlan {
    let protocol = annotations::protocol(service, port);
    profile.proxy_header = annotations::proxy_header(service, protocol);
    profile.health_check = Some(check(HealthQuestion::Target, times));
    PortPlan { protocol, targets: targets(service), profile }
}

/// Returns the targets of a Service as far as the Service states them: pods if it asks for their
/// network interfaces, otherwise nodes. Under policy Local, these are the nodes with a pod,
/// weighted by their number of pods.
fn targets(service: &Service) -> Targets {
    match (annotations::backend_type(service), service.external_policy) {
        (Some("eni"), _) => Targets::Pods,
        (_, Policy::Local) => Targets::NodesByPods,
        (_, Policy::Cluster) => Targets::Nodes,
    }
}

/// Returns the plan with the targets that the cluster determines: if pods have network interfaces
/// of their own, they are the targets unless the Service asks for nodes.
fn with_default_targets(plan: PortPlan, cluster: &Cluster, service: &Service) -> PortPlan {
    let is_asked = annotations::backend_type(service).is_some();
    let has_interfaces =
        cluster.network.plugin.value == Plugin::Terway || pods_have_network_addresses(cluster);
    if plan.targets == Targets::Pods || (!is_asked && has_interfaces) {
        to_pods(plan)
    } else {
        plan
    }
}
