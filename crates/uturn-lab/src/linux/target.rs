//! Resolves a flow to an address and a request, and finds the load balancer rule that serves it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use uturn_lb::decide::Choice;
use uturn_lb::{controller, rules};
use uturn_model::lb::{Layer, Listener, Rule, Scope};
use uturn_model::{
    Client, Cluster, Destination, Family, Flow, LoadBalancer, NamespacedName, ObjectRef, Port,
    Protocol,
};

use super::call_counters::Call;
use super::client::{ClientProtocol, RequestSpec};
use super::health::TargetHealths;
use super::names::Found;
use super::public;
use super::rules::{is_in_kernel, turns};
use crate::{LabError, TargetHealth};

/// The limit of a connect without load balancer retries, after which it counts as hanging. A SYN
/// is retransmitted after 1 s, and again after 2 or 3 s.
const CONNECT_LIMIT: Duration = Duration::from_millis(2500);

/// Extra time for a slow machine.
const SLACK: Duration = Duration::from_millis(1500);

/// A flow, ready to be measured.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) spec: RequestSpec,
    /// How many connections make a whole turn of the scheduler.
    pub(crate) turns: u64,
    /// How long a connection may take at most.
    pub(crate) limit: Duration,
    /// What picks the flow's target.
    pub(crate) picked_by: PickedBy,
    /// The scope of the load balancer that the flow calls, if it calls one.
    pub(crate) scope: Option<Scope>,
    /// The rule that serves it: indices of the load balancer, the listener and the rule.
    place: Option<[usize; 3]>,
    /// Source addresses that a load balancer may see for its connections.
    sources: Vec<IpAddr>,
}

/// What picks a flow's targets, if its packets reach a load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PickedBy {
    /// No load balancer.
    NoBalancer,
    /// Rules in the kernel (layer 4).
    Kernel,
    /// The load balancer process (layer 7, and whatever ends TLS), which reports each pick.
    Process,
}

impl Target {
    pub(crate) fn of(
        cluster: &Cluster,
        load_balancers: &[LoadBalancer],
        flow: &Flow,
        found: &Found,
    ) -> Result<Self, LabError> {
        if flow.protocol == Protocol::Sctp {
            let protocol = flow.protocol;
            return Err(LabError::Plan(format!("flows over {protocol} cannot be measured")));
        }
        let resolved = resolved_addresses(flow, found);
        let family = match resolved {
            Some([]) => return Ok(Self::nameless()),
            Some([first, ..]) => Some(Family::of(*first)),
            None => to_family(cluster, load_balancers, &flow.to),
        };
        let client = client_address(cluster, &flow.from, family)?;
        let family = Family::of(client);
        let own = |ip: &IpAddr| Family::of(*ip) == family;
        let resolved: Vec<IpAddr> =
            resolved.unwrap_or_default().iter().copied().filter(own).collect();
        let mut spec =
            request_spec(cluster, load_balancers, &flow.to, family, resolved.first().copied())?;
        spec.others.extend(resolved.iter().skip(1));
        if flow.protocol == Protocol::Udp {
            spec.protocol = ClientProtocol::Datagram;
        }
        let lb = load_balancers.iter().position(|lb| lb.vip == spec.address.ip());
        let scope = lb.map(|lb| load_balancers[lb].scope);
        let sources = sources(cluster, &flow.from, client, scope);
        let mut target = Self {
            spec,
            turns: 1,
            limit: CONNECT_LIMIT,
            picked_by: PickedBy::NoBalancer,
            scope,
            place: None,
            sources,
        };
        target.turns = target.spec.others.len() as u64 + 1;
        let Some(lb) = lb else { return Ok(target) };
        let port = target.spec.address.port();
        let listeners = &load_balancers[lb].listeners;
        let serves = |listener: &Listener| {
            listener.protocol.transport() == flow.protocol && listener.port.number() == port
        };
        let Some(listener) = listeners.iter().position(serves) else { return Ok(target) };
        target.picked_by = picked_by(&listeners[listener]);
        if let ClientProtocol::Any { tls } = &mut target.spec.protocol {
            *tls = listeners[listener].protocol.ends_tls();
        }
        target.place = rule(&listeners[listener], &target.spec).map(|rule| [lb, listener, rule]);
        target.follow(load_balancers);
        target.update(load_balancers, &TargetHealths::default());
        Ok(target)
    }

    /// Follows a redirect rule to the rule of the same load balancer that it leads to.
    fn follow(&mut self, load_balancers: &[LoadBalancer]) {
        let Some([lb, listener, rule_place]) = self.place else { return };
        let balancer = &load_balancers[lb];
        let rule_met = &balancer.listeners[listener].rules[rule_place];
        let Some(redirect) = &rule_met.redirect else { return };
        let url = redirect.location(&self.spec.host, &self.spec.path);
        let (host, path) = redirect.aim(&self.spec.host, &self.spec.path);
        let usual = if redirect.tls { 443 } else { 80 };
        let next = RequestSpec {
            address: SocketAddr::new(self.spec.address.ip(), redirect.port.number()),
            others: Vec::new(),
            host: match redirect.port.number() {
                port if port == usual => host.to_owned(),
                port => format!("{host}:{port}"),
            },
            path: path.to_owned(),
            protocol: if redirect.tls { ClientProtocol::Https } else { ClientProtocol::Http },
            redirected: None,
        };
        let there = balancer.listeners.iter().position(|listener| {
            listener.port == redirect.port && listener.protocol.transport() == Protocol::Tcp
        });
        self.place = there.and_then(|there| {
            let place = rule(&balancer.listeners[there], &next)?;
            Some([lb, there, place])
        });
        if let Some(there) = there {
            self.picked_by = picked_by(&balancer.listeners[there]);
        }
        self.spec.redirected = Some((url, Box::new(next)));
    }

    /// A flow whose name has no address: it makes no connections.
    fn nameless() -> Self {
        let spec = RequestSpec {
            address: SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0),
            others: Vec::new(),
            host: String::new(),
            path: String::new(),
            protocol: ClientProtocol::Any { tls: false },
            redirected: None,
        };
        Self {
            spec,
            turns: 1,
            limit: CONNECT_LIMIT,
            picked_by: PickedBy::NoBalancer,
            scope: None,
            place: None,
            sources: Vec::new(),
        }
    }

    /// Whether there is an address to call.
    pub(crate) fn has_address(&self) -> bool {
        self.spec.address.port() > 0
    }

    /// Computes turns and limit for the targets that are alive now.
    pub(crate) fn update(&mut self, load_balancers: &[LoadBalancer], healths: &TargetHealths) {
        let Some((lb, listener, place)) = self.place(load_balancers) else { return };
        let alive = healths.alive(lb, listener, place);
        let targets = &listener.rules[place].targets;
        let choices: Vec<Choice<'_>> = self
            .sources
            .iter()
            .map(|source| Choice::new(&listener.profile, targets, &alive, *source))
            .collect();
        let addresses = self.spec.others.len() as u64 + 1;
        self.turns = choices.iter().map(turns).fold(addresses, least_common_multiple);
        if listener.protocol.layer() == Layer::L7 {
            let most = choices.iter().map(|choice| choice.candidates().len() as u32).max();
            let tries = if listener.profile.next_target { most.unwrap_or(1) } else { 1 };
            self.limit = listener.profile.connect_timeout * tries.max(1) + SLACK;
        }
    }

    /// The health of its targets.
    pub(crate) fn health(
        &self,
        load_balancers: &[LoadBalancer],
        healths: &TargetHealths,
    ) -> Vec<TargetHealth> {
        self.place(load_balancers)
            .map_or_else(Vec::new, |(lb, listener, place)| healths.report(lb, listener, place))
    }

    fn place<'a>(
        &self,
        load_balancers: &'a [LoadBalancer],
    ) -> Option<(&'a LoadBalancer, &'a Listener, usize)> {
        let [lb, listener, rule] = self.place?;
        let lb = &load_balancers[lb];
        Some((lb, &lb.listeners[listener], rule))
    }

    /// The calls that its connections are counted as, one for each source address.
    pub(crate) fn calls(&self) -> impl Iterator<Item = Call> {
        let of_family = |ip: &&IpAddr| Family::of(**ip) == Family::of(self.spec.address.ip());
        self.sources.iter().filter(of_family).map(|source| (*source, self.spec.address))
    }
}

fn picked_by(listener: &Listener) -> PickedBy {
    match is_in_kernel(listener) {
        true => PickedBy::Kernel,
        false => PickedBy::Process,
    }
}

fn rule(listener: &Listener, spec: &RequestSpec) -> Option<usize> {
    match listener.protocol.layer() {
        Layer::L4 => (!listener.rules.is_empty()).then_some(0),
        Layer::L7 => rules::position(&listener.rules, &spec.host, &spec.path),
    }
}

fn least_common_multiple(a: u64, b: u64) -> u64 {
    let (mut high, mut low) = (a, b);
    while low > 0 {
        (high, low) = (low, high % low);
    }
    a / high.max(1) * b
}

/// The addresses that the cluster's DNS returned for the flow's name. `None` if it was not asked.
fn resolved_addresses<'a>(flow: &Flow, found: &'a Found) -> Option<&'a [IpAddr]> {
    let (Destination::Url { host, .. } | Destination::Host(host, _)) = &flow.to else {
        return None;
    };
    found.get(&(flow.from.clone(), host.clone())).map(Vec::as_slice)
}

/// The address family of a destination, if the destination alone decides it.
fn to_family(cluster: &Cluster, all: &[LoadBalancer], to: &Destination) -> Option<Family> {
    let family = |ip: IpAddr| Some(Family::of(ip));
    match to {
        Destination::Address(address) => family(address.ip()),
        Destination::Url { host, .. } | Destination::Host(host, _) => {
            let of = |family: &Family| resolve(cluster, all, host, *family).map(|_| *family);
            host.parse().ok().and_then(family).or_else(|| Family::BOTH.iter().find_map(of))
        }
        Destination::Pod(name, _) => cluster.pods.get(name)?.ips.first().copied().and_then(family),
        Destination::Ingress { name, host, .. } => {
            ingress_balancer(all, name, host.as_deref()).and_then(|lb| family(lb.vip))
        }
        Destination::Service(..) => None,
    }
}

/// A client's own source address. `wanted` is the family of the destination, which decides for
/// clients outside.
fn client_address(
    cluster: &Cluster,
    client: &Client,
    wanted: Option<Family>,
) -> Result<IpAddr, LabError> {
    let address = match client {
        Client::Pod(name) => {
            let pod = cluster.pods.get(name).ok_or_else(|| unknown(client))?;
            match (pod.spec.host_network, &pod.node) {
                (true, Some(node)) => cluster.nodes.get(node).and_then(|node| {
                    Family::BOTH.into_iter().find_map(|family| node.address(family))
                }),
                _ => pod.ips.first().copied(),
            }
        }
        Client::Node(name) => {
            let node = cluster.nodes.get(name).ok_or_else(|| unknown(client))?;
            Family::BOTH.into_iter().find_map(|family| node.address(family))
        }
        Client::Outside(stated) => {
            Some(public::outside_client_address(*stated, wanted.unwrap_or(Family::V4)))
        }
        Client::Workload(..) => {
            let what = format!("{client} as a client: expected a pod, a node or outside");
            return Err(LabError::Plan(what));
        }
    };
    address.ok_or_else(|| LabError::Plan(format!("{client} has no address")))
}

/// The client's own address and its node's, which masqueraded connections have. A public load
/// balancer sees the node's public address in place of both.
fn sources(cluster: &Cluster, client: &Client, own: IpAddr, scope: Option<Scope>) -> Vec<IpAddr> {
    let node = match client {
        Client::Pod(name) => cluster.pods.get(name).and_then(|pod| pod.node.as_ref()),
        Client::Node(name) => Some(name),
        _ => None,
    };
    let node = node.and_then(|name| cluster.nodes.get(name));
    let family = Family::of(own);
    if scope == Some(Scope::Public)
        && let Some(public) = node.and_then(|node| public::address_of(node, family))
    {
        return vec![public];
    }
    let node = node.and_then(|node| node.address(family));
    let mut all: Vec<IpAddr> = [own].into_iter().chain(node).collect();
    all.dedup();
    all
}

fn unknown(what: &impl std::fmt::Display) -> LabError {
    LabError::Plan(format!("the cluster has no {what}"))
}

fn request_spec(
    cluster: &Cluster,
    load_balancers: &[LoadBalancer],
    to: &Destination,
    family: Family,
    resolved: Option<IpAddr>,
) -> Result<RequestSpec, LabError> {
    let plain = |address: SocketAddr| RequestSpec {
        address,
        others: Vec::new(),
        host: address.to_string(),
        path: "/".into(),
        protocol: ClientProtocol::Any { tls: false },
        redirected: None,
    };
    let named = |host: &str, port: Port, path: &str, protocol: ClientProtocol| {
        let ip = resolved.or_else(|| resolve(cluster, load_balancers, host, family)).ok_or_else(
            || LabError::Plan(format!("nothing says what address the name {host} has")),
        )?;
        let host = match (ip, port.number()) {
            (IpAddr::V6(ip), port) if host.parse() == Ok(ip) => format!("[{host}]:{port}"),
            (_, 80) if protocol != ClientProtocol::Https => host.to_owned(),
            (_, 443) if protocol == ClientProtocol::Https => host.to_owned(),
            (_, port) => format!("{host}:{port}"),
        };
        let address = SocketAddr::new(ip, port.number());
        Ok(RequestSpec {
            address,
            others: Vec::new(),
            host,
            path: path.into(),
            protocol,
            redirected: None,
        })
    };
    match to {
        Destination::Url { tls, host, port, path } => {
            let protocol = if *tls { ClientProtocol::Https } else { ClientProtocol::Http };
            named(host, *port, path, protocol)
        }
        Destination::Host(host, port) => {
            named(host, *port, "/", ClientProtocol::Any { tls: false })
        }
        Destination::Address(address) => Ok(plain(*address)),
        Destination::Service(name, port) => {
            let service = cluster.services.get(name).ok_or_else(|| unknown(to))?;
            let wanted = |candidate: &&uturn_model::service::ServicePort| match port.as_deref() {
                None => true,
                Some(text) => {
                    candidate.name.as_deref() == Some(text) || candidate.port.to_string() == text
                }
            };
            let port = service.ports.iter().find(wanted).ok_or_else(|| unknown(to))?;
            let ip = service.cluster_ip(family).or_else(|| service.cluster_ips.first().copied());
            let ip = ip.ok_or_else(|| LabError::Plan(format!("{to} has no cluster IP")))?;
            Ok(plain(SocketAddr::new(ip, port.port.number())))
        }
        Destination::Pod(name, port) => {
            let pod = cluster.pods.get(name).ok_or_else(|| unknown(to))?;
            let ip = pod.address(family).or_else(|| pod.ips.first().copied());
            let ip = ip.ok_or_else(|| LabError::Plan(format!("{to} has no address")))?;
            Ok(plain(SocketAddr::new(ip, port.number())))
        }
        Destination::Ingress { name, host, path } => {
            let ingress = cluster.ingresses.get(name).ok_or_else(|| unknown(to))?;
            let lb = ingress_balancer(load_balancers, name, host.as_deref())
                .ok_or_else(|| LabError::Plan(format!("no load balancer serves {to}")))?;
            let call = controller::ingress_call(cluster, ingress, host.as_ref(), path.as_ref());
            let address = SocketAddr::new(lb.vip, call.port.number());
            Ok(RequestSpec {
                address,
                others: Vec::new(),
                host: call.host.map_or_else(|| address.to_string(), |host| host.to_string()),
                path: call.path.map_or_else(|| "/".into(), |path| path.to_string()),
                protocol: if call.protocol.ends_tls() {
                    ClientProtocol::Https
                } else {
                    ClientProtocol::Http
                },
                redirected: None,
            })
        }
    }
}

/// The load balancer that serves an Ingress, or a host of it.
fn ingress_balancer<'a>(
    load_balancers: &'a [LoadBalancer],
    name: &NamespacedName,
    host: Option<&str>,
) -> Option<&'a LoadBalancer> {
    let owner = ObjectRef::namespaced(uturn_model::ObjectKind::Ingress, name);
    let serves = |rule: &Rule| {
        rule.redirect.is_none()
            && rule.owner == owner
            && (host.is_none() || rule.host.as_deref() == host)
    };
    load_balancers
        .iter()
        .find(|lb| lb.listeners.iter().flat_map(|listener| &listener.rules).any(serves))
}

/// Resolves a name from the cluster's own data: a literal address, a stated one, a Service's or
/// an Ingress's.
fn resolve(
    cluster: &Cluster,
    load_balancers: &[LoadBalancer],
    host: &str,
    family: Family,
) -> Option<IpAddr> {
    if let Ok(ip) = host.parse() {
        return Some(ip);
    }
    let of_family = |ip: &IpAddr| Family::of(*ip) == family;
    let stated = cluster.dns.outside.iter().filter(|(name, _)| name.eq_ignore_ascii_case(host));
    let service = || {
        let mut labels = host.trim_end_matches('.').split('.');
        let (name, namespace) = (labels.next()?, labels.next()?);
        let domain = cluster.dns.domain.as_deref().unwrap_or("cluster.local");
        let rest: Vec<&str> = labels.collect();
        let rest = rest.join(".");
        let fits = rest.is_empty() || rest == "svc" || rest.strip_prefix("svc.") == Some(domain);
        let name = NamespacedName::new(namespace, name).ok().filter(|_| fits)?;
        cluster.services.get(&name)?.cluster_ip(family)
    };
    let ingress = || {
        let has_rule = |lb: &&LoadBalancer| {
            let mut rules = lb.listeners.iter().flat_map(|listener| &listener.rules);
            rules.any(|rule| rule.host.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(host)))
        };
        load_balancers.iter().find(has_rule).map(|lb| lb.vip)
    };
    stated.map(|(_, ip)| *ip).find(of_family).or_else(service).or_else(ingress)
}
