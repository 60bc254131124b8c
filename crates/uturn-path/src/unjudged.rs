//! Flows that cannot be judged: they depend on something that is not given or not modelled.

use std::net::{IpAddr, SocketAddr};

use uturn_model::route::{By, Place, Step, StepKind};
use uturn_model::service::LbIngress;
use uturn_model::{Destination, Mechanism, ObjectRef, Origin, Protocol, Service, Unknown};

use crate::engine::Engine;
use crate::exchange::{Exchange, ended};
use crate::travel::{Arrival, Party, Stop, Trip};

/// What keeps a flow from being judged, and which object it belongs to.
pub(crate) struct Gap<'a> {
    object: ObjectRef,
    origin: &'a Origin,
    unknown: &'a Unknown,
}

impl Gap<'_> {
    fn step(&self) -> Step {
        let why = match self.unknown {
            Unknown::LoadBalancers(kind) => {
                format!("how a load balancer of {kind} treats this call is not modelled")
            }
            Unknown::ServiceProxy(name) => {
                format!("{name} serves this Service, and that is not modelled")
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

    /// The load balancer of an address of which nobody knows how it behaves.
    pub(crate) fn gap_of_balancer(&self, at: IpAddr) -> Option<Gap<'a>> {
        self.find_balancer(|entry| entry.ip == Some(at))
    }

    /// What keeps a destination from being judged that has no address to be called.
    pub(crate) fn gap_of_name(&self, to: &Destination) -> Option<Gap<'a>> {
        let is_called = |host: &str| {
            let host = host.trim_end_matches('.').to_ascii_lowercase();
            self.find_balancer(|entry| {
                entry.hostname.as_deref().is_some_and(|name| name.eq_ignore_ascii_case(&host))
            })
        };
        match to {
            Destination::Url { host, .. } | Destination::Host(host, _) => is_called(host),
            Destination::Ingress { name, .. } => {
                let ingress = self.cluster.ingresses.get(name)?;
                let unknown = ingress.unjudged.first()?;
                Some(Gap { object: ingress.object(), origin: &ingress.origin, unknown })
            }
            Destination::Service(..) | Destination::Address(_) | Destination::Pod(..) => None,
        }
    }

    /// The first load balancer that is not modelled and has such an address or name.
    fn find_balancer(&self, is_it: impl Fn(&LbIngress) -> bool) -> Option<Gap<'a>> {
        let of_balancer = |unknown: &&Unknown| matches!(unknown, Unknown::LoadBalancers(_));
        let services = self.cluster.services.values().filter_map(|one| {
            let unknown = one.unjudged.iter().find(of_balancer)?;
            one.load_balancer.iter().any(&is_it).then(|| Gap {
                object: one.object(),
                origin: &one.origin,
                unknown,
            })
        });
        let ingresses = self.cluster.ingresses.values().filter_map(|one| {
            let unknown = one.unjudged.iter().find(of_balancer)?;
            one.load_balancer.iter().any(&is_it).then(|| Gap {
                object: one.object(),
                origin: &one.origin,
                unknown,
            })
        });
        services.chain(ingresses).next()
    }
}

fn gap_of_endpoints(service: &Service) -> Option<Gap<'_>> {
    let unknown = service.unjudged.iter().find(|unknown| unknown.is_of_every_call())?;
    Some(Gap { object: service.object(), origin: &service.origin, unknown })
}
