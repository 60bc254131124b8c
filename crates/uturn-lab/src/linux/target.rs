//! What a flow means in numbers: which address, which request, and who would serve it.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use uturn_lb::decide::Choice;
use uturn_lb::rules;
use uturn_model::lb::{Layer, Listener, Rule, Scope};
use uturn_model::{
    Client, Cluster, Destination, Family, Flow, LoadBalancer, NamespacedName, ObjectRef, Port,
    Protocol,
};

use super::client::Aim;
use super::count::Call;
use super::rules::turns;
use crate::LabError;

/// How long a connect may take to be told from one that hangs, where nobody retries: the
/// first retransmission comes after 1 s.
const PATIENCE: Duration = Duration::from_secs(3);

/// What the machine may take beyond what must be waited for.
const SLACK: Duration = Duration::from_millis(1500);

/// A flow, ready to be measured.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) aim: Aim,
    /// How many connections make a whole turn of whoever picks.
    pub(crate) turns: u64,
    /// How long a connection may take at most.
    pub(crate) limit: Duration,
    /// Who picks, where the flow aims at a load balancer.
    pub(crate) picked_by: PickedBy,
    /// Addresses that its connections can come from.
    pub(crate) sources: Vec<IpAddr>,
}

/// Who picks a flow's targets, if its packets get that far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PickedBy {
    /// No load balancer.
    Nobody,
    /// Rules in the fabric's kernel (layer 4).
    Kernel,
    /// The load balancer process (layer 7), which reports each pick.
    Process,
}

impl Target {
    pub(crate) fn of(
        cluster: &Cluster,
        load_balancers: &[LoadBalancer],
        flow: &Flow,
    ) -> Result<Self, LabError> {
        if flow.protocol != Protocol::Tcp {
            let protocol = flow.protocol;
            return Err(LabError::Plan(format!("flows over {protocol} cannot be measured yet")));
        }
        let client = client_address(cluster, &flow.from)?;
        let aim = aim(cluster, load_balancers, &flow.to, Family::of(client))?;
        if let Some(public) =
            load_balancers.iter().find(|lb| lb.vip == aim.address.ip() && lb.scope == Scope::Public)
        {
            let name = &public.name;
            return Err(LabError::Plan(format!("{name}: public addresses cannot be built yet")));
        }
        let sources = sources(cluster, &flow.from, client);
        let picked_by = PickedBy::Nobody;
        let mut target = Self { aim, turns: 1, limit: PATIENCE, picked_by, sources };
        let Some(listener) = listener(load_balancers, target.aim.address) else {
            return Ok(target);
        };
        let layer = listener.protocol.layer();
        target.picked_by = match layer {
            Layer::L4 => PickedBy::Kernel,
            Layer::L7 => PickedBy::Process,
        };
        let Some(rule) = rule(listener, &target.aim) else { return Ok(target) };
        let alive = vec![true; rule.targets.len()];
        let choice = Choice::new(&listener.profile, &rule.targets, &alive, client);
        target.turns = turns(&choice);
        if layer == Layer::L7 {
            let candidates = choice.candidates().len() as u32;
            let tries = if listener.profile.next_target { candidates } else { 1 };
            target.limit = listener.profile.connect_timeout * tries.max(1) + SLACK;
        }
        Ok(target)
    }

    /// What its connections look like where they begin, each with one of its sources.
    pub(crate) fn calls(&self) -> impl Iterator<Item = Call> {
        let of_family = |ip: &&IpAddr| Family::of(**ip) == Family::of(self.aim.address.ip());
        self.sources.iter().filter(of_family).map(|source| (*source, self.aim.address))
    }
}

fn listener(all: &[LoadBalancer], address: SocketAddr) -> Option<&Listener> {
    all.iter().filter(|lb| lb.vip == address.ip()).flat_map(|lb| &lb.listeners).find(|listener| {
        let is_tcp = listener.protocol.transport() == Protocol::Tcp;
        is_tcp && listener.port.number() == address.port()
    })
}

fn rule<'a>(listener: &'a Listener, aim: &Aim) -> Option<&'a Rule> {
    match listener.protocol.layer() {
        Layer::L4 => listener.rules.first(),
        Layer::L7 => rules::find(&listener.rules, &aim.host, &aim.path),
    }
}

/// The address that a client's connections come from as long as nobody changes it.
fn client_address(cluster: &Cluster, client: &Client) -> Result<IpAddr, LabError> {
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
        Client::Workload(..) | Client::Outside(_) => {
            let what = format!("{client} as a client: expected a pod or a node");
            return Err(LabError::Plan(what));
        }
    };
    address.ok_or_else(|| LabError::Plan(format!("{client} has no address")))
}

/// The client's own address, and its node's: what a masqueraded connection comes from.
fn sources(cluster: &Cluster, client: &Client, own: IpAddr) -> Vec<IpAddr> {
    let node = match client {
        Client::Pod(name) => cluster.pods.get(name).and_then(|pod| pod.node.as_ref()),
        _ => None,
    };
    let node = node.and_then(|name| cluster.nodes.get(name)?.address(Family::of(own)));
    let mut all: Vec<IpAddr> = [own].into_iter().chain(node).collect();
    all.dedup();
    all
}

fn unknown(what: &impl std::fmt::Display) -> LabError {
    LabError::Plan(format!("the cluster has no {what}"))
}

fn aim(
    cluster: &Cluster,
    load_balancers: &[LoadBalancer],
    to: &Destination,
    family: Family,
) -> Result<Aim, LabError> {
    let plain = |address: SocketAddr| Aim { address, host: address.to_string(), path: "/".into() };
    let named = |host: &str, port: Port, path: &str| {
        let ip = resolve(cluster, load_balancers, host, family).ok_or_else(|| {
            LabError::Plan(format!("nothing says what address the name {host} has"))
        })?;
        let host = match (ip, port.number()) {
            (IpAddr::V6(ip), port) if host.parse() == Ok(ip) => format!("[{host}]:{port}"),
            (_, 80) => host.to_owned(),
            (_, port) => format!("{host}:{port}"),
        };
        Ok(Aim { address: SocketAddr::new(ip, port.number()), host, path: path.into() })
    };
    match to {
        Destination::Url { tls: true, .. } => {
            Err(LabError::Plan(format!("{to}: https cannot be measured yet")))
        }
        Destination::Url { host, port, path, .. } => named(host, *port, path),
        Destination::Host(host, port) => named(host, *port, "/"),
        Destination::Address(address) => Ok(plain(*address)),
        Destination::Service(name, port) => {
            let service = cluster.services.get(name).ok_or_else(|| unknown(to))?;
            let wanted = |one: &&uturn_model::service::ServicePort| match port.as_deref() {
                None => true,
                Some(text) => one.name.as_deref() == Some(text) || one.port.to_string() == text,
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
            let (lb, listener, rule) = ingress_rule(load_balancers, name, host.as_deref())
                .ok_or_else(|| LabError::Plan(format!("no load balancer serves {to}")))?;
            let address = SocketAddr::new(lb.vip, listener.port.number());
            let host = host.as_ref().or(rule.host.as_ref());
            let first = rule.path.as_ref().map(|(path, _)| path);
            Ok(Aim {
                address,
                host: host.map_or_else(|| address.to_string(), |host| host.to_string()),
                path: path.as_ref().or(first).map_or_else(|| "/".into(), |path| path.to_string()),
            })
        }
    }
}

fn ingress_rule<'a>(
    load_balancers: &'a [LoadBalancer],
    name: &NamespacedName,
    host: Option<&str>,
) -> Option<(&'a LoadBalancer, &'a Listener, &'a Rule)> {
    let owner = ObjectRef::namespaced(uturn_model::Kind::Ingress, name);
    let all = load_balancers.iter().flat_map(|lb| {
        lb.listeners.iter().flat_map(move |one| one.rules.iter().map(move |rule| (lb, one, rule)))
    });
    all.filter(|(_, listener, _)| !listener.protocol.ends_tls()).find(|(_, _, rule)| {
        rule.owner == owner && (host.is_none() || rule.host.as_deref() == host)
    })
}

/// An address for a name, as far as the cluster itself says: literal, stated, a Service's
/// or an Ingress's.
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
            let mut rules = lb.listeners.iter().flat_map(|one| &one.rules);
            rules.any(|rule| rule.host.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(host)))
        };
        load_balancers.iter().find(has_rule).map(|lb| lb.vip)
    };
    stated.map(|(_, ip)| *ip).find(of_family).or_else(service).or_else(ingress)
}
