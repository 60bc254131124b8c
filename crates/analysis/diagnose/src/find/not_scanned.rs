//! Finds faults that a scan of pods does not show: clients from outside, and health checks.

use std::net::SocketAddr;

use uturn_clouds::cloud::PageCheck;
use uturn_model::lb::{HealthQuestion, Layer, Listener, LoadBalancer, Rule, Scope};
use uturn_model::service::Policy;
use uturn_model::{
    Client, Destination, Evidence, Flow, Mechanism, ObjectKind, ObjectRef, Outcome, Port, Protocol,
    Share,
};
use uturn_path::{Engine, Health, WalkError};
use uturn_scan::address_label;

use super::MAX_PAIRS;
use super::cause::faults_at;
use super::outside_clients::OutsideClients;
use super::walked::{self, Caused};
use crate::clients::{Clients, Example};
use crate::finding::Finding;
use crate::{Code, Observation};

/// The maximum number of rules that lead to endpoints, on all nodes together, with which each
/// target of a load balancer is walked on its node.
const MAX_RULES: usize = 1_000_000;

pub(crate) fn find(engine: &Engine<'_>) -> Result<Vec<Caused>, WalkError> {
    let cluster = engine.cluster();
    let size = cluster.nodes.len() * cluster.services.len();
    // If no object's status has a load balancer, none is derived and none is left out.
    let listeners =
        |all: &[LoadBalancer]| all.iter().map(|balancer| balancer.listeners.len()).sum::<usize>();
    if size > MAX_PAIRS {
        let has_any = cluster.services.values().any(|service| !service.load_balancer.is_empty())
            || cluster.ingresses.values().any(|ingress| !ingress.load_balancer.is_empty());
        return Ok(if has_any { vec![(not_examined(engine), Vec::new())] } else { Vec::new() });
    }
    let has_many_rules = cluster.rules_to_endpoints() > MAX_RULES;
    if has_many_rules || listeners(engine.listeners()) * cluster.nodes.len() > MAX_PAIRS {
        return Ok(vec![(not_examined(engine), Vec::new())]);
    }
    let mut all = Vec::new();
    let clients = OutsideClients::of(engine);
    // Findings with the same cause have the cures of the first, so public load balancers come
    // first.
    let (public, private): (Vec<_>, Vec<_>) =
        engine.balancers().iter().partition(|balancer| balancer.scope == Scope::Public);
    for balancer in public.into_iter().chain(private) {
        for listener in &balancer.listeners {
            all.extend(probes(engine, balancer, listener)?);
            for rule in &listener.rules {
                let clients = clients.of_rule(balancer, rule);
                all.extend(outside(engine, balancer, listener, rule, clients)?);
            }
        }
    }
    Ok(all)
}

/// Returns the finding that a large cluster has unchecked flows: all for which each target of each
/// load balancer would be made or walked.
fn not_examined(engine: &Engine<'_>) -> Finding {
    let cluster = engine.cluster();
    Finding {
        code: Code::NotExamined,
        severity: Code::NotExamined.severity(),
        subject: ObjectRef::global(ObjectKind::Facts, "cluster"),
        targets: vec!["health checks, targets of load balancers, and clients from outside".to_owned()],
        clients: Clients::other(Clients::OUTSIDE),
        share_failing: Share::NONE,
        outcome: Outcome::AT_ONCE,
        mechanism: None,
        example: Example::Manifests,
        failure: None,
        other_evidence: vec![Observation {
            place: None,
            what: format!(
                "{} nodes, {} Services and {} rules that lead to endpoints: flows from outside, health \
                 checks, and which targets load balancers have and pods bypass, are walked one by one in \
                 smaller clusters only",
                cluster.nodes.len(),
                cluster.services.len(),
                cluster.rules_to_endpoints()
            )
            .into(),
            by: Evidence::kernel("uturn"),
        }],
        cures: Vec::new(),
        untried: None,
        conditions: Vec::new(),
    }
}

/// Walks calls of clients outside to what a rule serves. If one of them is answered, the others are
/// kept out because of their addresses, which is not a fault.
fn outside(
    engine: &Engine<'_>,
    balancer: &LoadBalancer,
    listener: &Listener,
    rule: &Rule,
    clients: Vec<Client>,
) -> Result<Option<Caused>, WalkError> {
    let mut first = None;
    for from in clients {
        let Some(found) = outside_from(engine, balancer, listener, rule, from)? else {
            return Ok(None);
        };
        first.get_or_insert(found);
    }
    Ok(first)
}

fn outside_from(
    engine: &Engine<'_>,
    balancer: &LoadBalancer,
    listener: &Listener,
    rule: &Rule,
    from: Client,
) -> Result<Option<Caused>, WalkError> {
    // Listeners cannot state SCTP.
    let service = engine.cluster().services.get(&rule.service);
    let ports = service.filter(|service| service.object() == rule.owner).map(|own| &own.ports);
    let mut same = ports.into_iter().flatten().filter(|port| port.port == listener.port);
    if same.any(|port| port.protocol == Protocol::Sctp) {
        return Ok(None);
    }
    let flow = Flow {
        from,
        to: destination(balancer, listener, rule),
        protocol: listener.protocol.transport(),
    };
    let who = match balancer.scope {
        Scope::Public => Clients::OUTSIDE,
        Scope::Private => Clients::SAME_NETWORK,
    };
    let label = label(engine, balancer, listener, rule);
    let found = walked::failure(engine, (&rule.owner, &label), flow, who)?;
    // The rules of a captured node show whom they let in only for the addresses that they name.
    let is_doubtful = |(finding, _): &Caused| {
        balancer.scope == Scope::Private
            && finding.mechanism == Some(Mechanism::Firewall)
            && !engine.cluster().captures.is_empty()
    };
    Ok(found.filter(|found| !is_doubtful(found)))
}

/// Returns what a client requests from a rule. Without a host or a path the bare address is called,
/// with its protocol, rather than a program behind it with the address as host.
fn destination(balancer: &LoadBalancer, listener: &Listener, rule: &Rule) -> Destination {
    let owner = rule.owner.namespaced_name();
    let path = rule.path.as_ref().map(|(path, _)| path.clone());
    match (rule.owner.kind, owner, listener.protocol.layer()) {
        (ObjectKind::Ingress, Some(name), _) => {
            Destination::Ingress { name, host: rule.host.clone(), path, port: None }
        }
        (_, _, Layer::L7) if rule.host.is_some() || path.is_some() => Destination::Url {
            tls: listener.protocol.ends_tls(),
            host: rule.host.clone().unwrap_or_else(|| balancer.vip.to_string().into()),
            port: listener.port,
            path: path.unwrap_or_else(|| "/".into()),
        },
        _ => Destination::Address(address(balancer, listener.port)),
    }
}

fn address(balancer: &LoadBalancer, port: Port) -> SocketAddr {
    SocketAddr::new(balancer.vip, port.number())
}

fn label(engine: &Engine<'_>, balancer: &LoadBalancer, listener: &Listener, rule: &Rule) -> String {
    match listener.protocol.layer() {
        Layer::L4 => address_label(engine.cluster(), address(balancer, listener.port)),
        Layer::L7 => {
            let path = rule.path.as_ref().map_or("/", |(path, _)| path);
            format!(":{} {}{path}", listener.port, rule.host.as_deref().unwrap_or("*"))
        }
    }
}

/// Finds health checks that fail although the servers are healthy.
fn probes(
    engine: &Engine<'_>,
    balancer: &LoadBalancer,
    listener: &Listener,
) -> Result<Option<Caused>, WalkError> {
    // What objects show without a walk is found with them.
    let question = listener.profile.health_check.as_ref().map(|check| check.question);
    if matches!(question, None | Some(HealthQuestion::Unanswered(_))) {
        return Ok(None);
    }
    let at = (address(balancer, listener.port), listener.protocol.transport());
    let health = engine.health(at.0, at.1)?;
    Ok(health.and_then(|health| dead_probes(engine, listener, at, &health)))
}

fn dead_probes(
    engine: &Engine<'_>,
    listener: &Listener,
    (at, protocol): (SocketAddr, Protocol),
    health: &[Health],
) -> Option<Caused> {
    let owner = listener.rules.first()?.owner.clone();
    let dead: Vec<&Health> = health.iter().filter(|health| !health.alive).collect();
    let cluster = engine.cluster();
    let service = cluster.services.get(&listener.rules.first()?.service);
    let is_local = service.is_some_and(|service| service.external_policy == Policy::Local);
    let slices = service.map(|service| cluster.slices(&service.name)).unwrap_or_default();
    let homes = slices
        .iter()
        .flat_map(|slice| &slice.endpoints)
        .filter_map(|endpoint| endpoint.node.as_ref());
    // A check is not at fault if no server listens, or if policy Local has no server on that node.
    let is_excused = |target: &&Health| {
        let is_empty = |mechanism: &Mechanism| {
            matches!(mechanism, Mechanism::NoEndpoint | Mechanism::WrongPort)
        };
        target.mechanisms.iter().all(is_empty)
            || is_local
                && dead.len() < health.len()
                && !homes.clone().any(|home| Some(home) == target.node.as_ref())
    };
    let lost: Vec<&Health> = dead.iter().filter(|target| !is_excused(target)).copied().collect();
    let why = |target: &&Health| -> Option<Mechanism> {
        let of = |mechanism: &Mechanism| {
            !matches!(mechanism, Mechanism::NoEndpoint | Mechanism::WrongPort)
        };
        target.mechanisms.iter().copied().find(of)
    };
    let mechanism = lost.iter().filter_map(why).min()?;
    let faults = faults_at(lost.iter().flat_map(|target| &target.failures), mechanism);
    let code = Code::of_checks(&[mechanism]);
    let page = engine.page_check(listener).filter(|_| mechanism == Mechanism::NoRuleForPath);
    let written = match (code, &page) {
        (_, Some(page)) => vec![page_not_there(engine, &owner, listener, page)],
        (Code::CheckCannotPass, _) => vec![header_before_question(engine, &owner)],
        _ => Vec::new(),
    };
    let finding = Finding {
        code,
        severity: code.severity(),
        subject: owner,
        targets: vec![format!("health checks of {}", address_label(cluster, at))],
        clients: Clients::other(Clients::PROBES),
        share_failing: Share::of(dead.len(), health.len()),
        outcome: Outcome::Hangs,
        mechanism: Some(mechanism),
        example: Example::Probes(at, protocol),
        failure: None,
        other_evidence: written,
        cures: Vec::new(),
        untried: None,
        conditions: page.iter().map(|page| page.condition.into()).collect(),
    };
    Some((finding, faults))
}

/// Describes why checks that ask for a page get an error: a controller in the cluster has no rule
/// for requests without a host.
fn page_not_there(
    engine: &Engine<'_>,
    owner: &ObjectRef,
    listener: &Listener,
    check: &PageCheck,
) -> Observation {
    let (key, path) = check.cure;
    Observation {
        place: None,
        what: format!(
            "health checks of port {} ask for {} and get 404: {}; {key}: {path:?} names one that is there",
            listener.port, check.path, check.because
        )
        .into(),
        by: Evidence::object(owner.clone(), engine.origin_of(owner)),
    }
}

/// Describes why no node passes health checks that begin with a PROXY header.
fn header_before_question(engine: &Engine<'_>, owner: &ObjectRef) -> Observation {
    Observation {
        place: None,
        what: "health checks begin with the PROXY header that it asks for, and under policy Local they \
               ask kube-proxy at the healthCheckNodePort, which does not read it"
            .into(),
        by: Evidence::object(owner.clone(), engine.origin_of(owner)),
    }
}
