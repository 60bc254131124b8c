//! The endpoints that Kubernetes writes after an edit of a Service or of pods.
//!
//! EndpointSlices in the input show the cluster before the edit. A trial that edits what they
//! follow from has to change them too, as the controller of endpoints does.

use std::net::IpAddr;

use uturn_document::edit::{Change, Tree};
use uturn_model::pod::Phase;
use uturn_model::service::{ServicePort, TargetPort};
use uturn_model::{EndpointSlice, Family, ObjectKind, ObjectRef, Pod, Port, Service};

use super::{Case, Proposal, way};

/// The maximum number of endpoints that are written.
const MAX: usize = 200;

/// Adds that Kubernetes then writes these pods as endpoints of a Service. `service` is the Service
/// after the edit.
pub(super) fn follow(
    case: &Case<'_>,
    mut made: Proposal,
    service: &Service,
    pods: &[&Pod],
) -> Proposal {
    let slices = case.cluster().slices(&service.name);
    let old = ObjectRef::namespaced(ObjectKind::Endpoints, &service.name);
    let mut is_written = false;
    for family in Family::BOTH {
        let is_own = |slice: &&EndpointSlice| !slice.derived && slice.family == family;
        let mut objects = slices
            .iter()
            .filter(is_own)
            .map(|slice| ObjectRef::namespaced(ObjectKind::EndpointSlice, &slice.name))
            .filter(|object| case.manifests.has(object));
        let Some(object) = objects.next() else { continue };
        let (ports, endpoints) = written(service, pods, family, endpoint);
        made = made.follow(object.clone(), way!["ports"], Change::Set(Tree::List(ports))).follow(
            object,
            way!["endpoints"],
            Change::Set(Tree::List(endpoints)),
        );
        for more in objects {
            made = made.follow(more, way!["endpoints"], Change::Set(Tree::List(Vec::new())));
        }
        is_written = true;
    }
    // An Endpoints object without addresses has no slices.
    let is_old = !is_written && slices.iter().all(|slice| !slice.derived);
    if is_old && case.manifests.has(&old) {
        let family = service.cluster_ips.first().map_or(Family::V4, |ip| Family::of(*ip));
        let (ports, addresses) = written(service, pods, family, old_address);
        let subset =
            Tree::map([("addresses", Tree::List(addresses)), ("ports", Tree::List(ports))]);
        made = made.follow(old, way!["subsets"], Change::Set(Tree::List(vec![subset])));
    }
    made
}

/// Returns the ports and the endpoints of a family: those of the pods that have the same ports as
/// the first.
fn written(
    service: &Service,
    pods: &[&Pod],
    family: Family,
    form: fn(&Service, &Pod, IpAddr) -> Option<Tree>,
) -> (Vec<Tree>, Vec<Tree>) {
    let (mut ports, mut endpoints) = (Vec::new(), Vec::new());
    for pod in pods {
        let is_over = matches!(pod.phase, Phase::Succeeded | Phase::Failed);
        let address = pod.address(family).filter(|_| pod.node.is_some() && !is_over);
        let own = ports_of(service, pod);
        // A headless Service may have no ports, and its endpoints have none then.
        let has_ports = !own.is_empty() || service.ports.is_empty();
        let Some(address) = address.filter(|_| has_ports) else { continue };
        if endpoints.is_empty() {
            ports = own;
        } else if own != ports || endpoints.len() >= MAX {
            continue;
        }
        endpoints.extend(form(service, pod, address));
    }
    (ports, endpoints)
}

/// Returns the port of pods to which a port of their Service leads.
pub(super) fn target_of(port: &ServicePort, pods: &[&Pod]) -> Option<Port> {
    match &port.target {
        TargetPort::Number(number) => Some(*number),
        TargetPort::Name(name) => {
            pods.iter().find_map(|pod| pod.spec.named_port(name, port.protocol))
        }
    }
}

fn ports_of(service: &Service, pod: &Pod) -> Vec<Tree> {
    let ports = service.ports.iter().filter_map(|port| {
        let number = match &port.target {
            TargetPort::Number(number) => *number,
            TargetPort::Name(name) => pod.spec.named_port(name, port.protocol)?,
        };
        let mut entries = Vec::new();
        if let Some(name) = &port.name {
            entries.push(("name".to_owned(), Tree::text(&**name)));
        }
        entries.push(("port".to_owned(), Tree::number(number.number())));
        entries.push(("protocol".to_owned(), Tree::text(port.protocol.to_string())));
        Some(Tree::Map(entries))
    });
    ports.collect()
}

fn target(pod: &Pod) -> Tree {
    Tree::map([
        ("kind", Tree::text("Pod")),
        ("namespace", Tree::text(pod.name.namespace.as_str())),
        ("name", Tree::text(pod.name.name.as_str())),
    ])
}

fn is_ready(service: &Service, pod: &Pod) -> bool {
    service.publishes_not_ready || pod.ready && !pod.terminating
}

fn endpoint(service: &Service, pod: &Pod, address: IpAddr) -> Option<Tree> {
    let flag = |is_on: bool| Tree::bare(if is_on { "true" } else { "false" });
    let conditions = Tree::map([
        ("ready", flag(is_ready(service, pod))),
        ("serving", flag(pod.ready || service.publishes_not_ready)),
        ("terminating", flag(pod.terminating)),
    ]);
    let mut entries = vec![
        ("addresses".to_owned(), Tree::List(vec![Tree::text(address.to_string())])),
        ("conditions".to_owned(), conditions),
        ("targetRef".to_owned(), target(pod)),
    ];
    if let Some(node) = &pod.node {
        entries.push(("nodeName".to_owned(), Tree::text(node.as_str())));
    }
    let is_below = pod.spec.subdomain.as_deref() == Some(service.name.name.as_str());
    if let Some(hostname) = pod.spec.hostname.as_ref().filter(|_| is_below) {
        entries.push(("hostname".to_owned(), Tree::text(&**hostname)));
    }
    Some(Tree::Map(entries))
}

fn old_address(service: &Service, pod: &Pod, address: IpAddr) -> Option<Tree> {
    if !is_ready(service, pod) {
        return None;
    }
    let mut entries = vec![
        ("ip".to_owned(), Tree::text(address.to_string())),
        ("targetRef".to_owned(), target(pod)),
    ];
    if let Some(node) = &pod.node {
        entries.push(("nodeName".to_owned(), Tree::text(node.as_str())));
    }
    let is_below = pod.spec.subdomain.as_deref() == Some(service.name.name.as_str());
    if let Some(hostname) = pod.spec.hostname.as_ref().filter(|_| is_below) {
        entries.push(("hostname".to_owned(), Tree::text(&**hostname)));
    }
    Some(Tree::Map(entries))
}
