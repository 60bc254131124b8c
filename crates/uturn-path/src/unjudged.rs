//! Flows that cannot be judged: they depend on something that is not given or not modelled.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

use uturn_model::route::{By, Place, Step, StepKind};
use uturn_model::service::LbIngress;
use uturn_model::{
    Cloud, Cluster, Destination, Ingress, Mechanism, ObjectRef, Origin, Protocol, Service, Unknown,
};

use crate::engine::Engine;
use crate::exchange::{Exchange, ended};
use crate::travel::{Arrival, Party, Stop, Trip};

/// What keeps a flow from being judged, and which object it belongs to.
pub(crate) struct Gap<'a> {
    pub(crate) object: ObjectRef,
    pub(crate) origin: &'a Origin,
    pub(crate) unknown: Cow<'a, Unknown>,
}

impl Gap<'_> {
    fn step(&self) -> Step {
        let why = match &*self.unknown {
            Unknown::LoadBalancers(kind) => {
                format!("how a load balancer of {kind} treats this call is not modelled")
            }
            Unknown::Controller(name) => {
                format!("{name} serves this Ingress, and what it does with a call is not modelled")
            }
            Unknown::ServiceProxy(name) => {
                format!(
                    "{name} serves this Service, and what it does with this call is not modelled"
                )
            }
            Unknown::Endpoints => "which endpoints the Service has is not given".to_owned(),
            Unknown::Backends => "what stands behind the Ingress is not given".to_owned(),
        };
        Step::new(StepKind::Unknown, why, By::new(self.object.to_string(), self.origin.clone()))
    }

    /// The end of a flow that nobody can judge.
    pub(crate) fn exchange(&self, place: Place, mut trip: Trip) -> Exchange {
        let leg = trip.packet.leg();
        trip.note(place, self.step().seeing(leg));
        ended(trip, uturn_model::Outcome::Unknown, Some(self.mechanism()))
    }

    /// The end of a packet whose further way nobody can judge.
    pub(crate) fn arrival<'a>(&self, mut trip: Trip) -> Arrival<'a> {
        let leg = trip.packet.leg();
        trip.note(Place::Fabric, self.step().seeing(leg));
        Arrival { trip, stop: Stop::Unknown(self.mechanism()) }
    }

    pub(crate) fn mechanism(&self) -> Mechanism {
        self.unknown.mechanism()
    }
}

impl<'a> Engine<'a> {
    /// What keeps every call of an address from being judged, whoever makes it.
    pub(crate) fn gap_at(
        &self,
        client: Party<'_>,
        to: SocketAddr,
        protocol: Protocol,
    ) -> Option<Gap<'a>> {
        let is_outside = matches!(client, Party::Outside);
        let is_node = self.node_at(to.ip()).is_some();
        let mut open = self.cluster.services.values().filter(|one| !one.unjudged.is_empty());
        open.find_map(|service| {
            let gap = gap_of_endpoints(service)?;
            let is_asked =
                service.ports.iter().filter(|port| port.protocol == protocol).any(|port| {
                    match is_node {
                        true => port.node_port.is_some_and(|port| port.number() == to.port()),
                        false => {
                            let is_cluster_ip = service.cluster_ips.contains(&to.ip());
                            service.has_address(to.ip())
                                && port.port.number() == to.port()
                                && !(is_outside && is_cluster_ip)
                        }
                    }
                });
            is_asked.then_some(gap)
        })
    }

    /// What keeps calls of a Service from being judged, wherever they come from.
    pub(crate) fn gap_behind(&self, service: &uturn_model::NamespacedName) -> Option<Gap<'a>> {
        self.cluster.services.get(service).and_then(gap_of_endpoints)
    }

    /// The load balancer of an address of which nobody knows how it behaves. What comes to a
    /// node's own address is the node's to decide.
    pub(crate) fn gap_of_balancer(&self, at: IpAddr) -> Option<Gap<'a>> {
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
    pub(crate) fn gap_on_node(&self, at: SocketAddr) -> Option<Gap<'a>> {
        let is_web = matches!(at.port(), 80 | 443);
        let is_k3s = |unknown: &Unknown| match unknown {
            Unknown::LoadBalancers(kind) => **kind == *Cloud::K3s.name(),
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
    pub(crate) fn gap_of_name(&self, to: &Destination) -> Option<Gap<'a>> {
        match to {
            Destination::Url { host, .. } | Destination::Host(host, _) => {
                self.find_balancer(|one| one.is_called(host))
            }
            Destination::Ingress { name, .. } => {
                let ingress = self.cluster.ingresses.get(name)?;
                let unknown = Cow::Borrowed(ingress.unjudged.first()?);
                Some(Gap { object: ingress.object(), origin: &ingress.origin, unknown })
            }
            Destination::Service(..) | Destination::Address(_) | Destination::Pod(..) => None,
        }
    }

    /// The load balancer behind a host, where it is not modelled and has no address that is
    /// known: it is the balancer's own name, or that of something that it serves.
    pub(crate) fn gap_of_host(&self, host: &str) -> Option<Gap<'a>> {
        self.find_balancer(|one| one.is_called(host) || one.serves_by_name(host))
    }

    /// The first load balancer that is not modelled and of which something holds.
    fn find_balancer(&self, is_it: impl Fn(&Unmodelled<'a>) -> bool) -> Option<Gap<'a>> {
        let found = unmodelled(self.cluster).find(|one| is_it(one))?;
        Some(Gap {
            object: found.object,
            origin: found.origin,
            unknown: Cow::Borrowed(found.unknown),
        })
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
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let is_named = |entry: &LbIngress| entry.ip.is_none() && entry.hostname.is_some();
        if self.entries.is_empty() || !self.entries.iter().all(is_named) {
            return false;
        }
        let written = self.service.and_then(|service| service.annotations.get(EXTERNAL_DNS));
        let mut written = written.into_iter().flat_map(|names| names.split(','));
        let mut rules = self.ingress.into_iter().flat_map(|one| &one.rules);
        written.any(|name| fits(name.trim(), &host))
            || rules.any(|rule| rule.host.as_deref().is_some_and(|name| fits(name, &host)))
    }
}

/// Whether a host is this one, or of the names that a star stands for.
fn fits(name: &str, host: &str) -> bool {
    match name.trim_end_matches('.').to_ascii_lowercase().strip_prefix("*.") {
        Some(rest) => {
            host.split_once('.').is_some_and(|(first, own)| !first.is_empty() && own == rest)
        }
        None => name.trim_end_matches('.').eq_ignore_ascii_case(host),
    }
}

/// Everything whose load balancer is not modelled.
pub(crate) fn unmodelled(cluster: &Cluster) -> impl Iterator<Item = Unmodelled<'_>> {
    let services = cluster.services.values().filter_map(|one| {
        Some(Unmodelled {
            object: one.object(),
            origin: &one.origin,
            unknown: one.unjudged.iter().find(|unknown| unknown.is_of_balancer())?,
            entries: &one.load_balancer,
            service: Some(one),
            ingress: None,
        })
    });
    let ingresses = cluster.ingresses.values().filter_map(|one| {
        Some(Unmodelled {
            object: one.object(),
            origin: &one.origin,
            unknown: one.unjudged.iter().find(|unknown| unknown.is_of_balancer())?,
            entries: &one.load_balancer,
            service: None,
            ingress: Some(one),
        })
    });
    services.chain(ingresses)
}

fn gap_of_endpoints(service: &Service) -> Option<Gap<'_>> {
    let unknown = service.unjudged.iter().find(|unknown| unknown.is_of_every_call())?;
    let unknown = Cow::Borrowed(unknown);
    Some(Gap { object: service.object(), origin: &service.origin, unknown })
}
