//! Why a connection failed, by what was seen of it: who answered whom from which address,
//! where the kernel ended a packet and for which reason, and which rules have counted it.
//! Nothing here asks what ought to happen.

use std::net::{IpAddr, SocketAddr};

use uturn_model::{Cluster, LoadBalancer, Mechanism, Outcome};

use super::counters::Grown;
use super::follow::Followed;
use super::packet::Body;

/// The fabric's link for what is for nobody.
const HOLE: &str = "hole";

/// Everything that was seen of a connection.
#[derive(Debug)]
pub(crate) struct Scene<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) load_balancers: &'a [LoadBalancer],
    /// What each place is.
    pub(crate) places: &'a [String],
    pub(crate) frames: &'a [Followed],
    pub(crate) grown: &'a [Grown],
    pub(crate) outcome: Outcome,
    /// The client's place.
    pub(crate) client: usize,
    /// Whether the load balancer's process has answered without picking anybody.
    pub(crate) turned_away: bool,
}

/// A mechanism and what it rests on.
type Found = (Mechanism, String);

impl Scene<'_> {
    /// The mechanism, if it could be seen.
    pub(crate) fn mechanism(&self) -> Option<Found> {
        self.asymmetric_return()
            .or_else(|| self.turned_away())
            .or_else(|| self.untranslated())
            .or_else(|| self.vanished())
            .or_else(|| self.dropped())
            .or_else(|| self.counted())
            .or_else(|| self.own_source())
            .or_else(|| self.bypassed())
            .or_else(|| self.stayed_at_balancer())
    }

    /// Somebody is answered from an address that he never called.
    fn asymmetric_return(&self) -> Option<Found> {
        let called = |place: usize, from: SocketAddr, to: SocketAddr| {
            self.at(place).any(|one| {
                one.leaves && one.packet.src == from && one.packet.dst == to && !one.packet.is_rst()
            })
        };
        let strange = |one: &&Followed| {
            let answers = one.packet.is_syn_ack() || matches!(one.packet.body, Body::Udp(_));
            let is_end = one.place == self.client || one.reason() == Some("NO_SOCKET");
            answers && is_end && !one.leaves && !called(one.place, one.packet.dst, one.packet.src)
        };
        // What is on its way through the client's node is for somebody else.
        let one = self.frames.iter().filter(strange).find(|one| {
            let rejects = |other: &Followed| {
                let back = (other.packet.src, other.packet.dst) == (one.packet.dst, one.packet.src);
                let error = matches!(&other.packet.body,
                    Body::Error { about, .. } if *about == (one.packet.src, one.packet.dst));
                other.leaves && (back && other.packet.is_rst() || error)
            };
            self.at(one.place).any(rejects)
        })?;
        let place = &self.places[one.place];
        let (from, to) = (one.packet.src, one.packet.dst);
        let how = match one.packet.body {
            Body::Udp(_) => "says so",
            _ => "resets it",
        };
        let because =
            format!("{place} is answered from {from}, which {to} never called, and {how}");
        Some((Mechanism::AsymmetricReturn, because))
    }

    /// The load balancer's process has answered by itself.
    fn turned_away(&self) -> Option<Found> {
        if !self.turned_away {
            return None;
        }
        Some(match self.outcome {
            Outcome::Status { code: 404, .. } => {
                let because = "the load balancer answers by itself: 404";
                (Mechanism::NoRuleForPath, because.into())
            }
            outcome => {
                let because = format!("the load balancer picks nobody and answers: {outcome}");
                (Mechanism::NoCandidate, because)
            }
        })
    }

    /// A Service's own address means nothing beyond the nodes.
    fn untranslated(&self) -> Option<Found> {
        let of = |address: SocketAddr| {
            self.cluster.services.values().find(|one| one.cluster_ips.contains(&address.ip()))
        };
        let one = self.frames.iter().find(|one| {
            self.is_balancers(one.place) && !one.leaves && of(one.packet.dst).is_some()
        })?;
        let to = one.packet.dst;
        let service = of(to)?;
        let has_port = service.ports.iter().any(|port| port.port.number() == to.port());
        let name = &service.name;
        Some(if has_port {
            let because = format!(
                "no rule of its node takes {to} (Service {name}): it leaves the node as it is"
            );
            (Mechanism::RuleMissing, because)
        } else {
            let because = format!(
                "Service {name} has no port {}: it leaves the node as it is, and nobody has \
                 the address {}",
                to.port(),
                to.ip()
            );
            (Mechanism::WrongPort, because)
        })
    }

    /// The VPC has no way for it.
    fn vanished(&self) -> Option<Found> {
        let is_lost = |one: &&Followed| self.is_balancers(one.place) && one.link == HOLE;
        let one = self.frames.iter().find(is_lost)?;
        let because = format!("the VPC knows no way for {}", one.packet);
        Some((self.kind_of_unroutable(one.packet.dst.ip()), because))
    }

    /// The kernel has said why it dropped something.
    fn dropped(&self) -> Option<Found> {
        self.frames.iter().find_map(|one| {
            let place = &self.places[one.place];
            let (reason, packet) = (one.reason()?, &one.packet);
            let said = |mechanism, why: &str| {
                Some((mechanism, format!("{place} drops {packet}: {reason}{why}")))
            };
            match reason {
                "IP_LOCAL_SOURCE" => {
                    said(Mechanism::LocalSourceDrop, ", the source is an address of its own")
                }
                "IP_RPFILTER" => said(Mechanism::ReversePathFilter, ""),
                "NETFILTER_DROP" => {
                    let (mechanism, why) = self.rule(one.place)?;
                    said(mechanism, &format!(", {why}"))
                }
                "NO_SOCKET" if packet.is_syn() || matches!(packet.body, Body::Udp(_)) => {
                    let is_node_port = self.is_node_port(packet.dst);
                    if is_node_port {
                        said(Mechanism::RuleMissing, ", a node port that no rule takes")
                    } else {
                        said(Mechanism::WrongPort, ", nobody listens there")
                    }
                }
                _ if self.is_unroutable(one) => said(
                    self.kind_of_unroutable(packet.dst.ip()),
                    &format!(" in {}, no way leads on", one.location().unwrap_or_default()),
                ),
                _ => None,
            }
        })
    }

    /// The rule of a place that has counted something.
    fn rule(&self, place: usize) -> Option<(Mechanism, String)> {
        let grown = self.grown.iter().filter(|one| one.place == place && !one.is_reverse_path());
        let told = |one: &Grown| {
            let mechanism = match one.chain() {
                chain if chain.starts_with("SG-") => Mechanism::SecurityGroup,
                "NO-BANDWIDTH" => Mechanism::NoBandwidth,
                "LB-NOBODY" => Mechanism::NoCandidate,
                _ if one.what.contains("endpoints\"") => Mechanism::NoEndpoint,
                _ => Mechanism::Firewall,
            };
            (mechanism, format!("{} packets met `{}`", one.by, one.what))
        };
        // The rules of nftables mode have no counters; those that only drop may mean anything.
        let in_nftables = || {
            let rejects = self.outcome == Outcome::Refused;
            if !rejects || !self.places[place].starts_with("node ") {
                return None;
            }
            let told = |mechanism, what: String| {
                let why = format!("the node's rules reject {what}; they have no counters");
                (mechanism, why)
            };
            self.at(place).find_map(|one| {
                let to = one.packet.dst;
                let no_port = || {
                    let mut all = self.cluster.services.values();
                    let service = all.find(|one| one.cluster_ips.contains(&to.ip()))?;
                    let what = format!("port {} of Service {}", to.port(), service.name);
                    Some(told(Mechanism::WrongPort, what))
                };
                let service = self.service_at(to);
                service.map(|service| told(Mechanism::NoEndpoint, service)).or_else(no_port)
            })
        };
        grown.map(told).next().or_else(in_nftables)
    }

    /// A kernel that gives no reasons still counts.
    fn counted(&self) -> Option<Found> {
        let went_on = |place| self.at(place).any(|one| one.leaves);
        let places = self.frames.iter().filter(|one| !one.leaves).map(|one| one.place);
        let ends: Vec<usize> = places.filter(|place| !went_on(*place)).collect();
        ends.into_iter().find_map(|place| {
            let filter = |one: &&Grown| one.place == place && one.is_reverse_path();
            if let Some(one) = self.grown.iter().find(filter) {
                let because = format!(
                    "the reverse-path filter of {} has taken {} packets",
                    self.places[place], one.by
                );
                return Some((Mechanism::ReversePathFilter, because));
            }
            let has_grown = self.grown.iter().any(|one| one.place == place);
            let (mechanism, why) = self.rule(place).filter(|_| has_grown)?;
            Some((mechanism, format!("at {}: {why}", self.places[place])))
        })
    }

    /// The same for a packet that ends at a place that has its source.
    fn own_source(&self) -> Option<Found> {
        let one = self.frames.iter().find(|one| {
            let went_on = || self.at(one.place).any(|other| other.leaves && other.at > one.at);
            let comes = !one.leaves && one.packet.is_syn() && one.dropped.is_none();
            comes && self.has(one.place, one.packet.src.ip()) && !went_on()
        })?;
        let because = format!(
            "{} comes to {} and ends there without a word: the source is an address of its own",
            one.packet, self.places[one.place]
        );
        Some((Mechanism::LocalSourceDrop, because))
    }

    fn bypassed(&self) -> Option<Found> {
        let is_vip = |ip: IpAddr| self.load_balancers.iter().any(|lb| lb.vip == ip);
        let mut frames = self.frames.iter();
        let reaches = frames.any(|one| self.is_balancers(one.place) && is_vip(one.packet.dst.ip()));
        (self.outcome == Outcome::TlsError && !reaches).then(|| {
            let because = "the load balancer that would end TLS never sees the connection";
            (Mechanism::TlsBypassed, because.into())
        })
    }

    /// What comes to a load balancer and goes nowhere from there.
    fn stayed_at_balancer(&self) -> Option<Found> {
        let is_vip = |ip: IpAddr| self.load_balancers.iter().any(|lb| lb.vip == ip);
        let one = self.frames.iter().find(|one| {
            self.is_balancers(one.place) && !one.leaves && is_vip(one.packet.dst.ip())
        })?;
        let went_on = self.at(one.place).any(|other| other.leaves);
        (!went_on).then(|| {
            let to = one.packet.dst;
            let because = format!("{to} is called, and the load balancer sends it to nobody");
            (Mechanism::NoCandidate, because)
        })
    }

    fn at(&self, place: usize) -> impl Iterator<Item = &Followed> {
        self.frames.iter().filter(move |one| one.place == place)
    }

    fn is_balancers(&self, place: usize) -> bool {
        matches!(&*self.places[place], "fabric" | "edge")
    }

    /// Whether a place has an address.
    fn has(&self, place: usize, ip: IpAddr) -> bool {
        let what = &self.places[place];
        let of_node = |name: &str| self.cluster.nodes.get(name).is_some_and(|n| n.has_address(ip));
        match what.split_once(' ') {
            Some(("node", name)) => of_node(name),
            Some(("pod", name)) => {
                let mut pods = self.cluster.pods.values();
                pods.any(|pod| pod.name.to_string() == name && pod.ips.contains(&ip))
            }
            _ => false,
        }
    }

    fn is_node_port(&self, to: SocketAddr) -> bool {
        self.cluster.nodes.values().any(|node| node.has_address(to.ip()))
            && self
                .cluster
                .services
                .values()
                .flat_map(|one| &one.ports)
                .any(|port| port.node_port.is_some_and(|port| port.number() == to.port()))
    }

    fn service_at(&self, to: SocketAddr) -> Option<String> {
        let fits = |one: &&uturn_model::Service| {
            let has = |port: &uturn_model::service::ServicePort| {
                one.cluster_ips.contains(&to.ip()) && port.port.number() == to.port()
                    || port.node_port.is_some_and(|port| port.number() == to.port())
            };
            one.ports.iter().any(has)
        };
        self.cluster.services.values().find(fits).map(|one| format!("Service {}", one.name))
    }

    /// Whether a packet ended where ways are looked up.
    fn is_unroutable(&self, one: &Followed) -> bool {
        let reasons = ["IP_INNOROUTES", "IP_OUTNOROUTES", "IP_INADDRERRORS"];
        let places = ["dst_discard", "ip_error", "ip_forward", "ip6_forward", "ip_rcv_finish_core"];
        one.reason().is_some_and(|reason| reasons.contains(&reason))
            || one.location().is_some_and(|location| places.contains(&location))
    }

    /// A pod that cannot be reached from another node, or anything else.
    fn kind_of_unroutable(&self, to: IpAddr) -> Mechanism {
        match self.cluster.pods.values().any(|pod| pod.ips.contains(&to)) {
            true => Mechanism::CrossNode,
            false => Mechanism::NoRoute,
        }
    }
}

impl Followed {
    fn reason(&self) -> Option<&str> {
        self.dropped.as_ref().map(|one| &*one.reason)
    }

    fn location(&self) -> Option<&str> {
        self.dropped.as_ref().map(|one| &*one.location)
    }
}
