//! Diagnoses a failed connection from observations: the addresses of requests and replies, where
//! and why the kernel dropped a packet, and the rules that counted it. No prediction is
//! consulted.

use std::net::{IpAddr, SocketAddr};

use uturn_model::{Cluster, LoadBalancer, Mechanism, Outcome};

use super::counters::{Counted, Grown, Growth};
use super::follow::Followed;
use super::kernel_state::KernelState;
use super::packet::Body;
use super::trace::EndedPacket;
use crate::linux::build::tunnel;
use crate::linux::forward::rules::UNSERVED_PORTS;
use crate::linux::kernel::netlink::HOLE;

/// All observations of a connection.
#[derive(Debug)]
pub(crate) struct Observations<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) load_balancers: &'a [LoadBalancer],
    /// The name of each place.
    pub(crate) places: &'a [String],
    /// The kernel state of each place.
    pub(crate) kernel_states: &'a [KernelState],
    pub(crate) frames: &'a [Followed],
    pub(crate) growth: &'a Growth,
    /// The packets that traced rules have dropped.
    pub(crate) traced: &'a [EndedPacket],
    pub(crate) outcome: Outcome,
    /// The index of the client's place.
    pub(crate) client: usize,
    /// The address that the client calls.
    pub(crate) to: SocketAddr,
    /// Whether the load balancer process has answered without picking a target.
    pub(crate) turned_away: bool,
}

/// A mechanism and the evidence for it.
pub(super) type Diagnosis = (Mechanism, String);

impl Observations<'_> {
    /// Returns the mechanism, if it could be seen.
    pub(crate) fn mechanism(&self) -> Option<Diagnosis> {
        self.asymmetric_return()
            .or_else(|| self.turned_away())
            .or_else(|| self.untranslated())
            .or_else(|| self.vanished())
            .or_else(|| self.dropped())
            .or_else(|| self.lost_in_tunnel())
            .or_else(|| self.own_source())
            .or_else(|| self.by_counter())
            .or_else(|| self.no_process_listens())
            .or_else(|| self.without_server())
            .or_else(|| self.never_sent())
            .or_else(|| self.bypassed())
            .or_else(|| self.stayed_at_balancer())
    }

    /// Diagnoses a client that receives a reply from an address that it never called.
    fn asymmetric_return(&self) -> Option<Diagnosis> {
        // A place that only forwards a packet has not sent it.
        let called = |place: usize, from: SocketAddr, to: SocketAddr| {
            let mut same = self.at(place).filter(|frame| {
                frame.packet.src == from && frame.packet.dst == to && !frame.packet.is_rst()
            });
            same.next().is_some_and(|first| first.leaves)
        };
        // A refusal is an answer too.
        let refused = self.at(self.client).find(|frame| match &frame.packet.body {
            Body::Error { about: (from, to), .. } => {
                !frame.leaves && !called(frame.place, *from, *to)
            }
            _ => false,
        });
        if let Some(frame) = refused
            && !self.places[frame.place].starts_with("node ")
        {
            let because = format!(
                "{} is told {}, which it never called",
                self.places[frame.place], frame.packet
            );
            return Some((Mechanism::AsymmetricReturn, because));
        }
        let strange = |frame: &&Followed| {
            let answers = frame.packet.is_syn_ack() || matches!(frame.packet.body, Body::Udp(_));
            let is_end = frame.place == self.client || frame.reason() == Some("NO_SOCKET");
            answers
                && is_end
                && !frame.leaves
                && !called(frame.place, frame.packet.dst, frame.packet.src)
        };
        // A frame that passes through the client's node is for another host, and is not reset
        // there.
        let strange_frame = self.frames.iter().filter(strange).find(|frame| {
            let rejects = |other: &Followed| {
                let back =
                    (other.packet.src, other.packet.dst) == (frame.packet.dst, frame.packet.src);
                let error = matches!(&other.packet.body,
                    Body::Error { about, .. } if *about == (frame.packet.src, frame.packet.dst));
                other.leaves && (back && other.packet.is_rst() || error)
            };
            self.at(frame.place).any(rejects)
        })?;
        let place = &self.places[strange_frame.place];
        let (from, to) = (strange_frame.packet.src, strange_frame.packet.dst);
        let how = match strange_frame.packet.body {
            Body::Udp(_) => "says so",
            _ => "resets it",
        };
        let because =
            format!("{place} is answered from {from}, which {to} never called, and {how}");
        Some((Mechanism::AsymmetricReturn, because))
    }

    /// Diagnoses a load balancer process that has answered by itself.
    fn turned_away(&self) -> Option<Diagnosis> {
        if !self.turned_away {
            return None;
        }
        Some(match self.outcome {
            Outcome::Status { code: 404, .. } => {
                let because = "the load balancer answers by itself: 404";
                (Mechanism::NoRuleForPath, because.into())
            }
            outcome => {
                let because = format!("the load balancer picks no target and answers: {outcome}");
                (Mechanism::NoCandidate, because)
            }
        })
    }

    /// Diagnoses a packet to a cluster IP that has left its node untranslated.
    fn untranslated(&self) -> Option<Diagnosis> {
        let of = |address: SocketAddr| {
            self.cluster
                .services
                .values()
                .find(|service| service.cluster_ips.contains(&address.ip()))
        };
        let frame = self.frames.iter().find(|frame| {
            self.is_balancers(frame.place) && !frame.leaves && of(frame.packet.dst).is_some()
        })?;
        let to = frame.packet.dst;
        let service = of(to)?;
        let has_port = service.ports.iter().any(|port| port.port.number() == to.port());
        let name = &service.name;
        // Clients outside the VPC call from there.
        let is_from_outside = &*self.places[frame.place] == "edge";
        Some(if has_port && is_from_outside {
            (Mechanism::NoRoute, format!("only nodes know {to} (Service {name})"))
        } else if has_port {
            let because = format!(
                "no rule of its node takes {to} (Service {name}): it leaves the node as it is"
            );
            (Mechanism::RuleMissing, because)
        } else {
            let because = format!(
                "Service {name} has no port {}: it leaves the node as it is, and no host has \
                 the address {}",
                to.port(),
                to.ip()
            );
            (Mechanism::WrongPort, because)
        })
    }

    /// Diagnoses a packet that the VPC has no route for.
    fn vanished(&self) -> Option<Diagnosis> {
        let is_lost = |frame: &&Followed| self.is_balancers(frame.place) && frame.link == HOLE;
        let frame = self.frames.iter().find(is_lost)?;
        let because = format!("the VPC has no route for {}", frame.packet);
        Some((self.kind_of_unroutable(frame.packet.dst.ip()), because))
    }

    /// Diagnoses a packet that the kernel has given a drop reason for.
    fn dropped(&self) -> Option<Diagnosis> {
        self.frames.iter().find_map(|frame| {
            let place = &self.places[frame.place];
            let (reason, packet) = (frame.reason()?, &frame.packet);
            let because_of = |mechanism, why: &str| {
                Some((mechanism, format!("{place} drops {packet}: {reason}{why}")))
            };
            match reason {
                "IP_LOCAL_SOURCE" => {
                    because_of(Mechanism::LocalSourceDrop, ", the source is an address of its own")
                }
                "IP_RPFILTER" => because_of(Mechanism::ReversePathFilter, ""),
                "NETFILTER_DROP" => {
                    let (mechanism, why) = self.rule(frame.place)?;
                    because_of(mechanism, &format!(", {why}"))
                }
                "NO_SOCKET" if packet.is_syn() || matches!(packet.body, Body::Udp(_)) => {
                    let is_node_port = self.is_node_port(packet.dst);
                    if is_node_port {
                        because_of(Mechanism::RuleMissing, ", a node port that no rule takes")
                    } else {
                        because_of(Mechanism::WrongPort, ", no process listens there")
                    }
                }
                _ if self.is_unroutable(frame) => because_of(
                    self.kind_of_unroutable(packet.dst.ip()),
                    &format!(" in {}, no route leads on", frame.location().unwrap_or_default()),
                ),
                _ => None,
            }
        })
    }

    /// Diagnoses an encapsulated packet that does not arrive at the other node, and that a rule of
    /// the fabric has counted.
    fn lost_in_tunnel(&self) -> Option<Diagnosis> {
        let mut wrapped = self.frames.iter().filter(|frame| frame.link == tunnel::DEVICE);
        let comes_out = |inner: &Followed| {
            let mut out = self.frames.iter().filter(|other| other.link == tunnel::DEVICE);
            out.any(|other| !other.leaves && other.packet == inner.packet)
        };
        let frame = wrapped.find(|frame| frame.leaves && !comes_out(frame))?;
        let fabric = self.places.iter().position(|place| place == "fabric")?;
        let (mechanism, why) = self.rule(fabric)?;
        let place = &self.places[frame.place];
        Some((mechanism, format!("{place} wraps {}, which no node unwraps: {why}", frame.packet)))
    }

    /// Returns the mechanism and the evidence of a rule of a place that has counted packets.
    pub(super) fn rule(&self, place: usize) -> Option<(Mechanism, String)> {
        let rule = |counter: &Grown| match &counter.what {
            Counted::Rule(rule) if counter.place == place => Some((rule.clone(), counter.by)),
            _ => None,
        };
        let explain = |(rule, by): (String, u64)| {
            let mechanism = match rule.split(' ').nth(1).unwrap_or_default() {
                chain if chain.starts_with("SG-") => Mechanism::SecurityGroup,
                chain if chain.starts_with(UNSERVED_PORTS) => Mechanism::WrongPort,
                "NO-BANDWIDTH" => Mechanism::NoBandwidth,
                "LB-NO-TARGET" => Mechanism::NoCandidate,
                // The chain for bound addresses on ports without a virtual server.
                "KUBE-IPVS-FILTER" => self.kind_of_unserved(self.called_at(place)),
                _ if rule.contains("endpoints\"") => Mechanism::NoEndpoint,
                _ => Mechanism::Firewall,
            };
            (mechanism, format!("{by} packets met `{rule}`"))
        };
        let grown = self.growth.grown.iter().filter_map(rule);
        grown.map(explain).next().or_else(|| self.traced(place))
    }

    /// Diagnoses by the rule that the kernel's trace names: rules of nftables mode have no
    /// counters, nor have those of the load balancers.
    fn traced(&self, place: usize) -> Option<Diagnosis> {
        // A node's own packets may be dropped before they appear on a link.
        let is_seen = |ended: &EndedPacket| {
            let is_it = |frame: &Followed| frame.packet.src == ended.packet.src;
            self.at(place).any(is_it) || self.frames.is_empty() && ended.packet.dst == self.to
        };
        let ended = self.traced.iter().find(|ended| ended.place == place && is_seen(ended))?;
        let EndedPacket { packet, table, chain, rule, .. } = ended;
        let mechanism = match (&**table, &**chain) {
            ("uturn_lb", _) => Mechanism::NoCandidate,
            ("kube-proxy", "cluster-ips-check") => self.kind_of_unserved(packet.dst),
            ("kube-proxy", chain) if !chain.starts_with("firewall-") => Mechanism::NoEndpoint,
            _ => Mechanism::Firewall,
        };
        Some((mechanism, format!("it met `{rule}` in chain {chain} of table {table}")))
    }

    /// Diagnoses a load balancer whose packets a rule drops before they appear on a link.
    fn never_sent(&self) -> Option<Diagnosis> {
        let place = self.frames.iter().find(|frame| {
            let to_vip = self.load_balancers.iter().any(|lb| lb.vip == frame.packet.dst.ip());
            self.is_balancers(frame.place) && !frame.leaves && frame.packet.is_syn() && to_vip
        })?;
        let place = place.place;
        if self.at(place).any(|frame| frame.leaves && frame.packet.is_syn()) {
            return None;
        }
        let (mechanism, why) = self.rule(place)?;
        Some((mechanism, format!("the load balancer's packets never leave: {why}")))
    }

    fn bypassed(&self) -> Option<Diagnosis> {
        let is_vip = |ip: IpAddr| self.load_balancers.iter().any(|lb| lb.vip == ip);
        let mut frames = self.frames.iter();
        let reaches =
            frames.any(|frame| self.is_balancers(frame.place) && is_vip(frame.packet.dst.ip()));
        (self.outcome == Outcome::TlsError && !reaches).then(|| {
            let because = "the load balancer that would end TLS never sees the connection";
            (Mechanism::TlsBypassed, because.into())
        })
    }

    /// Diagnoses a packet that arrives at a load balancer, which sends nothing on.
    fn stayed_at_balancer(&self) -> Option<Diagnosis> {
        let is_vip = |ip: IpAddr| self.load_balancers.iter().any(|lb| lb.vip == ip);
        let frame = self.frames.iter().find(|frame| {
            self.is_balancers(frame.place) && !frame.leaves && is_vip(frame.packet.dst.ip())
        })?;
        let went_on = self.at(frame.place).any(|other| other.leaves);
        (!went_on).then(|| {
            let to = frame.packet.dst;
            let because = format!("{to} is called, and the load balancer sends it to no target");
            (Mechanism::NoCandidate, because)
        })
    }

    /// Returns the mechanism if a node has an address for a Service, but serves nothing at this
    /// port.
    fn kind_of_unserved(&self, to: SocketAddr) -> Mechanism {
        let of_service = |service: &uturn_model::Service| {
            service.cluster_ips.contains(&to.ip())
                && service.ports.iter().any(|port| port.port.number() == to.port())
        };
        if self.cluster.services.values().any(of_service) {
            Mechanism::RuleMissing
        } else {
            Mechanism::WrongPort
        }
    }

    /// Returns the destination of the connection where it arrives at a place.
    fn called_at(&self, place: usize) -> SocketAddr {
        let comes = |frame: &&Followed| !frame.leaves && frame.begins();
        self.at(place).find(comes).map_or(self.to, |frame| frame.packet.dst)
    }

    pub(super) fn at(&self, place: usize) -> impl Iterator<Item = &Followed> {
        self.frames.iter().filter(move |frame| frame.place == place)
    }

    pub(super) fn is_balancers(&self, place: usize) -> bool {
        matches!(&*self.places[place], "fabric" | "edge")
    }

    pub(super) fn is_node_port(&self, to: SocketAddr) -> bool {
        self.cluster.nodes.values().any(|node| node.has_address(to.ip()))
            && self
                .cluster
                .services
                .values()
                .flat_map(|service| &service.ports)
                .any(|port| port.node_port.is_some_and(|port| port.number() == to.port()))
    }

    /// Returns whether route lookup dropped a packet.
    fn is_unroutable(&self, frame: &Followed) -> bool {
        let reasons = ["IP_INNOROUTES", "IP_OUTNOROUTES", "IP_INADDRERRORS"];
        let places = ["dst_discard", "ip_error", "ip_forward", "ip6_forward", "ip_rcv_finish_core"];
        frame.reason().is_some_and(|reason| reasons.contains(&reason))
            || frame.location().is_some_and(|location| places.contains(&location))
    }

    /// Returns the mechanism for an unroutable address: a pod's, or any other.
    pub(super) fn kind_of_unroutable(&self, to: IpAddr) -> Mechanism {
        if self.cluster.pods.values().any(|pod| pod.ips.contains(&to)) {
            Mechanism::CrossNode
        } else {
            Mechanism::NoRoute
        }
    }
}

impl Followed {
    pub(super) fn reason(&self) -> Option<&str> {
        self.dropped.as_ref().map(|dropped| &*dropped.reason)
    }

    pub(super) fn location(&self) -> Option<&str> {
        self.dropped.as_ref().map(|dropped| &*dropped.location)
    }
}
