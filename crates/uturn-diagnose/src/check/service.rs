//! A Service that cannot be reached: first from outside, then from inside.

use std::net::SocketAddr;

use uturn_model::lb::Scope;
use uturn_model::service::{Policy, ServiceKind, ServicePort, TargetPort};
use uturn_model::{Client, Destination, Family, Flow, Mechanism, Node, Pod, Service, Unknown};
use uturn_path::Engine;

use super::nodes::{group_lets_in, node_ports as node_port_range};
use super::{Check, Checklist, State, a_pod_on_each, asks, flow, walked};
use crate::{Code, cloud};

pub(super) fn check(engine: &Engine<'_>, service: &Service) -> Checklist {
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

/// What a Service needs inside the cluster, with or without a load balancer.
pub(super) fn inside(engine: &Engine<'_>, service: &Service) -> Vec<Check> {
    let mut checks = vec![ports(engine, service), endpoints(engine, service)];
    if !service.cluster_ips.is_empty() {
        checks.push(cluster_ip(engine, service));
        checks.push(name(engine, service));
    }
    checks.push(each_endpoint(engine, service));
    checks.push(rules(engine, service));
    checks
}

/// The security groups of the nodes.
pub(super) fn groups(engine: &Engine<'_>) -> Check {
    let cluster = engine.cluster();
    let (ports, groups) = (cloud::node_ports(cluster), cloud::firewalls(cluster));
    let place = cloud::place(cluster);
    let what = format!("the nodes' {groups} let {ports} in");
    let nodes = engine.cluster().nodes.values();
    let (mut shut, mut open, mut unknown) = (Vec::new(), 0, 0);
    for node in nodes {
        match group_lets_in(engine, node, node_port_range(cluster)) {
            Some(Ok(())) => open += 1,
            Some(Err(why)) => shut.push(format!("node {}: {why}", node.name)),
            None => unknown += 1,
        }
    }
    if !shut.is_empty() {
        let mut check = Check::new(what, State::Failed);
        check.evidence = shut;
        return check.next(format!(
            "{place}: let TCP and UDP {ports} in; {}",
            Code::SecurityGroup.explain()
        ));
    }
    match (open, unknown) {
        (_, 0) => Check::ok(what, format!("{open} nodes, as Facts state their groups")),
        _ => {
            let group = cloud::firewall(cluster);
            Check::unknown(what, format!("of {unknown} nodes no {group} is stated")).next(format!(
                "look at the nodes' {groups} {place}, or state nodes.*.securityGroups in Facts"
            ))
        }
    }
}

/// Only where Facts state it, or where the cloud has accounts that bill it by node.
fn bandwidth(engine: &Engine<'_>, service: &Service) -> Option<Check> {
    let cluster = engine.cluster();
    let is_stated = cluster.nodes.values().any(|node| node.public_bandwidth.is_some());
    let what = match cloud::words(cluster).bandwidth {
        Some(what) => what,
        None if is_stated => "the nodes have public bandwidth",
        None => return None,
    };
    Some(bandwidth_of(engine, service, what))
}

fn bandwidth_of(engine: &Engine<'_>, service: &Service, what: &str) -> Check {
    let is_public = engine.balancers().iter().any(|balancer| {
        balancer.scope == Scope::Public
            && service.load_balancer.iter().any(|lb| lb.ip == Some(balancer.vip))
    });
    if !is_public {
        return Check::ok(what, "not needed: the load balancer is a private one");
    }
    let nodes: Vec<&Node> = engine.cluster().nodes.values().collect();
    let without: Vec<&str> = nodes
        .iter()
        .filter(|node| node.public_bandwidth == Some(false))
        .map(|node| node.name.as_str())
        .collect();
    if !without.is_empty() {
        return Check::failed(what, format!("none: {}", without.join(", ")))
            .next(Code::NoBandwidth.explain());
    }
    if nodes.iter().all(|node| node.public_bandwidth == Some(true)) {
        return Check::ok(what, "as Facts state it");
    }
    Check::unknown(what, "nothing states it")
        .next("look at the account's billing and the nodes' bandwidth; state nodes.*.publicBandwidth in Facts")
}

/// Past the load balancer: each node's own address and port.
fn node_ports(engine: &Engine<'_>, service: &Service) -> Check {
    let cluster = engine.cluster();
    let mut flows = Vec::new();
    let nodes: Vec<&Node> = cluster.nodes.values().collect();
    let slices = cluster.slices(&service.name);
    let homes: Vec<_> = slices
        .iter()
        .flat_map(|slice| &slice.endpoints)
        .filter_map(|endpoint| endpoint.node.as_ref())
        .collect();
    for port in &service.ports {
        let Some(number) = port.node_port else { continue };
        for (at, node) in nodes.iter().enumerate() {
            // A node without a pod answers no call under policy Local.
            if service.external_policy == Policy::Local && !homes.contains(&&node.name) {
                continue;
            }
            let Some(ip) = node.address(Family::V4).or(node.address(Family::V6)) else { continue };
            let other = nodes[(at + 1) % nodes.len()];
            let to = Destination::Address(SocketAddr::new(ip, number.number()));
            flows.push(flow(Client::Node(other.name.clone()), to, port.protocol));
        }
    }
    walked(engine, "NodeIP:NodePort answers, past the load balancer", flows)
}

/// The load balancer, from inside: does it loop?
fn load_balancer(engine: &Engine<'_>, service: &Service) -> Check {
    let mut flows = Vec::new();
    for vip in service.load_balancer.iter().filter_map(|address| address.ip) {
        for port in &service.ports {
            let to = Destination::Address(SocketAddr::new(vip, port.port.number()));
            flows.extend(from_each(engine, &to, port.protocol));
        }
    }
    let what = "pods reach the load balancer's address, and it does not send them back";
    if flows.is_empty() {
        return Check::unknown(what, "it has no address, or there is no pod that could call");
    }
    walked(engine, what, flows)
}

fn health(engine: &Engine<'_>, service: &Service) -> Vec<Check> {
    let mut all = Vec::new();
    for vip in service.load_balancer.iter().filter_map(|address| address.ip) {
        for port in &service.ports {
            let at = SocketAddr::new(vip, port.port.number());
            all.extend(health_of(
                engine,
                at,
                port.protocol,
                service.external_policy == Policy::Local,
                lacks_endpoints(service),
            ));
        }
    }
    all
}

/// Whether targets answer their health checks.
pub(super) fn health_of(
    engine: &Engine<'_>,
    at: SocketAddr,
    protocol: uturn_model::Protocol,
    is_local: bool,
    is_open: bool,
) -> Option<Check> {
    let what = format!("health checks of {at} are answered");
    let health = match engine.health(at, protocol) {
        Ok(found) => found?,
        Err(why) => return Some(Check::unknown(what, why.to_string())),
    };
    if is_open {
        return Some(Check::unknown(what, "what stands behind it is not given"));
    }
    if health.is_empty() {
        return Some(Check::failed(what, "there is no target").next(Code::NoTargets.explain()));
    }
    let alive = health.iter().filter(|target| target.alive).count();
    let found = format!("{alive} of {} targets", health.len());
    let by_design = |target: &uturn_path::Health| {
        target.alive || is_local && alive > 0 && target.mechanisms == [Mechanism::NoEndpoint]
    };
    if health.iter().all(by_design) {
        let more =
            if alive < health.len() { "; the others have no pod, and policy is Local" } else { "" };
        return Some(Check::ok(what, format!("{found}{more}")));
    }
    let mut check = Check::failed(what, found);
    for dead in health.iter().filter(|target| !target.alive).take(3) {
        let why: Vec<&str> = dead.mechanisms.iter().map(|mechanism| mechanism.as_str()).collect();
        check.evidence.push(format!("{}: {}", dead.target, why.join(", ")));
    }
    Some(check.next(Code::ProbeBlackhole.explain()))
}

fn ports(engine: &Engine<'_>, service: &Service) -> Check {
    let what = "spec.ports lead where pods listen";
    let pods = selected(engine, service);
    if service.selector.is_none() {
        return Check::unknown(what, "it has no selector: its endpoints are written by hand");
    }
    if pods.is_empty() {
        return Check::unknown(what, "no pod is selected")
            .next(format!("kubectl -n {} get pods --show-labels", service.name.namespace));
    }
    let mut check = Check::new(what, State::Ok);
    let are_all_declared = engine.cluster().extent.listeners;
    let is_supposed =
        |port: &ServicePort| !are_all_declared && matches!(port.target, TargetPort::Number(_));
    for port in &service.ports {
        let silent = pods.iter().all(|pod| pod.spec.ports().next().is_none());
        let has = |pod: &&Pod| match &port.target {
            TargetPort::Number(number) => pod.spec.ports().any(|container_port| {
                container_port.port == *number && container_port.protocol == port.protocol
            }),
            TargetPort::Name(name) => pod.spec.named_port(name, port.protocol).is_some(),
        };
        let mapping = format!("{} → targetPort {}", port.port, port.target);
        let is_probed = matches!(port.target, TargetPort::Number(number)
            if pods.iter().any(|pod| pod.ready && pod.spec.is_probed(number)));
        if pods.iter().any(has) || is_probed {
            check.evidence.push(mapping);
        } else if silent && matches!(port.target, TargetPort::Number(_)) {
            if check.state == State::Ok {
                check.state = State::Unknown;
            }
            check.evidence.push(format!("{mapping}: the pods declare no ports"));
        } else if is_supposed(port) {
            if check.state == State::Ok {
                check.state = State::Unknown;
            }
            check.evidence.push(format!(
                "{mapping}: no pod declares it, and it need not ({})",
                service.origin
            ));
            check.next.get_or_insert_with(|| Code::WrongPort.explain());
        } else {
            check.state = State::Failed;
            check.evidence.push(format!("{mapping}: no pod declares it ({})", service.origin));
            check.next = Some(Code::WrongPort.explain());
        }
    }
    check
}

fn selected<'a>(engine: &Engine<'a>, service: &Service) -> Vec<&'a Pod> {
    let Some(selector) = &service.selector else { return Vec::new() };
    let pods = engine.cluster().pods.values().filter(|pod| pod.is_alive());
    pods.filter(|pod| pod.name.namespace == service.name.namespace)
        .filter(|pod| selector.matches(&pod.spec.labels))
        .collect()
}

fn endpoints(engine: &Engine<'_>, service: &Service) -> Check {
    let what = "there are endpoints that are ready";
    let slices = engine.cluster().slices(&service.name);
    let all: Vec<_> = slices.iter().flat_map(|slice| &slice.endpoints).collect();
    let ready = all.iter().filter(|endpoint| endpoint.ready).count();
    let see = format!(
        "kubectl -n {} get endpointslices -l kubernetes.io/service-name={}",
        service.name.namespace, service.name.name
    );
    match (ready, all.len()) {
        (0, 0) if lacks_endpoints(service) => {
            Check::unknown(what, why_open(engine, service)).next(see)
        }
        (0, 0) => Check::failed(what, "none at all").next(Code::NoEndpoints.explain()),
        (0, many) => Check::failed(what, format!("{many}, and none is ready")).next(see),
        (some, many) => Check::ok(what, format!("{some} of {many}")).next(see),
    }
}

/// Whether the input does not determine the Service's endpoints.
pub(super) fn lacks_endpoints(service: &Service) -> bool {
    service.unjudged.contains(&Unknown::Endpoints)
}

/// Whether no call of it is judged.
fn is_open(service: &Service) -> bool {
    service.unjudged.iter().any(Unknown::is_of_every_call)
}

/// Why no call of it is judged.
fn why_open(engine: &Engine<'_>, service: &Service) -> String {
    let object = service.object();
    let mut gaps = engine.cluster().unjudged.iter();
    let gap = gaps.find(|gap| gap.subject.is_of_every_call() && gap.objects.contains(&object));
    gap.map_or_else(|| "it is not given".to_owned(), |gap| gap.because.to_string())
}

/// A call from a pod of each node.
fn from_each(engine: &Engine<'_>, to: &Destination, protocol: uturn_model::Protocol) -> Vec<Flow> {
    let pods = a_pod_on_each(engine).into_iter();
    pods.map(|pod| flow(Client::Pod(pod.name.clone()), to.clone(), protocol)).collect()
}

pub(super) fn cluster_ip(engine: &Engine<'_>, service: &Service) -> Check {
    let mut flows = Vec::new();
    for port in &service.ports {
        let text = Some(port.port.to_string().into());
        let to = Destination::Service(service.name.clone(), text);
        flows.extend(from_each(engine, &to, port.protocol));
    }
    let what = "the ClusterIP answers in the cluster";
    if is_open(service) {
        return Check::unknown(what, why_open(engine, service));
    }
    walked(engine, what, flows)
}

fn name(engine: &Engine<'_>, service: &Service) -> Check {
    let what = "its name leads there (if the ClusterIP answers and this does not, it is DNS)";
    let cluster = engine.cluster();
    if cluster.dns.corefile.is_none() {
        return Check::unknown(what, "CoreDNS's ConfigMap is not given")
            .next("uturn check dns, with kube-system/coredns among the manifests");
    }
    let host =
        format!("{}.{}.svc.{}", service.name.name, service.name.namespace, cluster.dns.domain());
    let Some(port) = service.ports.first() else { return Check::unknown(what, "it has no port") };
    let to = Destination::Host(host.into(), port.port);
    let pods = a_pod_on_each(engine).into_iter().filter(|pod| asks(pod));
    let flows = pods.map(|pod| flow(Client::Pod(pod.name.clone()), to.clone(), port.protocol));
    let check = walked(engine, what, flows.take(1).collect());
    match check.state {
        State::Failed => check.next("uturn check dns"),
        _ => check,
    }
}

fn each_endpoint(engine: &Engine<'_>, service: &Service) -> Check {
    let what = "every endpoint answers by its own address";
    let mut flows = Vec::new();
    for slice in engine.cluster().slices(&service.name) {
        for port in &slice.ports {
            for endpoint in slice.endpoints.iter().filter(|endpoint| endpoint.ready) {
                let to =
                    Destination::Address(SocketAddr::new(endpoint.address, port.port.number()));
                let elsewhere =
                    a_pod_on_each(engine).into_iter().find(|pod| pod.node != endpoint.node);
                let pod = elsewhere.or_else(|| a_pod_on_each(engine).into_iter().next());
                flows.extend(pod.map(|pod| flow(Client::Pod(pod.name.clone()), to, port.protocol)));
            }
        }
    }
    if flows.is_empty() {
        return Check::unknown(what, "there is no endpoint to ask");
    }
    let check = walked(engine, what, flows);
    match check.state {
        State::Failed => check.next("uturn check cross-node"),
        _ => check,
    }
}

/// kube-proxy's rules on every node.
fn rules(engine: &Engine<'_>, service: &Service) -> Check {
    let cluster = engine.cluster();
    if let Some(other) = cluster.proxy.replaced_by() {
        let what = format!("{other} serves it on every node");
        return Check::unknown(what, "what it has programmed is not looked at");
    }
    let what = "every node has its rules";
    let lacking: Vec<&str> = cluster
        .nodes
        .values()
        .filter(|node| node.unprogrammed.contains(&service.name))
        .map(|node| node.name.as_str())
        .collect();
    if !lacking.is_empty() {
        return Check::failed(what, format!("not on {}", lacking.join(", ")))
            .next(Code::RulesMissing.explain());
    }
    match cluster.captures.len() {
        0 => Check::unknown(
            what,
            "no node was captured: its rules are taken to be what kube-proxy writes",
        )
        .next("compare on a node: uturn rules --node NODE, and iptables-save"),
        some if some == cluster.nodes.len() => {
            Check::ok(what, format!("{some} captures were walked"))
        }
        some => {
            Check::unknown(what, format!("{some} of {} nodes were captured", cluster.nodes.len()))
        }
    }
}
