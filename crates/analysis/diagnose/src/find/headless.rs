//! Finds ports of headless Services at which nothing listens.
//!
//! The name of a headless Service resolves to the addresses of its pods. No rule translates calls
//! to the name: a `targetPort` that differs from `port` has no effect, and the pods are called at
//! `port`.

use uturn_model::{
    Client, Destination, Flow, Mechanism, Outcome, Pod, Port, Protocol, Service, Share,
};
use uturn_path::Engine;

use super::object_faults::about;
use crate::clients::{Clients, Example};
use crate::finding::Finding;
use crate::{Code, Severity};

pub(crate) fn find(engine: &Engine<'_>) -> Vec<Finding> {
    let services = engine.cluster().services.values();
    services.filter_map(|service| of_service(engine, service)).collect()
}

fn of_service<'a>(engine: &Engine<'a>, service: &'a Service) -> Option<Finding> {
    let dead = engine.dead_ports(service);
    let (first, target) = dead.first()?;
    let what = format!(
        "port {} has targetPort {target}, and the Service is headless: nothing translates a port, so \
         its pods are called at {}, which none of their containers declares",
        first.port, first.port
    );
    let mut finding = about(Code::WrongPort, service.object(), &service.origin, what);
    // Callers that use the pods' own port are served, and it is not known whether others exist.
    finding.severity = Severity::Warning;
    if !engine.cluster().extent.listeners {
        finding.conditions.push(format!("nothing listens on {}", first.port).into());
    }
    finding.targets = dead.iter().map(|(port, _)| format!(":{}", port.port)).collect();
    finding.clients = Clients::other(Clients::BY_NAME);
    finding.share_failing = Share::ALL;
    finding.outcome = Outcome::Refused;
    finding.mechanism = Some(Mechanism::WrongPort);
    if let Some(flow) = example(engine, service, (first.port, first.protocol)) {
        finding.example = Example::Flow(flow);
    }
    Some(finding)
}

/// Returns a call of the Service by its name, from a pod that uses the cluster's DNS.
fn example(
    engine: &Engine<'_>,
    service: &Service,
    (port, protocol): (Port, Protocol),
) -> Option<Flow> {
    let cluster = engine.cluster();
    let asks = |pod: &&Pod| {
        pod.is_alive() && !pod.spec.host_network && !pod.ips.is_empty() && pod.node.is_some()
    };
    let client = cluster.pods.values().find(asks)?;
    let host = cluster.dns.name_of(&service.name);
    Some(Flow {
        from: Client::Pod(client.name.clone()),
        to: Destination::Host(host.as_str().into(), port),
        protocol,
    })
}
