//! Evaluates the matches of an iptables rule.

use std::net::{IpAddr, SocketAddr};

use uturn_model::Text;

use super::walk::{Tracking, Walk};
use super::{Kernel, partial_matches};
use crate::connection::Connection;
use crate::iptables::{
    AddrKind, AddrType, Addresses, Conntrack, CtDirection, CtState, CtStatus, IpvsMatch,
    LimitInterface, MarkMatch, Match, Not, PortRange, PortSide, Rule, Statistic,
};
use crate::packet::{IpProtocol, Transport};
use crate::state::RouteKind;

/// Whether a rule matches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Answer {
    No,
    /// All matches with a known answer hold, with these odds; those in `unknown` remain.
    Yes {
        odds: f64,
        unknown: Unknown,
    },
}

/// The matches of a rule whose answer is unknown, as a set of indices.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Unknown(u64);

impl Unknown {
    /// All indices from here on share one bit.
    const LAST: usize = 63;

    pub(super) fn is_none(self) -> bool {
        self.0 == 0
    }

    pub(super) fn has(self, place: usize) -> bool {
        self.0 >> place.min(Self::LAST) & 1 == 1
    }

    fn add(&mut self, place: usize) {
        self.0 |= 1 << place.min(Self::LAST);
    }
}

impl Kernel {
    pub(super) fn matches(&self, rule: &Rule, walk: &mut Walk) -> Answer {
        let packet = &walk.packet;
        let protocol = packet.protocol();
        let interface = |wanted: &Option<Box<Not<Text>>>, name: &Option<Text>| {
            let name = name.as_deref().unwrap_or("");
            wanted.as_ref().is_none_or(|wanted| wanted.holds(|pattern| fits(pattern, name)))
        };
        let head = rule.dst.as_ref().is_none_or(|dst| dst.holds(|net| net.contains(packet.dst)))
            && rule.src.as_ref().is_none_or(|src| src.holds(|net| net.contains(packet.src)))
            && rule.protocol.is_none_or(|wanted| wanted.holds(|wanted| *wanted == protocol))
            && interface(&rule.in_interface, &walk.iif)
            && match &rule.out_interface {
                Some(wanted) if walk.out_is_unknown() => walk.may_leave_by(wanted),
                wanted => interface(wanted, &walk.oif),
            }
            // No packet in the model is a fragment.
            && rule.fragment != Some(true);
        if !head {
            return Answer::No;
        }
        let (mut odds, mut unknown) = (1.0, Unknown::default());
        for (place, item) in rule.matches.iter().enumerate() {
            match self.match_odds(item, walk) {
                Some(some) if some <= 0.0 => return Answer::No,
                Some(some) => odds *= some,
                None => unknown.add(place),
            }
        }
        Answer::Yes { odds, unknown }
    }

    /// The probability that a match holds; `None` if that is not known.
    fn match_odds(&self, item: &Match, walk: &mut Walk) -> Option<f64> {
        let packet = &walk.packet;
        let certain = |matches: bool| Some(f64::from(u8::from(matches)));
        let ports = packet.transport.ports();
        let both = |protocol, sport: &Option<Not<PortRange>>, dport: &Option<Not<PortRange>>| {
            let matches_port = |wanted: &Option<Not<PortRange>>, port| {
                wanted.is_none_or(|wanted| wanted.holds(|range| range.contains(port)))
            };
            packet.protocol() == protocol
                && matches_port(sport, ports.0)
                && matches_port(dport, ports.1)
        };
        match item {
            Match::Comment(_) | Match::Nfacct(_) => Some(1.0),
            Match::Tcp(tcp) => {
                let flags = tcp.flags.is_none_or(|wanted| {
                    wanted.holds(|(mask, set)| tcp_flags(packet.transport) & mask == *set)
                });
                certain(both(IpProtocol::TCP, &tcp.sport, &tcp.dport) && flags)
            }
            Match::Udp(udp) => certain(both(IpProtocol::UDP, &udp.sport, &udp.dport)),
            Match::Sctp(sctp) => certain(both(IpProtocol::SCTP, &sctp.sport, &sctp.dport)),
            Match::Icmp(icmp) => {
                let protocol = if icmp.v6 { IpProtocol::ICMPV6 } else { IpProtocol::ICMP };
                let Some((kind, code)) = packet.transport.icmp() else {
                    return certain(false);
                };
                let fits = icmp.kind.is_none_or(|wanted| {
                    wanted.holds(|(k, c)| *k == kind && c.is_none_or(|c| c == code))
                });
                certain(packet.protocol() == protocol && fits)
            }
            Match::Multiport(multiport) => {
                let within = |port| multiport.ports.value.iter().any(|range| range.contains(port));
                let any = match multiport.side {
                    PortSide::Source => within(ports.0),
                    PortSide::Destination => within(ports.1),
                    PortSide::Either => within(ports.0) || within(ports.1),
                };
                let has_ports = packet.transport.icmp().is_none();
                certain(has_ports && any != multiport.ports.not)
            }
            Match::Conntrack(conntrack) => tracked(conntrack, walk),
            Match::State(states) => {
                let now = state(walk);
                certain(states.holds(|all| all.contains(&now)))
            }
            Match::AddrType(addrtype) => certain(self.addr_type(addrtype, walk)),
            Match::Mark(mark) => certain(marked(mark, packet.mark)),
            Match::Connmark(mark) => match walk.tracking.connection() {
                Some(connection) => certain(marked(mark, connection.mark)),
                None => certain(false),
            },
            Match::Statistic(Statistic::Random(odds)) => {
                let some = odds.value.odds();
                Some(if odds.not { 1.0 - some } else { some })
            }
            Match::Statistic(Statistic::Nth { not, every, .. }) => {
                let some = 1.0 / f64::from((*every).max(1));
                Some(if *not { 1.0 - some } else { some })
            }
            Match::Recent(wanted) => certain(partial_matches::recent(wanted, walk)),
            Match::Rpfilter(wanted) => certain(self.comes_from_its_way_back(*wanted, walk)),
            Match::Iprange(range) => {
                let within = |wanted: &Option<Not<(IpAddr, IpAddr)>>, ip| {
                    wanted.is_none_or(|wanted| {
                        wanted.holds(|(first, last)| (*first..=*last).contains(&ip))
                    })
                };
                certain(within(&range.src, packet.src) && within(&range.dst, packet.dst))
            }
            Match::Set(set) => self.in_set(set, walk),
            Match::Ipvs(ipvs) => certain(handled(ipvs, walk)),
            Match::Other(extension) => self.certain(extension, walk).and_then(certain),
        }
    }

    fn addr_type(&self, addrtype: &AddrType, walk: &Walk) -> bool {
        let device = match addrtype.limit {
            None => None,
            Some(LimitInterface::In) => Some(walk.iif.as_deref().unwrap_or("")),
            Some(LimitInterface::Out) => Some(walk.oif.as_deref().unwrap_or("")),
        };
        let is = |wanted: &Option<Not<Vec<AddrKind>>>, ip| {
            let Some(wanted) = wanted else { return true };
            let kind = self.kind_for(ip, device, walk);
            wanted.holds(|all| all.contains(&kind))
        };
        is(&addrtype.src, walk.packet.src) && is(&addrtype.dst, walk.packet.dst)
    }

    /// The type of an address, considering the assumptions of this branch.
    pub(super) fn kind_for(&self, ip: IpAddr, device: Option<&str>, walk: &Walk) -> AddrKind {
        match walk.notes.capture_assumptions.is_own(ip) {
            Some(true) => AddrKind::Local,
            _ => self.kind_of(ip, device),
        }
    }

    /// The type of an address on this node: only the table `local` counts.
    pub(super) fn kind_of(&self, ip: IpAddr, device: Option<&str>) -> AddrKind {
        match ip {
            IpAddr::V4(v4) if v4.octets()[0] == 0 || v4.is_broadcast() => {
                return AddrKind::Broadcast;
            }
            ip if ip.is_multicast() => return AddrKind::Multicast,
            _ => {}
        }
        let route = self.fib.local(ip);
        let here = route.filter(|route| device.is_none_or(|dev| route.dev.as_deref() == Some(dev)));
        match here.map(|route| route.kind) {
            Some(RouteKind::Local) => AddrKind::Local,
            Some(RouteKind::Broadcast) => AddrKind::Broadcast,
            Some(RouteKind::Anycast) => AddrKind::Anycast,
            Some(RouteKind::Multicast) => AddrKind::Multicast,
            Some(RouteKind::Blackhole) => AddrKind::Blackhole,
            Some(RouteKind::Unreachable) => AddrKind::Unreachable,
            Some(RouteKind::Prohibit) => AddrKind::Prohibit,
            Some(RouteKind::Throw) => AddrKind::Throw,
            Some(RouteKind::Unicast) | None => AddrKind::Unicast,
        }
    }
}

/// Whether an interface name fits a pattern; a trailing `+` matches any suffix.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('+') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}

fn marked(wanted: &MarkMatch, mark: u32) -> bool {
    (mark & wanted.mask == wanted.value) != wanted.not
}

pub(super) fn tcp_flags(transport: Transport) -> u8 {
    match transport {
        Transport::Tcp { syn, ack, .. } => match (syn, ack) {
            (true, true) => 0x12,
            (true, false) => 0x02,
            // All but the first packet carry an ACK.
            (false, _) => 0x10,
        },
        Transport::Reset { .. } => 0x14,
        _ => 0,
    }
}

pub(super) fn state(walk: &Walk) -> CtState {
    match &walk.tracking {
        Tracking::NotYet | Tracking::Invalid => CtState::Invalid,
        Tracking::Untracked => CtState::Untracked,
        Tracking::New { .. } => CtState::New,
        // A packet that a node sends because a rule refused a packet has the refused packet's
        // entry. Any other reset is a packet like all of its connection.
        tracking @ Tracking::Known { .. } => match walk.packet.transport {
            Transport::IcmpError { .. } => CtState::Related,
            Transport::Reset { by_rule: true, .. } if walk.from_here => CtState::Related,
            _ if tracking.has_seen_reply() => CtState::Established,
            // The first packet, sent again.
            _ => CtState::New,
        },
    }
}

/// Whether a connection has the protocol, addresses and ports that a match requires.
fn tuples(wanted: &Conntrack, connection: &Connection) -> bool {
    let (original, reply) = (connection.original, connection.reply);
    let net = |wanted: &Option<Not<Addresses>>, end: SocketAddr| {
        wanted.is_none_or(|wanted| wanted.holds(|net| net.contains(end.ip())))
    };
    let port = |wanted: &Option<Not<PortRange>>, end: SocketAddr| {
        wanted.is_none_or(|wanted| wanted.holds(|range| range.contains(end.port())))
    };
    wanted.protocol.is_none_or(|wanted| wanted.holds(|protocol| *protocol == connection.protocol))
        && net(&wanted.original_src, original.src)
        && net(&wanted.original_dst, original.dst)
        && net(&wanted.reply_src, reply.src)
        && net(&wanted.reply_dst, reply.dst)
        && port(&wanted.original_src_port, original.src)
        && port(&wanted.original_dst_port, original.dst)
        && port(&wanted.reply_src_port, reply.src)
        && port(&wanted.reply_dst_port, reply.dst)
}

fn tracked(wanted: &Conntrack, walk: &Walk) -> Option<f64> {
    let (no, yes) = (Some(0.0), Some(1.0));
    let tracking = &walk.tracking;
    let connection = tracking.connection();
    if let Some(states) = &wanted.states {
        let now = state(walk);
        let snat = || connection.is_some_and(|connection| connection.source_translated());
        let dnat = || connection.is_some_and(|connection| connection.destination_translated());
        let any = |all: &Vec<CtState>| {
            all.iter().any(|state| match state {
                CtState::Snat => snat(),
                CtState::Dnat => dnat(),
                state => *state == now,
            })
        };
        if !states.holds(any) {
            return no;
        }
    }
    let Some(connection) = connection else {
        return if wanted.states.is_some() { yes } else { no };
    };
    if !tuples(wanted, connection) {
        return no;
    }
    let reply = matches!(tracking, Tracking::Known { reply: true, .. });
    if wanted.direction.is_some_and(|direction| (direction == CtDirection::Reply) != reply) {
        return no;
    }
    let Some(status) = &wanted.status else { return yes };
    let certain = |holds: bool| if holds { yes } else { no };
    // `NONE` sets no status bit, so the kernel never finds it.
    let sure: &[CtStatus] = match tracking {
        Tracking::New { confirmed: false, .. } => return certain(status.not),
        tracking if !tracking.has_seen_reply() => &[CtStatus::Confirmed],
        _ => &[CtStatus::SeenReply, CtStatus::Confirmed],
    };
    match status.value.iter().any(|bit| sure.contains(bit)) {
        true => certain(!status.not),
        // Whether the entry is ASSURED depends on earlier packets.
        false if status.value.contains(&CtStatus::Assured) && sure.len() > 1 => None,
        false => certain(status.not),
    }
}

fn handled(wanted: &IpvsMatch, walk: &Walk) -> bool {
    let bare = IpvsMatch { handled: wanted.handled, ..IpvsMatch::default() };
    if *wanted == bare {
        return wanted.handled.is_none_or(|handled| handled == walk.ipvs.done);
    }
    // Only requests are found by their connection.
    let Some(request) = walk.ipvs.request.as_ref().filter(|_| walk.ipvs.done) else {
        return false;
    };
    let reply = matches!(walk.tracking, Tracking::Known { reply: true, .. });
    let tracked = walk.tracking.connection().is_some();
    let protocol = walk.packet.protocol();
    wanted.protocol.is_none_or(|wanted| wanted.holds(|candidate| *candidate == protocol))
        && wanted.address.is_none_or(|wanted| wanted.holds(|net| net.contains(request.address.ip())))
        && wanted.port.is_none_or(|wanted| wanted.holds(|port| *port == request.address.port()))
        && wanted.method.is_none_or(|wanted| wanted.holds(|method| *method == request.method))
        && wanted
            .direction
            .is_none_or(|wanted| tracked && (wanted == CtDirection::Reply) == reply)
        // No connection in the model has a controlling connection.
        && wanted.control_port.is_none_or(|wanted| wanted.not)
}
