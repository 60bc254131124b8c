//! Finds workloads whose host ports nothing forwards to their pods.

use std::collections::BTreeMap;

use uturn_model::{ObjectKind, ObjectRef, Origin, Outcome, Share};
use uturn_path::Engine;

use super::object_faults::about;
use crate::Code;
use crate::clients::Clients;
use crate::finding::Finding;

pub(crate) fn find(engine: &Engine<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    let Some(why) = &cluster.network.host_ports_off else { return Vec::new() };
    let mut asking: BTreeMap<ObjectRef, (Vec<u16>, &Origin)> = BTreeMap::new();
    for pod in cluster.pods.values().filter(|pod| pod.is_alive() && !pod.spec.host_network) {
        // The rules of a captured node show whether it forwards the port.
        if pod.node.as_ref().is_some_and(|node| cluster.captures.contains_key(node)) {
            continue;
        }
        for port in pod.spec.ports().filter_map(|port| port.host_port) {
            let own = || ObjectRef::namespaced(ObjectKind::Pod, &pod.name);
            let subject = pod.owner.clone().unwrap_or_else(own);
            let ports = &mut asking.entry(subject).or_insert((Vec::new(), &pod.origin)).0;
            if !ports.contains(&port.number()) {
                ports.push(port.number());
            }
        }
    }
    let finding = |(subject, (ports, origin)): (ObjectRef, (Vec<u16>, &Origin))| {
        let named: Vec<String> = ports.iter().map(ToString::to_string).collect();
        let what = format!(
            "{why}, so nothing forwards what its pods ask for: port {} of their nodes (hostPort)",
            named.join(" and ")
        );
        let mut finding = about(Code::HostPortOff, subject, origin, what);
        finding.targets = ports.iter().map(|port| format!(":{port} of its nodes")).collect();
        finding.clients = Clients::other(Clients::OUTSIDE);
        finding.share_failing = Share::ALL;
        finding.outcome = Outcome::Refused;
        finding
    };
    asking.into_iter().map(finding).collect()
}
