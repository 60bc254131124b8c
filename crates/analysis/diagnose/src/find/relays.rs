//! Finds load balancers in pods that drop what they should forward. Calls of the addresses in the
//! Service's status do not pass these pods: rules of the node serve them.

use std::net::{IpAddr, SocketAddr};

use uturn_clouds::on_nodes::{self, OnNodes};
use uturn_model::{Client, Cluster, Destination, Flow, Outcome, Share};
use uturn_path::Engine;

use super::object_faults::about;
use crate::clients::{Clients, Example};
use crate::finding::Finding;
use crate::{Code, Severity};

pub(crate) fn find(engine: &Engine<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    on_nodes::all(cluster).iter().filter_map(|balancer| of_service(cluster, balancer)).collect()
}

fn of_service(cluster: &Cluster, balancer: &OnNodes<'_>) -> Option<Finding> {
    let service = balancer.service;
    let mut ports = service.ports.iter();
    let (called, why) = ports.find_map(|port| {
        let mut pods = balancer.pods.iter();
        let found = pods.find_map(|pod| balancer.product.drops_forwarded(pod, service, port))?;
        Some((port, found.because))
    })?;
    let port = called.port;
    let is_served =
        |ip: &IpAddr| service.load_balancer.iter().any(|entry| entry.ip.as_ref() == Some(ip));
    let on_node = |name| cluster.nodes.get(name).into_iter().flat_map(|node| &node.internal_ips);
    let nodes = balancer.pods.iter().filter_map(|pod| pod.node.as_ref());
    let others: Vec<&IpAddr> = nodes.flat_map(on_node).filter(|ip| !is_served(ip)).collect();
    let mut finding = about(Code::NodeFirewall, service.object(), &service.origin, why);
    finding.outcome = Outcome::Hangs;
    finding.share_failing = Share::ALL;
    match others.first() {
        // Nothing serves these addresses but the pods, and nothing else is open: each call is lost.
        Some(first) => {
            finding.targets = others.iter().map(|ip| format!("{ip}:{port}")).collect();
            finding.clients = Clients::other(Clients::OUTSIDE);
            let to = Destination::Address(SocketAddr::new(**first, port.number()));
            let (from, protocol) = (Client::Outside(None), called.protocol);
            finding.example = Example::Flow(Flow { from, to, protocol });
        }
        // Every address of these nodes is in the status: only calls of loopback meet the pods.
        None => {
            finding.severity = Severity::Info;
            finding.targets = vec![format!("127.0.0.1:{port}")];
            finding.clients = Clients::other(Clients::NODES);
        }
    }
    Some(finding)
}
