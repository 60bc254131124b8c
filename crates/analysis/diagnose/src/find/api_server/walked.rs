//! Walks the calls of the API server. Where it runs on a node, it calls the cluster IP by the node's
//! rules. A managed one is outside, in the network around the nodes, and calls the endpoints directly.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use uturn_model::network::Transport;
use uturn_model::{
    ApiServerCall, ApiServerCalls, Client, Cluster, Destination, EndpointPort, Family, Flow,
    Mechanism, Name, NamespacedName, ObjectKind, Outcome, Pod, Port, Protocol, Service, Share,
    Text, Verdict,
};
use uturn_path::Engine;

use super::super::MAX_PAIRS;
use super::super::object_faults::about;
use super::{caller, severity, target};
use crate::clients::{Clients, Example};
use crate::conditions::conditions;
use crate::evidence::worst;
use crate::finding::Finding;
use crate::{Code, Severity};

/// The maximum number of walks.
const MAX_WALKS: usize = 400;

/// The name of agents by which an API server calls from a pod of the cluster, instead of from its own
/// address.
const AGENT: &str = "konnectivity-agent";

/// The failures that do not depend on where the API server is: other findings name them.
const OF_SERVICE: [Mechanism; 8] = [
    Mechanism::NoEndpoint,
    Mechanism::NoTarget,
    Mechanism::HostPortOff,
    Mechanism::WrongPort,
    Mechanism::TlsBypassed,
    Mechanism::ProxyHeader,
    Mechanism::NotModelled,
    Mechanism::NotGiven,
];

/// The failure of a call.
#[derive(Clone)]
struct Failure {
    flow: Flow,
    /// The port at which the API server has to be let in.
    port: Port,
    mechanism: Mechanism,
    outcome: Outcome,
    share: Share,
    conditions: Vec<Text>,
    severity: Severity,
}

pub(super) fn find(engine: &Engine<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    if cluster.api_server_calls.is_empty()
        || cluster.nodes.len() * cluster.services.len() > MAX_PAIRS
    {
        return Vec::new();
    }
    let callers = callers(cluster);
    let mut left = MAX_WALKS;
    let mut known: BTreeMap<(&NamespacedName, Port), Option<Failure>> = BTreeMap::new();
    let mut all = Vec::new();
    for calls in &cluster.api_server_calls {
        for call in &calls.calls {
            let Some(service) = cluster.services.get(&call.service) else { continue };
            let failure = known.entry((&call.service, call.port)).or_insert_with(|| {
                let flows = flows(cluster, &callers, service, call.port);
                flows.into_iter().find_map(|(flow, port)| {
                    left = left.checked_sub(1)?;
                    failure(engine, flow, port)
                })
            });
            all.extend(failure.clone().map(|failure| finding(calls, call, failure)));
        }
    }
    all
}

/// The places from which the API server calls.
pub(super) enum Callers {
    Nodes(BTreeSet<Name>),
    /// Addresses in the network around the nodes.
    Outside(Vec<IpAddr>),
}

/// Iterates over the pods that are API servers.
pub(crate) fn server_pods(cluster: &Cluster) -> impl Iterator<Item = &Pod> {
    let is_api_server = |pod: &&Pod| {
        pod.spec.host_network
            && pod.is_alive()
            && pod.spec.containers.iter().any(|own| own.program() == "kube-apiserver")
    };
    cluster.pods.values().filter(is_api_server)
}

pub(super) fn callers(cluster: &Cluster) -> Callers {
    let nodes: BTreeSet<Name> = server_pods(cluster).filter_map(|pod| pod.node.clone()).collect();
    if !nodes.is_empty() {
        return Callers::Nodes(nodes);
    }
    let slices = cluster.api_server_slices().iter().filter(|slice| !slice.derived);
    let addresses: Vec<IpAddr> =
        slices.flat_map(|slice| &slice.endpoints).map(|endpoint| endpoint.address).collect();
    let node_at = |ip: &IpAddr| {
        let mut nodes = cluster.nodes.values();
        nodes.find(|node| node.has_address(*ip)).map(|node| node.name.clone())
    };
    let nodes: BTreeSet<Name> = addresses.iter().filter_map(node_at).collect();
    if !nodes.is_empty() {
        return Callers::Nodes(nodes);
    }
    let has_agent = cluster.pods.keys().any(|name| name.name.as_str().starts_with(AGENT));
    let is_private = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => ip.is_private(),
        IpAddr::V6(ip) => ip.is_unique_local(),
    };
    let inside = addresses.into_iter().filter(|ip| is_private(ip) && !has_agent);
    Callers::Outside(inside.collect())
}

/// Returns the calls of a Service's port, each with the port at which it arrives.
fn flows(cluster: &Cluster, callers: &Callers, service: &Service, port: Port) -> Vec<(Flow, Port)> {
    let Some(own) = service.ports.iter().find(|own| own.port == port) else { return Vec::new() };
    let slices = cluster.slices(&service.name);
    let ends = slices.iter().flat_map(|slice| {
        let is_it = |end: &&EndpointPort| end.name == own.name && end.protocol == Protocol::Tcp;
        let end = slice.ports.iter().find(is_it).map(|end| end.port);
        let ready = slice.endpoints.iter().filter(|endpoint| endpoint.ready);
        ready.filter_map(move |endpoint| Some((endpoint.address, end?)))
    });
    let ends: Vec<(IpAddr, Port)> = ends.collect();
    let Some((_, arrives)) = ends.first().copied() else { return Vec::new() };
    let flow = |from: Client, to: Destination| Flow { from, to, protocol: Protocol::Tcp };
    match callers {
        Callers::Nodes(_) if service.cluster_ips.is_empty() => Vec::new(),
        Callers::Nodes(nodes) => {
            let to = Destination::Service(service.name.clone(), Some(port.to_string().into()));
            let of = |node: &Name| (flow(Client::Node(node.clone()), to.clone()), arrives);
            nodes.iter().map(of).collect()
        }
        Callers::Outside(addresses) => {
            let pairs = addresses.iter().flat_map(|ip| ends.iter().map(move |end| (*ip, *end)));
            let same = pairs.filter(|(ip, (end, _))| Family::of(*ip) == Family::of(*end));
            same.map(|(ip, (end, port))| {
                let to = Destination::Address(SocketAddr::new(end, port.number()));
                (flow(Client::Outside(Some(ip)), to), port)
            })
            .collect()
        }
    }
}

/// Returns the failure of a call, if it fails because of where the API server is.
fn failure(engine: &Engine<'_>, flow: Flow, port: Port) -> Option<Failure> {
    let verdict = engine.verdict(&flow).ok()?;
    if let Some(worst) = worst(&verdict) {
        let mechanism = worst.mechanisms.first().copied()?;
        let mut supposed = verdict.supposed.iter();
        if OF_SERVICE.contains(&mechanism) || supposed.any(|own| !engine.supposed().contains(own)) {
            return None;
        }
        let code = Code::of(mechanism, ObjectKind::Service);
        let mut all = verdict.conditions.clone();
        all.extend(conditions(code, mechanism, &verdict));
        return Some(Failure {
            port,
            mechanism,
            outcome: worst.outcome,
            share: verdict.share_failing(),
            conditions: all,
            severity: code.severity(),
            flow,
        });
    }
    let Destination::Address(to) = flow.to else { return None };
    let condition = without_route(engine, &flow.from, to.ip(), &verdict)?;
    Some(Failure {
        port,
        mechanism: Mechanism::NoRoute,
        outcome: Outcome::Hangs,
        share: Share::ALL,
        conditions: vec![condition],
        severity: Severity::Error,
        flow,
    })
}

/// Returns the condition under which a call hangs that goes from a machine that is no node into a
/// network of tunnels between nodes, if the verdict leaves it open.
pub(crate) fn without_route(
    engine: &Engine<'_>,
    from: &Client,
    to: IpAddr,
    verdict: &Verdict,
) -> Option<Text> {
    let transport = engine.cluster().network.transport_of(Family::of(to));
    let is_hidden = matches!(from, Client::Outside(_))
        && verdict.mechanisms == [Mechanism::NotModelled]
        && transport.value == Transport::Tunnel
        && !transport.is_supposed()
        && !engine.cluster().nodes.values().any(|node| node.has_address(to));
    is_hidden.then(|| format!("the network around the nodes has no route to {to}").into())
}

fn finding(calls: &ApiServerCalls, call: &ApiServerCall, failure: Failure) -> Finding {
    let from = match &failure.flow.from {
        Client::Node(node) => format!("on node {node}"),
        Client::Outside(Some(ip)) => format!("at {ip}"),
        other => other.to_string(),
    };
    let what = format!(
        "{} {from} calls svc/{}:{}, which leads to port {} of its pods: this port has to be open for \
         the API server",
        caller(&call.called, &call.reason),
        call.service,
        call.port,
        failure.port
    );
    let code = Code::of(failure.mechanism, ObjectKind::Service);
    let mut finding = about(code, calls.object(), &calls.origin, what);
    finding.severity = severity(&call.reason).min(failure.severity);
    finding.targets = vec![target(call)];
    finding.clients = Clients::other(Clients::API_SERVER);
    finding.share_failing = failure.share;
    (finding.outcome, finding.mechanism) = (failure.outcome, Some(failure.mechanism));
    finding.conditions = failure.conditions;
    finding.example = Example::Flow(failure.flow);
    finding
}
