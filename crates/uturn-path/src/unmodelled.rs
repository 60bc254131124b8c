//! Load balancers that are not modelled: which addresses and names lead to them.

use std::net::{IpAddr, SocketAddr};

use uturn_lb::cloud::recognised;
use uturn_lb::rules::is_for_host;
use uturn_model::service::LbIngress;
use uturn_model::{Cluster, Destination, Ingress, ObjectRef, Origin, Service, Unknown};

use crate::engine::Engine;
use crate::unjudged::Gap;

impl<'a> Engine<'a> {
    /// The load balancer of an address, where it is not known how it behaves. What comes to a
    /// node's own address is the node's to decide.
    pub(crate) fn gap_of_balancer(&self, at: IpAddr) -> Option<Gap> {
        if self.node_at(at).is_some() {
            return None;
        }
        let by_name = || {
            let names = self.cluster.dns.outside.iter().filter(|(_, ip)| *ip == at);
            names.map(|(name, _)| name).find_map(|name| self.gap_of_host(name))
        };
        self.find_balancer(|one| one.entries.iter().any(|entry| entry.ip == Some(at)))
            .or_else(by_name)
    }

    /// What may well listen on a node's own address, where no process there is known to: the
    /// pods of k3s's load balancers, and controllers whose Ingresses have that address.
    pub(crate) fn gap_on_node(&self, at: SocketAddr) -> Option<Gap> {
        let is_web = matches!(at.port(), 80 | 443);
        let is_k3s = |unknown: &Unknown| match unknown {
            Unknown::LoadBalancers(kind) => **kind == *recognised::K3S.cloud.name(),
            _ => false,
        };
        self.find_balancer(|one| match one.service {
            Some(service) => {
                is_k3s(one.unknown)
                    && service.ports.iter().any(|port| port.port.number() == at.port())
            }
            None => is_web && one.entries.iter().any(|entry| entry.ip == Some(at.ip())),
        })
    }

    /// What keeps a destination from being judged that has no address to be called.
    pub(crate) fn gap_of_name(&self, to: &Destination) -> Option<Gap> {
        match to {
            Destination::Url { host, .. } | Destination::Host(host, _) => {
                self.find_balancer(|one| one.is_called(host))
            }
            Destination::Ingress { name, .. } => {
                let ingress = self.cluster.ingresses.get(name)?;
                let unknown = ingress.unjudged.iter().find(|unknown| unknown.is_of_balancer())?;
                Some(Gap::of(&ingress.object(), &ingress.origin, unknown))
            }
            Destination::Service(..) | Destination::Address(_) | Destination::Pod(..) => None,
        }
    }

    /// The load balancer behind a host, where it is not modelled and has no address that is
    /// known: it is the balancer's own name, or that of something that it serves.
    pub(crate) fn gap_of_host(&self, host: &str) -> Option<Gap> {
        self.find_balancer(|one| one.is_called(host) || one.serves_by_name(host))
    }

    /// The first load balancer that is not modelled and of which something holds.
    fn find_balancer(&self, is_it: impl Fn(&Unmodelled<'a>) -> bool) -> Option<Gap> {
        let found = unmodelled(self.cluster).find(|one| is_it(one))?;
        Some(Gap::of(&found.object, found.origin, found.unknown))
    }
}

/// An object whose load balancer is not modelled.
pub(crate) struct Unmodelled<'a> {
    object: ObjectRef,
    origin: &'a Origin,
    unknown: &'a Unknown,
    entries: &'a [LbIngress],
    service: Option<&'a Service>,
    ingress: Option<&'a Ingress>,
}

/// Where the controller that writes names into the world's DNS reads them.
const EXTERNAL_DNS: &str = "external-dns.alpha.kubernetes.io/hostname";

impl Unmodelled<'_> {
    /// Whether this is a name of the load balancer itself.
    pub(crate) fn is_called(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.');
        let is_it = |name: &str| name.trim_end_matches('.').eq_ignore_ascii_case(host);
        self.entries.iter().any(|entry| entry.hostname.as_deref().is_some_and(is_it))
    }

    /// Whether this host leads to it, by its name: no address of it is known.
    pub(crate) fn serves_by_name(&self, host: &str) -> bool {
        let is_named = |entry: &LbIngress| entry.ip.is_none() && entry.hostname.is_some();
        if self.entries.is_empty() || !self.entries.iter().all(is_named) {
            return false;
        }
        let written = self.service.and_then(|service| service.annotations.get(EXTERNAL_DNS));
        let mut written = written.into_iter().flat_map(|names| names.split(','));
        let mut rules = self.ingress.into_iter().flat_map(|one| &one.rules);
        written.any(|name| is_for_host(name.trim(), host))
            || rules.any(|rule| rule.host.as_deref().is_some_and(|name| is_for_host(name, host)))
    }
}

/// Everything whose load balancer is not modelled.
pub(crate) fn unmodelled(cluster: &Cluster) -> impl Iterator<Item = Unmodelled<'_>> {
    let services = cluster.services.values().filter_map(|one| {
        let unknown = one.unjudged.iter().find(|unknown| unknown.is_of_balancer())?;
        Some(Unmodelled {
            object: one.object(),
            origin: &one.origin,
            unknown,
            entries: &one.load_balancer,
            service: Some(one),
            ingress: None,
        })
    });
    let ingresses = cluster.ingresses.values().filter_map(|one| {
        let unknown = one.unjudged.iter().find(|unknown| unknown.is_of_balancer())?;
        Some(Unmodelled {
            object: one.object(),
            origin: &one.origin,
            unknown,
            entries: &one.load_balancer,
            service: None,
            ingress: Some(one),
        })
    });
    services.chain(ingresses)
}
