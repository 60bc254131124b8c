//! Health checks: which targets a load balancer considers alive. Probes travel like any packet.
//!
//! A TCP probe succeeds if the connection is made. For a UDP probe, the service's answer is not
//! known: it succeeds if the machine answers an echo request and has not refused the datagram.

use std::net::{IpAddr, SocketAddr};

use uturn_model::lb::{
    HealthCheck, HealthQuestion, Listener, ProbeSource, Rule, Target, TargetKind,
};
use uturn_model::node::Loss;
use uturn_model::proxy::Translates;
use uturn_model::route::Step;
use uturn_model::{
    Cluster, Evidence, FailurePoint, Family, LoadBalancer, Mechanism, Name, Node, Outcome, Place,
    Protocol, Share,
};
use uturn_netfilter::{DropReason, End, EndKind, Entry, IpProtocol, Packet, Transport};

use super::{exchange, node_health};
use crate::add_missing::add_missing;
use crate::engine::find_listener;
use crate::engine::walk::{ProbeResult, Walk};
use crate::error::WalkError;
use crate::journey::security_groups;
use crate::packet::{Exchange, Pace, PacketState, Peer, Request};
use crate::unjudged;

/// The source port of probes. Any port serves.
const PROBE_PORT: u16 = 50_000;

/// The result of a target's health checks.
#[derive(Clone, Debug, PartialEq)]
pub struct Health {
    /// The target.
    pub target: SocketAddr,
    /// The node at which packets to the target arrive, if it is known.
    pub node: Option<Name>,
    /// Whether the target counts as alive.
    pub alive: bool,
    /// The share of probes that the target answers. If it is neither none nor all, chance decides
    /// after each probe whether the target counts as alive.
    pub answered: Share,
    /// The reasons why the target does not answer.
    pub mechanisms: Vec<Mechanism>,
    /// Where the target's probes fail.
    pub failures: Vec<FailurePoint>,
    /// Where probes are sent, which may be another port than the target's.
    pub asked: SocketAddr,
    /// The step at which a probe that gets no answer ends, if it is recorded.
    pub stop: Option<Step>,
}

pub(crate) fn at_listener(
    walk: &Walk<'_, '_>,
    listener: SocketAddr,
    protocol: Protocol,
) -> Result<Option<Vec<Health>>, WalkError> {
    let Some(balancer) = walk.engine.balancer_at(listener.ip()) else { return Ok(None) };
    let protocol = IpProtocol::from(protocol);
    let here = find_listener(balancer, listener.port(), protocol);
    let Some(here) = here else { return Ok(None) };
    let mut all = Vec::new();
    // A request that is redirected to another listener is served there.
    let redirects = here.rules.iter().filter_map(|rule| rule.redirect.as_ref());
    let there = redirects
        .filter(|to| to.host.is_none() && to.port != here.port)
        .filter_map(|to| find_listener(balancer, to.port.number(), protocol));
    let there: Vec<&Listener> = there.collect();
    let all_rules = [here].into_iter().chain(there);
    for (listener, rule) in all_rules
        .flat_map(|of_listener| of_listener.rules.iter().map(move |rule| (of_listener, rule)))
    {
        for health in of_targets(walk, balancer, listener, rule)? {
            if !all.contains(&health) {
                all.push(health);
            }
        }
    }
    Ok(Some(all))
}

/// Returns the result of the health checks of each target. Probes travel like any packet. Each
/// prober asks each target once.
pub(super) fn of_targets(
    walk: &Walk<'_, '_>,
    balancer: &LoadBalancer,
    listener: &Listener,
    rule: &Rule,
) -> Result<Vec<Health>, WalkError> {
    let healthy = |target: &Target| Health {
        target: target.address,
        node: target.kind.node().cloned(),
        alive: true,
        answered: Share::ALL,
        mechanisms: Vec::new(),
        failures: Vec::new(),
        asked: target.address,
        stop: None,
    };
    let is_open = unjudged::behind(walk.cluster, rule).is_some();
    let Some(check) = listener.profile.health_check.as_ref().filter(|_| !is_open) else {
        return Ok(rule.targets.iter().map(healthy).collect());
    };
    let vip = balancer.vip;
    // Targets may be of another family than the load balancer's address.
    let prober = |target: &Target| match check.source {
        ProbeSource::Vip => vip,
        ProbeSource::Reserved(_) => check.source.address(target.address.ip()),
    };
    // The proxies that serve node ports in place of kube-proxy are mostly not modelled.
    let is_unknown = |target: &Target| {
        let proxy = walk.cluster.proxy.replaced_by();
        matches!(target.kind, TargetKind::NodePort(_))
            && proxy.is_some_and(|proxy| proxy.translates() != Translates::AtConnect)
    };
    let is_windows = |target: &Target| {
        let node = target.kind.node().and_then(|node| walk.cluster.nodes.get(node));
        node.is_some_and(|node| node.is_windows)
    };
    let judge = |target: &Target| {
        if let Some(failure) = is_down(walk.cluster, target) {
            let dead = Health { alive: false, answered: Share::NONE, ..healthy(target) };
            let (mechanisms, failures) = (vec![Mechanism::NodeDown], vec![failure]);
            return Ok(Health { mechanisms, failures, ..dead });
        }
        if is_unknown(target) {
            return Ok(healthy(target));
        }
        if let HealthQuestion::Unanswered(why) = check.question {
            let dead = Health { alive: false, answered: Share::NONE, ..healthy(target) };
            return Ok(Health { mechanisms: vec![why], ..dead });
        }
        let prober = prober(target);
        let asked = asked_at(walk.cluster, check, rule, target, vip).unwrap_or(target.address);
        if let Some(failures) = stops_probes(walk, check, rule, target, (prober, vip))? {
            let mechanisms = vec![Mechanism::Firewall];
            let dead = Health { alive: false, answered: Share::NONE, ..healthy(target) };
            return Ok(Health { mechanisms, failures, asked, ..dead });
        }
        let begins_with_header = check.question == HealthQuestion::LocalEndpointWithHeader;
        let stopped = group_stops(walk, balancer, target, prober, asked);
        if let Some((place, step)) = stopped.filter(|_| !begins_with_header) {
            let mechanisms = vec![Mechanism::SecurityGroup];
            let dead = Health { alive: false, answered: Share::NONE, ..healthy(target) };
            let point = FailurePoint::new(Mechanism::SecurityGroup, place, step.by.clone());
            let (failures, stop) = (vec![point], Some(step));
            return Ok(Health { mechanisms, failures, asked, stop, ..dead });
        }
        if let Some(is_good) = answers_for_node(walk.cluster, check.question, rule, target) {
            let mechanisms = match (is_good, check.question) {
                (true, _) => Vec::new(),
                (_, HealthQuestion::LocalEndpointWithHeader) => vec![Mechanism::ProxyHeader],
                _ => vec![Mechanism::NoEndpoint],
            };
            // A check that this answer would pass has to get there first. Probes of the load balancer's
            // own address are judged by `stops_probes`.
            if !(is_good && check.question == HealthQuestion::LocalEndpoint)
                || check.keeps_address
                || asked == target.address
                || is_windows(target)
            {
                let answered = if is_good { Share::ALL } else { Share::NONE };
                return Ok(Health {
                    alive: is_good,
                    answered,
                    mechanisms,
                    asked,
                    ..healthy(target)
                });
            }
        }
        let transport =
            if asked == target.address { listener.protocol.transport() } else { Protocol::Tcp };
        let pace = Pace::within(check.timeout);
        let found = probe(walk, balancer, prober, (asked, transport), (check, &pace))?;
        let ProbeResult { answered, mechanisms, failures, stop } = found;
        let failures = failures.unwrap_or_default();
        // Consecutive good or bad probes decide. Where chance has a part, the likelier result
        // wins.
        let alive = is_mostly(answered);
        Ok(Health { alive, answered, mechanisms, failures, asked, stop, ..healthy(target) })
    };
    rule.targets.iter().map(judge).collect()
}

/// Returns where probes of a target end, if it is noticed that the target's node is down.
fn is_down(cluster: &Cluster, target: &Target) -> Option<FailurePoint> {
    let node = cluster.nodes.get(target.kind.node()?)?;
    (node.loss == Some(Loss::Noticed)).then(|| {
        let by = Evidence::object(node.object(), node.origin.clone());
        FailurePoint::new(Mechanism::NodeDown, Place::Node(node.name.clone()), by)
    })
}

/// Returns what a node's kube-proxy answers about itself or a Service's endpoints. Returns
/// `None` if the target itself is asked.
fn answers_for_node(
    cluster: &Cluster,
    question: HealthQuestion,
    rule: &Rule,
    target: &Target,
) -> Option<bool> {
    let node = target.kind.node()?;
    match question {
        HealthQuestion::Target | HealthQuestion::Page { .. } | HealthQuestion::Unanswered(_) => {
            None
        }
        HealthQuestion::LocalEndpoint => {
            let service = cluster.services.get(&rule.service)?;
            let known = cluster.nodes.get(node).map_or(node, Node::name_for_proxy);
            Some(uturn_clouds::targets::has_ready_pod(cluster, service, known))
        }
        HealthQuestion::LocalEndpointWithHeader => Some(false),
        HealthQuestion::ServiceProxy => Some(true),
    }
}

/// The port at which kube-proxy answers for itself.
const SERVICE_PROXY: u16 = 10_256;

/// Returns where probes of a node's kube-proxy are sent. Returns `None` if the target itself is asked.
fn asked_at(
    cluster: &Cluster,
    check: &HealthCheck,
    rule: &Rule,
    target: &Target,
    vip: IpAddr,
) -> Option<SocketAddr> {
    let number = match check.question {
        HealthQuestion::ServiceProxy => SERVICE_PROXY,
        HealthQuestion::LocalEndpoint | HealthQuestion::LocalEndpointWithHeader => {
            cluster.services.get(&rule.service)?.health_check_node_port?.number()
        }
        _ => return None,
    };
    let node = cluster.nodes.get(target.kind.node()?)?;
    let family = Family::of(target.address.ip());
    let ip = if check.keeps_address { vip } else { node.address(family)? };
    Some(SocketAddr::new(ip, number))
}

/// Returns the drop by security groups of probes of a node's kube-proxy. Probes of targets themselves
/// are sent as packets.
fn group_stops(
    walk: &Walk<'_, '_>,
    balancer: &LoadBalancer,
    target: &Target,
    prober: IpAddr,
    asked: SocketAddr,
) -> Option<(Place, Step)> {
    if asked == target.address {
        return None;
    }
    let node = walk.cluster.nodes.get(target.kind.node()?)?;
    let to = SocketAddr::new(node.address(Family::of(prober))?, asked.port());
    let packet = Packet::new(Protocol::Tcp, SocketAddr::new(prober, PROBE_PORT), to);
    let mut probe = PacketState::new(packet).sent_by(balancer);
    let own = &balancer.security_groups;
    if let Some(step) = security_groups::denied_by_own(walk.cluster, own, &probe) {
        return Some((Peer::Balancer(balancer).place(), step));
    }
    let groups = node.security_groups.as_deref()?;
    let step = security_groups::denied_inbound(walk.cluster, groups, &mut probe)?;
    Some((Place::Fabric, step))
}

/// Returns the rules of a node that stop probes for local endpoints, if these are sent to the load
/// balancer's own address. Returns `None` if a probe gets through, or if anything other than a rule
/// stops it: then the cause cannot be stated.
fn stops_probes(
    walk: &Walk<'_, '_>,
    check: &HealthCheck,
    rule: &Rule,
    target: &Target,
    (prober, vip): (IpAddr, IpAddr),
) -> Result<Option<Vec<FailurePoint>>, WalkError> {
    let asks = check.keeps_address && check.question == HealthQuestion::LocalEndpoint;
    let service = walk.cluster.services.get(&rule.service).filter(|_| asks);
    let port = service.and_then(|service| service.health_check_node_port);
    let (Some(node), Some(port)) = (target.kind.node(), port) else { return Ok(None) };
    if walk.cluster.nodes.get(node).is_some_and(|node| node.is_windows) {
        return Ok(None);
    }
    let (from, to) = (SocketAddr::new(prober, PROBE_PORT), SocketAddr::new(vip, port.number()));
    let packet = Packet::new(Protocol::Tcp, from, to);
    let runtime = walk.engine.runtime_for(node, &packet)?;
    let entry = Entry::Interface(runtime.uplink.clone());
    let ends = walk.walk_rules(&runtime.kernel, &packet, &entry, &[]);
    let is_stopped = |end: &End| match &end.kind {
        EndKind::Reject(_) => true,
        EndKind::Drop(reason) => matches!(reason, DropReason::Rule(_)),
        _ => false,
    };
    if ends.is_empty() || !ends.iter().all(is_stopped) {
        return Ok(None);
    }
    let stopping = ends.iter().filter_map(|end| end.steps.last());
    let points = stopping.map(|step| {
        FailurePoint::new(Mechanism::Firewall, Place::Node(node.clone()), step.by.clone())
    });
    let mut failures = Vec::new();
    add_missing(&mut failures, points);
    Ok(Some(failures))
}

/// Returns the share of probes that a target answers, and why others fail if it counts as dead.
fn probe(
    walk: &Walk<'_, '_>,
    balancer: &LoadBalancer,
    prober: IpAddr,
    (target, protocol): (SocketAddr, Protocol),
    (check, pace): (&HealthCheck, &Pace),
) -> Result<ProbeResult, WalkError> {
    let key = (prober, target, protocol, check.question, check.timeout);
    let is_brief = walk.options.is_brief();
    let is_enough = |known: &ProbeResult| is_brief || known.failures.is_some();
    if let Some(known) = walk.probes.get(&key).filter(is_enough) {
        return Ok(known);
    }
    let ask = |packet: Packet| {
        let probe = PacketState::new(packet).probing().briefly(is_brief).paced(pace.clone());
        let probe = probe.sent_by(balancer);
        exchange(walk, Peer::Balancer(balancer), &asked_for(check.question, target), probe)
    };
    let asked = ask(Packet::new(protocol, SocketAddr::new(prober, PROBE_PORT), target))?;
    // A probe that cannot be judged does not count as failed. A connection that is closed later
    // was made.
    let is_answered = |exchange: &Exchange| {
        let is_made = matches!(exchange.outcome, Outcome::EmptyReply | Outcome::TlsError)
            || exchange.mechanisms.contains(&Mechanism::ProxyHeader);
        let is_good = match check.question {
            HealthQuestion::Page { .. } => {
                matches!(exchange.outcome, Outcome::Status { code: 200, .. })
            }
            _ => is_made,
        };
        exchange.outcome.is_answered() || exchange.outcome.is_unknown() || is_good
    };
    let (answered, exchanges) = match protocol {
        Protocol::Udp => {
            let echoed = ask(echo_request(prober, target.ip()))?;
            let is_unrefused = |exchange: &Exchange| {
                is_answered(exchange) || matches!(exchange.outcome, Outcome::Hangs)
            };
            let share = total(&asked, is_unrefused) * total(&echoed, is_answered);
            let refused = asked.into_iter().filter(|exchange| !is_unrefused(exchange));
            (share, refused.chain(echoed).collect())
        }
        Protocol::Tcp | Protocol::Sctp => (total(&asked, is_answered), asked),
    };
    let mut mechanisms: Vec<Mechanism> = Vec::new();
    let mut failures: Vec<FailurePoint> = Vec::new();
    let mut stop = None;
    if !is_mostly(answered) {
        let lost = exchanges.iter().filter(|exchange| !is_answered(exchange));
        let mut steps = lost.flat_map(|exchange| &exchange.hops).flat_map(|hop| &hop.steps);
        stop = steps.find(|step| step.kind.stops_packet()).cloned();
        for exchange in exchanges {
            mechanisms.extend(exchange.mechanisms);
            add_missing(&mut failures, exchange.failures);
        }
        mechanisms.sort_unstable();
        mechanisms.dedup();
    }
    let failures = (!is_brief).then_some(failures);
    let found = ProbeResult { answered, mechanisms, failures, stop };
    // A probe that was cut short to limit the work says nothing about other calls.
    if !walk.work.is_used_up(&walk.engine.work) {
        walk.probes.insert(key, found.clone());
    }
    Ok(found)
}

/// Returns the request of a health check, beyond the connection.
fn asked_for(question: HealthQuestion, target: SocketAddr) -> Request {
    let (path, tls) = match question {
        HealthQuestion::Page { path, tls } => (path, tls),
        HealthQuestion::LocalEndpoint => (node_health::PATH, false),
        _ => return Request::default(),
    };
    let host = target.ip().to_string();
    Request { http: Some((host, path.to_owned())), tls: Some(tls), ..Request::default() }
}

/// Returns whether the share is more than a half. Rounding of rules' probabilities is ignored.
fn is_mostly(share: Share) -> bool {
    share.is_more_than(Share::HALF)
}

/// Returns the total share of the exchanges for which `is_true` holds.
fn total(exchanges: &[Exchange], is_true: impl Fn(&Exchange) -> bool) -> Share {
    exchanges.iter().filter(|exchange| is_true(exchange)).map(|exchange| exchange.share).sum()
}

fn echo_request(from: IpAddr, to: IpAddr) -> Packet {
    let kind = match Family::of(to) {
        Family::V4 => 8,
        Family::V6 => 128,
    };
    Packet { src: from, dst: to, transport: Transport::Icmp { kind, code: 0 }, mark: 0 }
}
