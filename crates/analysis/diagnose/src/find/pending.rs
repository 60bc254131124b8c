//! Finds Services whose load balancer has no address yet, with the reason as far as objects show
//! it.

use uturn_clouds::cloud::{self, Maker};
use uturn_model::service::Policy;
use uturn_model::{Cluster, Outcome, Service, Share};
use uturn_path::Engine;

use super::object_faults::about;
use crate::clients::Clients;
use crate::finding::Finding;
use crate::{Code, Severity};

pub(crate) fn find(engine: &Engine<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    let pending = cluster.services.values().filter(|service| service.is_pending);
    pending.map(|service| of_service(cluster, service)).collect()
}

fn of_service(cluster: &Cluster, service: &Service) -> Finding {
    let (why, is_certain, condition) = reason(cluster, service);
    let meanwhile = node_ports(service);
    let what = format!("its status has no address: {why}{meanwhile}");
    let mut finding = about(Code::Pending, service.object(), &service.origin, what);
    let is_whole = cluster.extent.services && cluster.extent.pods;
    if !is_certain || !is_whole || condition.is_some() {
        finding.severity = Severity::Warning;
    }
    finding.conditions.extend(condition.map(Into::into));
    finding.targets = service.ports.iter().map(|port| format!(":{}", port.port)).collect();
    finding.clients = Clients::other(Clients::OUTSIDE);
    finding.share_failing = Share::ALL;
    finding.outcome = Outcome::Unreachable;
    finding
}

/// Returns why a Service has no address, whether objects show that it will get none, and under
/// which condition.
fn reason(cluster: &Cluster, service: &Service) -> (String, bool, Option<&'static str>) {
    let waits = |name: &str| (format!("{name} has not given it one (yet)"), false, None);
    match cloud::maker_of(service, &cluster.provider) {
        Maker::Product(product, _) => match product.no_address(cluster, service) {
            Some(why) => (why.because, true, why.condition),
            None => waits(product.name()),
        },
        Maker::Model(_) => waits(cluster.provider.value.name().unwrap_or("the cloud")),
        Maker::Other(name, trace) => match service.load_balancer_class.as_deref() {
            Some(class) => {
                let why = format!(
                    "its loadBalancerClass is {class}, and nothing that is known serves this class"
                );
                (why, false, None)
            }
            None => waits(&format!("{name} (recognised by {trace})")),
        },
        Maker::Unknown => match foreign_node(cluster) {
            Some(id) => waits(&format!("the cloud of providerID {id}")),
            None if cloud::may_assign_addresses(cluster) => waits("the program that would"),
            None => {
                let programs: Vec<&str> = cloud::names_of_programs().collect();
                let why = format!(
                    "nothing here gives addresses to load balancers: no cloud is recognised, and no \
                     program that would do it runs ({})",
                    programs.join(", ")
                );
                (why, true, None)
            }
        },
    }
}

/// Returns the providerID of a node if it shows that the node is of some cloud.
fn foreign_node(cluster: &Cluster) -> Option<&str> {
    let mut ids = cluster.nodes.values().filter_map(|node| node.provider_id.as_deref());
    ids.find(|id| !cloud::is_id_without_cloud(id))
}

/// Describes the node ports that lead to a Service without its load balancer.
fn node_ports(service: &Service) -> String {
    let ports = service.ports.iter().filter_map(|port| {
        port.node_port.map(|node_port| format!("{node_port} (port {})", port.port))
    });
    let ports: Vec<String> = ports.collect();
    let nodes = match service.external_policy {
        Policy::Cluster => "every node",
        Policy::Local => "the nodes with an endpoint",
    };
    match ports.as_slice() {
        [] => String::new(),
        [only] => format!("; meanwhile node port {only} of {nodes} leads to it"),
        several => format!("; meanwhile node ports {} of {nodes} lead to it", several.join(", ")),
    }
}
