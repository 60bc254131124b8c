//! Checks what a Service needs inside the cluster, with or without a load balancer.

use std::net::SocketAddr;

use uturn_model::service::{ServicePort, TargetPort};
use uturn_model::shell::Command;
use uturn_model::{Client, Destination, Flow, Mechanism, Pod, Service, Unknown};
use uturn_path::Engine;

use super::{from_each, lacks_endpoints};
use crate::check::service_name::leads_elsewhere;
use crate::check::{Check, State, a_pod_on_each, asks, flow, walked};
use crate::{Code, reason};

/// Returns the checks of a Service inside the cluster, with or without a load balancer.
pub(in crate::check) fn inside(engine: &Engine<'_>, service: &Service) -> Vec<Check> {
    let mut checks = vec![ports(engine, service), endpoints(engine, service)];
    if !service.cluster_ips.is_empty() {
        checks.push(cluster_ip(engine, service));
        checks.push(name(engine, service));
    }
    checks.push(each_endpoint(engine, service));
    checks.push(rules(engine, service));
    checks
}

fn ports(engine: &Engine<'_>, service: &Service) -> Check {
    let what = "spec.ports lead where pods listen";
    let pods = engine.cluster().selected(service);
    if service.selector.is_none() {
        return Check::unknown(what, "it has no selector: its endpoints are written by hand");
    }
    if pods.is_empty() {
        return Check::unknown(what, "no pod is selected").next(
            Command::new("kubectl -n")
                .value(&service.name.namespace)
                .words("get pods --show-labels"),
        );
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
            check.next.get_or_insert_with(|| Code::WrongPort.explain().into());
        } else {
            check.state = State::Failed;
            check.evidence.push(format!("{mapping}: no pod declares it ({})", service.origin));
            check.next = Some(Code::WrongPort.explain().into());
        }
    }
    check
}

fn endpoints(engine: &Engine<'_>, service: &Service) -> Check {
    let what = "there are endpoints that are ready";
    let slices = engine.cluster().slices(&service.name);
    let all: Vec<_> = slices.iter().flat_map(|slice| &slice.endpoints).collect();
    let ready = all.iter().filter(|endpoint| endpoint.ready).count();
    let see = Command::new("kubectl -n")
        .value(&service.name.namespace)
        .words("get endpointslices -l kubernetes.io/service-name=")
        .joined(&service.name.name);
    let why = |check: Check| match reason::of_service(engine.cluster(), service) {
        Some(why) => check.because(why.to_string()),
        None => check,
    };
    match (ready, all.len()) {
        (0, 0) if lacks_endpoints(service) => {
            Check::unknown(what, why_open(engine, service)).next(see)
        }
        (0, 0) => why(Check::failed(what, "none at all")).next(Code::NoEndpoints.explain()),
        (0, many) => why(Check::failed(what, format!("{many}, and none is ready"))).next(see),
        (some, many) => Check::ok(what, format!("{some} of {many}")).next(see),
    }
}

/// Returns whether no call to the Service is judged.
fn is_open(service: &Service) -> bool {
    service.unjudged.iter().any(Unknown::is_of_every_call)
}

/// Returns why no call to the Service is judged.
fn why_open(engine: &Engine<'_>, service: &Service) -> String {
    let object = service.object();
    let mut gaps = engine.cluster().unjudged.iter();
    let gap = gaps.find(|gap| gap.subject.is_of_every_call() && gap.objects.contains(&object));
    gap.map_or_else(|| "it is not given".to_owned(), |gap| gap.because.to_string())
}

/// Returns a call to each port at each cluster IP, from a pod of each node.
fn calls(engine: &Engine<'_>, service: &Service) -> Vec<Flow> {
    let mut flows = Vec::new();
    for port in &service.ports {
        let text = Some(port.port.to_string().into());
        let to = Destination::Service(service.name.clone(), text);
        flows.extend(from_each(engine, &to, port.protocol));
        for ip in service.cluster_ips.iter().skip(1) {
            let to = Destination::Address(SocketAddr::new(*ip, port.port.number()));
            flows.extend(from_each(engine, &to, port.protocol));
        }
    }
    flows
}

pub(in crate::check) fn cluster_ip(engine: &Engine<'_>, service: &Service) -> Check {
    let flows = calls(engine, service);
    let what = "the ClusterIP answers in the cluster";
    if is_open(service) {
        return Check::unknown(what, why_open(engine, service));
    }
    walked(engine, what, flows)
}

fn name(engine: &Engine<'_>, service: &Service) -> Check {
    let what =
        "its name leads there (if the ClusterIP answers and this does not, the fault is in DNS)";
    let cluster = engine.cluster();
    if cluster.dns.corefile.is_none() {
        return Check::unknown(what, "CoreDNS's ConfigMap is not given")
            .next("uturn check dns, with the ConfigMap of CoreDNS among the manifests");
    }
    let host = cluster.dns.name_of(&service.name);
    let Some(port) = service.ports.first() else { return Check::unknown(what, "it has no port") };
    let to = Destination::Host(host.into(), port.port);
    let pods = a_pod_on_each(engine).into_iter().filter(|pod| asks(pod));
    let flows = pods.map(|pod| flow(Client::Pod(pod.name.clone()), to.clone(), port.protocol));
    let flows: Vec<Flow> = flows.take(1).collect();
    if let Some(check) = leads_elsewhere(engine, what, service, &flows) {
        return check;
    }
    let check = walked(engine, what, flows);
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

/// Checks kube-proxy's rules on each node.
fn rules(engine: &Engine<'_>, service: &Service) -> Check {
    let cluster = engine.cluster();
    if let Some(other) = cluster.proxy.replaced_by() {
        let what = format!("{other} serves it on every node");
        return Check::unknown(what, "what it has programmed is not read");
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
    if !cluster.captures.is_empty() {
        let meets_none = |flow: &Flow| {
            let verdict = engine.verdict(flow);
            verdict.is_ok_and(|verdict| verdict.mechanisms.contains(&Mechanism::RuleMissing))
        };
        let is_captured = |flow: &Flow| match &flow.from {
            Client::Pod(name) => {
                let node = cluster.pods.get(name).and_then(|pod| pod.node.as_ref());
                node.is_some_and(|node| cluster.captures.contains_key(node))
            }
            _ => false,
        };
        let mut flows = calls(engine, service).into_iter().filter(is_captured);
        if let Some(flow) = flows.find(meets_none) {
            return Check::failed(what, format!("none takes {} to {}", flow.from, flow.to))
                .next("uturn check nodes");
        }
    }
    match cluster.captures.len() {
        0 => Check::unknown(
            what,
            "no node was captured: their rules are assumed to be those that kube-proxy writes",
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
