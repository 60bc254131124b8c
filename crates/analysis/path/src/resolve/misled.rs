//! Names that lead a client elsewhere than to the object that they name: a search domain in which
//! every name exists, a Service that is named like a domain, or a rule of a Corefile.

use std::net::IpAddr;

use uturn_clouds::cloud::Owner;
use uturn_clouds::controller;
use uturn_lb::rules::is_for_host;
use uturn_model::service::ServiceKind;
use uturn_model::{Assumption, Cluster, Evidence, Flow, Name, ObjectRef, Service, Step};

use super::{by_name_servers, clients};
use crate::engine::Engine;
use crate::error::WalkError;
use crate::names::Resolution;
use crate::packet::Peer;
use crate::unjudged;

/// A name that leads a client elsewhere than to the object that it names.
#[derive(Clone, Debug)]
pub struct Misled {
    /// The object that has this name.
    pub object: ObjectRef,
    /// The addresses to which it leads.
    pub addresses: Vec<IpAddr>,
    /// The name that was answered, in full, if it is another: the name below a search domain.
    pub below: Option<String>,
    /// What the name leads to, in words.
    pub what: String,
    /// What decided that.
    pub by: Evidence,
    /// The assumptions that this rests on.
    pub supposed: Vec<Assumption>,
}

/// The object that a name stands for.
struct Named<'c> {
    object: ObjectRef,
    /// The Service, if its own addresses are what the name has to lead to. Of other objects only the
    /// name as it is written leads to them.
    service: Option<&'c Service>,
}

/// Returns what a flow's name leads to, if that is not the object with this name.
pub(crate) fn of_flow(engine: &Engine<'_>, flow: &Flow) -> Result<Option<Misled>, WalkError> {
    let Some(host) = flow.to.host() else { return Ok(None) };
    for client in clients(engine.cluster, &flow.from)? {
        let (Peer::Pod(pod) | Peer::Host(_, Some(pod))) = client else { continue };
        let Some(named) = named(engine.cluster, host, &pod.name.namespace) else { return Ok(None) };
        let resolved = by_name_servers(engine, client, host);
        if let Some(misled) = misled(engine.cluster, named, host, resolved) {
            return Ok(Some(misled));
        }
    }
    Ok(None)
}

fn misled(cluster: &Cluster, named: Named<'_>, host: &str, resolved: Resolution) -> Option<Misled> {
    if resolved.addresses.is_empty() || resolved.doubt.is_some() {
        return None;
    }
    let Resolution { addresses, asked, steps, supposed, .. } = resolved;
    let host = host.trim_end_matches('.');
    let below = asked?;
    let is_own = match named.service {
        Some(service) => addresses.iter().any(|ip| has_address(cluster, service, *ip)),
        None => below.eq_ignore_ascii_case(host),
    };
    if is_own {
        return None;
    }
    let Step { why, by, .. } = steps.into_iter().next_back()?;
    let below =
        Some(below).filter(|name| !name.eq_ignore_ascii_case(&in_full(cluster, &named, host)));
    Some(Misled { object: named.object, addresses, below, what: why.to_string(), by, supposed })
}

/// Returns the name that should be answered.
fn in_full(cluster: &Cluster, named: &Named<'_>, host: &str) -> String {
    let Some(service) = named.service else { return host.to_owned() };
    let own = cluster.dns.name_of(&service.name);
    if own.starts_with(host) { own } else { host.to_owned() }
}

fn has_address(cluster: &Cluster, service: &Service, ip: IpAddr) -> bool {
    let endpoints = || cluster.slices(&service.name).iter().flat_map(|slice| &slice.endpoints);
    if service.headless {
        endpoints().any(|endpoint| endpoint.address == ip)
    } else {
        service.cluster_ips.contains(&ip)
    }
}

/// Returns the object that has a name for the pods of a namespace: a Service, the host of an Ingress,
/// or the object whose load balancer has the name. Services of which something is not known are left
/// out.
fn named<'c>(cluster: &'c Cluster, host: &str, own: &Name) -> Option<Named<'c>> {
    let host = host.trim_end_matches('.');
    let service = unjudged::service_named(host, cluster.dns.domain(), own);
    if let Some(service) = service.and_then(|name| cluster.services.get(&name)) {
        let is_alias = matches!(service.kind, ServiceKind::ExternalName(_));
        let is_known = service.unjudged.is_empty() && !is_alias;
        let has_any = service.headless || !service.cluster_ips.is_empty();
        return (is_known && has_any)
            .then(|| Named { object: service.object(), service: Some(service) });
    }
    if !host.contains('.') {
        return None;
    }
    let is_host = |named: Option<&str>| named.is_some_and(|own| is_for_host(own, host));
    let mut ingresses = cluster.ingresses.values();
    let ingress = ingresses.find(|ingress| {
        ingress.rules.iter().any(|rule| is_host(rule.host.as_deref()))
            && !controller::addresses(cluster, Owner::Ingress(ingress)).is_empty()
            || ingress.load_balancer.iter().any(|entry| is_host(entry.hostname.as_deref()))
    });
    if let Some(ingress) = ingress {
        return Some(Named { object: ingress.object(), service: None });
    }
    let mut services = cluster.services.values();
    let service = services.find(|service| {
        service.load_balancer.iter().any(|entry| is_host(entry.hostname.as_deref()))
    })?;
    Some(Named { object: service.object(), service: None })
}
