//! Checks whether pods of different nodes can reach each other.

use uturn_model::{Client, Destination, Flow, Node, Pod, Port, Protocol};
use uturn_path::Engine;

use super::service::groups;
use super::{Check, Checklist, State, a_pod_on_each, flow, walked_to_server};
use crate::{Code, cloud};

pub(super) fn check(engine: &Engine<'_>) -> Checklist {
    let cluster = engine.cluster();
    let mut checks = Vec::new();
    let nodes: Vec<&Node> = cluster.nodes.values().collect();
    if nodes.len() < 2 {
        checks.push(Check::unknown("there are two nodes", format!("{} is known", nodes.len())));
    }
    let servers: Vec<(&Pod, Port)> = servers(engine);
    let mut from_nodes: Vec<Flow> = Vec::new();
    let mut from_pods: Vec<Flow> = Vec::new();
    for (server, port) in &servers {
        let to = || Destination::Pod(server.name.clone(), *port);
        for node in nodes.iter().filter(|node| Some(&node.name) != server.node.as_ref()) {
            from_nodes.push(flow(Client::Node(node.name.clone()), to(), Protocol::Tcp));
        }
        for pod in a_pod_on_each(engine) {
            if pod.node != server.node {
                from_pods.push(flow(Client::Pod(pod.name.clone()), to(), Protocol::Tcp));
            }
        }
    }
    checks.push(walked_to_server(engine, "nodes reach pods of other nodes", from_nodes));
    let pods = walked_to_server(engine, "pods reach pods of other nodes", from_pods);
    checks.push(match pods.state {
        State::Failed => Check { next: pods.next.clone(), ..pods }.because(format!(
            "if nodes reach them and pods do not: the {} have to let the pod range in",
            cloud::firewalls(engine.cluster())
        )),
        _ => pods,
    });
    checks.push(groups(engine));
    let words = cloud::words(engine.cluster());
    let routes = words.routes_to_all_pods;
    let forwards: fn(&Node) -> Option<bool> = |node| node.forwards;
    let routed: fn(&Node) -> Option<bool> = |node| node.routed;
    for (what, fact, code) in
        [("every node forwards", forwards, Code::CrossNode), (routes, routed, Code::NoRoute)]
    {
        let wrong = nodes.iter().filter(|node| fact(node) == Some(false));
        let wrong: Vec<&str> = wrong.map(|node| node.name.as_str()).collect();
        checks.push(if !wrong.is_empty() {
            Check::failed(what, format!("not {}", wrong.join(", "))).next(code.explain())
        } else if nodes.iter().all(|node| fact(node) == Some(true)) {
            Check::ok(what, "as Facts state it")
        } else {
            Check::unknown(what, "not stated, and assumed to be so").next("uturn check nodes")
        });
    }
    let (what, next) = words.other_networks;
    checks.push(Check::unknown(what, "not known here").next(next));
    Checklist { subject: "pods of different nodes".to_owned(), checks }
}

/// Returns a pod on each node that listens on a port.
fn servers<'a>(engine: &Engine<'a>) -> Vec<(&'a Pod, Port)> {
    let mut found: Vec<(&Pod, Port)> = Vec::new();
    for pod in engine.cluster().pods.values() {
        if !pod.is_alive() || pod.spec.host_network || pod.ips.is_empty() {
            continue;
        }
        let port =
            pod.spec.ports().find(|port| port.protocol == Protocol::Tcp).map(|port| port.port);
        let is_new = found.iter().all(|(server, _)| server.node != pod.node);
        found.extend(port.filter(|_| is_new).map(|port| (pod, port)));
    }
    found
}
