//! Finds Services that lead to pods of several workloads, of which some declare the called port and
//! the others declare only other ports: a selector that has more pods than are meant.

use std::collections::BTreeMap;

use uturn_model::service::{ServicePort, TargetPort};
use uturn_model::{Mechanism, ObjectRef, Outcome, Pod, Port, Protocol, Service, Share};
use uturn_path::Engine;

use super::object_faults::about;
use crate::clients::Clients;
use crate::finding::Finding;
use crate::{Code, Severity};

pub(crate) fn find(engine: &Engine<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    // Walks find it where containers are known to listen on what they declare only.
    if cluster.extent.listeners {
        return Vec::new();
    }
    let services = cluster.services.values().filter(|service| service.selector.is_some());
    let of_endpoints = |service: &Service| {
        let endpoints = cluster.slices(&service.name).iter().flat_map(|slice| &slice.endpoints);
        let ready = endpoints.filter(|endpoint| endpoint.ready);
        let pods: Vec<&Pod> =
            ready.filter_map(|endpoint| cluster.pods.get(endpoint.pod.as_ref()?)).collect();
        of_service(&pods, service)
    };
    services.filter_map(of_endpoints).collect()
}

/// The workloads behind a port of a Service: those that declare the port to which it leads, and those
/// that declare only others.
pub(crate) struct Unlike {
    /// The index of the Service's port.
    pub(crate) at: usize,
    /// The port of the pods.
    pub(crate) port: Port,
    pub(crate) declaring: BTreeMap<ObjectRef, usize>,
    pub(crate) others: BTreeMap<ObjectRef, usize>,
}

/// Returns the first port of a Service behind which workloads differ.
pub(crate) fn unlike(service: &Service, pods: &[&Pod]) -> Option<Unlike> {
    service.ports.iter().enumerate().find_map(|(at, port)| of_port(at, port, pods))
}

fn of_port(at: usize, port: &ServicePort, pods: &[&Pod]) -> Option<Unlike> {
    // A pod without a port of this name is no endpoint of it.
    let TargetPort::Number(number) = port.target else { return None };
    if port.protocol != Protocol::Tcp {
        return None;
    }
    let (mut declaring, mut others) = (BTreeMap::new(), BTreeMap::new());
    for pod in pods.iter().filter(|pod| pod.ready && pod.is_alive()) {
        let declares =
            pod.spec.ports().any(|own| own.port == number && own.protocol == Protocol::Tcp);
        let tells_all = pod.spec.containers.iter().all(|own| !own.ports.is_empty());
        let mentions = pod.spec.is_probed(number)
            || pod.spec.containers.iter().any(|own| own.mentions(number));
        let list = match (declares, tells_all && !mentions) {
            (true, _) => &mut declaring,
            (false, true) => &mut others,
            // Nothing tells where it listens.
            (false, false) => return None,
        };
        let owner = pod.owner.clone().unwrap_or_else(|| pod.object());
        *list.entry(owner).or_insert(0) += 1;
    }
    let is_apart = others.keys().all(|owner| !declaring.contains_key(owner));
    (!declaring.is_empty() && !others.is_empty() && is_apart).then_some(Unlike {
        at,
        port: number,
        declaring,
        others,
    })
}

fn of_service(pods: &[&Pod], service: &Service) -> Option<Finding> {
    let Unlike { at, port, declaring, others } = unlike(service, pods)?;
    let named = |all: &BTreeMap<ObjectRef, usize>| {
        all.keys().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    let (some, rest) = (named(&others), named(&declaring));
    let what = format!(
        "its selector has pods of {some} too, whose containers declare ports and not {port}; those of \
         {rest} declare it"
    );
    let mut finding = about(Code::WrongPort, service.object(), &service.origin, what);
    let (few, all): (usize, usize) =
        (others.values().sum(), others.values().chain(declaring.values()).sum());
    finding.severity = Severity::Warning;
    finding.conditions.push(format!("pods of {some} do not listen on {port}").into());
    finding.targets = vec![format!(":{}", service.ports[at].port)];
    finding.clients = Clients::other(Clients::OTHERS);
    finding.share_failing = Share::of(few, all);
    finding.outcome = Outcome::Refused;
    finding.mechanism = Some(Mechanism::WrongPort);
    Some(finding)
}
