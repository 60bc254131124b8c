//! Alibaba Cloud and its load balancers.
//!
//! | file | what it says |
//! | --- | --- |
//! | `annotations` | the keys that the controller reads, and lists within their values |
//! | `markers` | by what the cloud is recognised, and which product a Service gets |
//! | `clb` | Classic Load Balancers |
//! | `nlb` | Network Load Balancers |
//! | `remedies` | what annotations make them do otherwise |

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

/// All that is known of it.
pub static ENTRY: CloudEntry = CloudEntry {
    annotations: &[annotations::READ, annotations::READ_BELOW[0], annotations::READ_BELOW[1]],
    words: Words::with_firewall("security group"),
    products: &[&clb::Clb, &nlb::Nlb],
    remedies: remedies::remedies,
    ..CloudEntry::recognised("alibaba", "Alibaba Cloud", markers::MARKERS)
};

/// What both products do on a port beside what their profiles say. `times` are the interval and the
/// timeout of health checks, in seconds.
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

/// What the targets of a Service are, as far as the Service says it: pods where it asks for their
/// network interfaces, else nodes. Under policy Local these are the nodes with a pod, each with as
/// large a share as it has pods.
fn targets(service: &Service) -> Targets {
    match (annotations::backend_type(service), service.external_policy) {
        (Some("eni"), _) => Targets::Pods,
        (_, Policy::Local) => Targets::NodesByPods,
        (_, Policy::Cluster) => Targets::Nodes,
    }
}

/// The plan with the targets that the cluster decides: where pods have network interfaces of their own, they are the targets
/// unless the Service asks for nodes.
fn with_default_targets(plan: PortPlan, cluster: &Cluster, service: &Service) -> PortPlan {
    let is_asked = annotations::backend_type(service).is_some();
    let has_interfaces =
        cluster.network.plugin.value == Plugin::Terway || pods_have_network_addresses(cluster);
    match plan.targets == Targets::Pods || (!is_asked && has_interfaces) {
        true => to_pods(plan),
        false => plan,
    }
}
