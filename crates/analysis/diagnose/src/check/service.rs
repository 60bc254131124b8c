//! Checks a Service: first from outside, then from inside.

mod inside;
mod outside;

use uturn_model::service::ServiceKind;
use uturn_model::{Client, Destination, Family, Flow, Pod, Protocol, Service, Unknown};
use uturn_path::Engine;

pub(super) use inside::{cluster_ip, inside};
use outside::{bandwidth, health, load_balancer, node_ports};
pub(super) use outside::{groups, health_of};

use super::{Check, Checklist, a_pod_on_each, flow};

pub(super) fn check(engine: &Engine<'_>, service: &Service) -> Checklist {
    if let ServiceKind::ExternalName(host) = &service.kind {
        let found = format!("clients resolve {host} and call what it leads to");
        let check = Check::ok("it stands for another name and needs no endpoints", found);
        return Checklist { subject: format!("svc/{}", service.name), checks: vec![check] };
    }
    let mut checks = Vec::new();
    let has_node_ports = service.ports.iter().any(|port| port.node_port.is_some());
    if has_node_ports {
        checks.push(groups(engine));
    }
    if service.kind == ServiceKind::LoadBalancer {
        checks.extend(bandwidth(engine, service));
    }
    if has_node_ports {
        checks.push(node_ports(engine, service));
    }
    if service.kind == ServiceKind::LoadBalancer {
        checks.push(load_balancer(engine, service));
        checks.extend(health(engine, service));
    }
    checks.extend(inside(engine, service));
    Checklist { subject: format!("svc/{}", service.name), checks }
}

/// Returns whether the Service's endpoints are not known from the input.
pub(super) fn lacks_endpoints(service: &Service) -> bool {
    service.unjudged.contains(&Unknown::Endpoints)
}

/// Returns calls from a pod of each node that has an address of the family.
pub(super) fn from_each(engine: &Engine<'_>, to: &Destination, protocol: Protocol) -> Vec<Flow> {
    let has_family = |pod: &&Pod| match to {
        Destination::Address(at) => pod.address(Family::of(at.ip())).is_some(),
        _ => true,
    };
    let pods = a_pod_on_each(engine).into_iter().filter(has_family);
    pods.map(|pod| flow(Client::Pod(pod.name.clone()), to.clone(), protocol)).collect()
}
