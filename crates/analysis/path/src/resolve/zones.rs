//! Names of load balancers that have an address in each zone, where the network's name servers
//! prefer the address in the zone of the host that asks.

use std::net::IpAddr;

use uturn_clouds::cloud::{self, Maker, ZoneAnswers};
use uturn_model::{Assumption, Cluster, Node, Port, Service};

use super::{ResolvedTarget, aim_at_host};
use crate::engine::Engine;
use crate::packet::{Peer, Request};

/// The hosts that ask the network's name servers.
struct Askers<'a> {
    /// The zones of these hosts, if known.
    zones: Vec<Option<&'a str>>,
    /// A description of these hosts.
    called: &'static str,
}

/// Resolves a host. Of the addresses of a load balancer, keeps those that the client is told.
pub(super) fn aim_by_zone(
    engine: &Engine<'_>,
    client: Peer<'_>,
    host: &str,
    port: Port,
    request: Request,
) -> ResolvedTarget {
    let mut target = aim_at_host(engine, client, host, port, request);
    let Some(resolved) = &mut target.resolved else { return target };
    let named: Vec<_> = target
        .addresses
        .iter()
        .filter_map(|at| engine.cluster.dns.balancer_at(at.ip()))
        .filter(|(_, named)| named.zone.is_some())
        .collect();
    let Some((name, _)) = named.first().filter(|_| named.len() > 1) else { return target };
    let Some((service, answers)) = zone_answers(engine.cluster, name) else { return target };
    let Some(askers) = askers(engine.cluster, client, resolved.through) else { return target };
    let taken = match answers {
        ZoneAnswers::Any => return target,
        ZoneAnswers::Mostly(share) => {
            format!("any of its zones alike, although {share} of 100 answers prefer one")
        }
        ZoneAnswers::Own => {
            let is_of = |ip: IpAddr| {
                let zone = named.iter().find(|(_, named)| named.address == ip);
                zone.and_then(|(_, named)| named.zone.as_deref())
            };
            let has = |zone: &str| target.addresses.iter().any(|at| is_of(at.ip()) == Some(zone));
            let own: Option<Vec<&str>> =
                askers.zones.iter().map(|zone| zone.filter(|zone| has(zone))).collect();
            // A host in a zone without an address is told any address.
            let Some(own) = own else { return target };
            target.addresses.retain(|at| is_of(at.ip()).is_some_and(|zone| own.contains(&zone)));
            format!("that of the zone of {}", askers.called)
        }
    };
    resolved.addresses = target.addresses.iter().map(|at| at.ip()).collect();
    resolved.supposed.push(Assumption {
        subject: format!("which address of {name} clients are told").into(),
        assumed: taken.into(),
        because: format!("{} asks for answers by zone", service.object()).into(),
        settle: format!("dig +short {name}, in a pod").into(),
    });
    target
}

/// Returns the Service whose load balancer has a name, and how the name is answered.
fn zone_answers<'e>(cluster: &'e Cluster, name: &str) -> Option<(&'e Service, ZoneAnswers)> {
    let has_name = |service: &&Service| {
        let mut hosts = service.load_balancer.iter().filter_map(|entry| entry.hostname.as_ref());
        hosts.any(|host| host.trim_end_matches('.').eq_ignore_ascii_case(name))
    };
    let service = cluster.services.values().find(has_name)?;
    match cloud::maker_of(service, &cluster.provider) {
        Maker::Product(product, _) => Some((service, product.zone_answers(service))),
        _ => None,
    }
}

/// Returns the hosts that ask for a client: the cluster's own name servers, if they had to answer
/// and no cache on the client's node asks by itself; else the client's node. For other clients the
/// asking hosts are not known.
fn askers<'e>(
    cluster: &'e Cluster,
    client: Peer<'e>,
    through: Option<IpAddr>,
) -> Option<Askers<'e>> {
    let dns = &cluster.dns;
    let zone = |node: Option<&'e Node>| node.and_then(Node::zone);
    let node_at = |name| cluster.nodes.get(name);
    let own = match client {
        Peer::Pod(pod) => pod.node.as_ref().and_then(node_at),
        Peer::Host(node, _) => Some(node),
        Peer::Balancer(_) | Peer::Outside => return None,
    };
    let service = dns.service.as_ref().filter(|_| through.is_some() && dns.node_local.is_none());
    let Some(service) = service else {
        return Some(Askers { zones: vec![zone(own)], called: "the client, who asks" });
    };
    let all = cluster.slices(service).iter().flat_map(|slice| &slice.endpoints);
    let ready = all.filter(|endpoint| endpoint.ready);
    let zones: Vec<Option<&str>> =
        ready.map(|endpoint| zone(endpoint.node.as_ref().and_then(node_at))).collect();
    (!zones.is_empty()).then_some(Askers { zones, called: "the cluster's name server, which asks" })
}
