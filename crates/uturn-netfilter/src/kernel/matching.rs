//! Whether a rule matches a packet.

use std::net::IpAddr;

use uturn_model::{Supposition, Text};

use super::Kernel;
use super::walk::{Tracking, Walk};
use crate::iptables::{
    AddrKind, AddrType, Conntrack, CtDirection, CtState, CtStatus, LimitInterface, MarkMatch,
    Match, Not, PortRange, PortSide, Recent, RecentAction, Rule, Statistic,
};
use crate::packet::{IpProtocol, Transport};
use crate::state::RouteKind;

/// What a rule's matches say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Answer {
    No,
    /// It matches, at these odds; `unmodelled` says that some match is one that nobody
    /// models, and that all others agree.
    Yes {
        odds: f64,
        unmodelled: bool,
    },
}

impl Kernel {
    pub(super) fn matches(&self, rule: &Rule, walk: &mut Walk) -> Answer {
        let packet = &walk.packet;
        let protocol = packet.protocol();
        let interface = |wanted: &Option<Not<Text>>, name: &Option<Text>| {
            let name = name.as_deref().unwrap_or("");
            wanted.as_ref().is_none_or(|wanted| wanted.holds(|pattern| fits(pattern, name)))
        };
        let head = rule.dst.is_none_or(|dst| dst.holds(|net| net.contains(packet.dst)))
            && rule.src.is_none_or(|src| src.holds(|net| net.contains(packet.src)))
            && rule.protocol.is_none_or(|wanted| wanted.holds(|wanted| *wanted == protocol))
            && interface(&rule.in_interface, &walk.iif)
            && interface(&rule.out_interface, &walk.oif)
            // No packet that is walked is a fragment.
            && rule.fragment != Some(true);
        if !head {
            return Answer::No;
        }
        let (mut odds, mut unmodelled) = (1.0, false);
        for one in &rule.matches {
            match self.one(one, walk) {
                Some(some) if some <= 0.0 => return Answer::No,
                Some(some) => odds *= some,
                None => unmodelled = true,
            }
        }
        Answer::Yes { odds, unmodelled }
    }

    /// The odds that one match matches; none where nobody models it.
    fn one(&self, one: &Match, walk: &mut Walk) -> Option<f64> {
        let packet = &walk.packet;
        let certain = |matches: bool| Some(f64::from(u8::from(matches)));
        let ports = packet.transport.ports();
        let both = |protocol, sport: &Option<Not<PortRange>>, dport: &Option<Not<PortRange>>| {
            let one = |wanted: &Option<Not<PortRange>>, port| {
                wanted.is_none_or(|wanted| wanted.holds(|range| range.contains(port)))
            };
            packet.protocol() == protocol && one(sport, ports.0) && one(dport, ports.1)
        };
        match one {
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
                let Transport::Icmp { kind, code } = packet.transport else {
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
                let has_ports = !matches!(packet.transport, Transport::Icmp { .. });
                certain(has_ports && any != multiport.ports.not)
            }
            Match::Conntrack(conntrack) => tracked(conntrack, &walk.tracking),
            Match::State(states) => {
                let now = state(&walk.tracking);
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
            Match::Recent(recent) => {
                let found = recent.action.holds(|action| *action == RecentAction::Set);
                if recent.action.value != RecentAction::Set {
                    walk.suppose(empty_list(recent));
                }
                certain(found)
            }
            Match::Iprange(range) => {
                let within = |wanted: &Option<Not<(IpAddr, IpAddr)>>, ip| {
                    wanted.is_none_or(|wanted| {
                        wanted.holds(|(first, last)| (*first..=*last).contains(&ip))
                    })
                };
                certain(within(&range.src, packet.src) && within(&range.dst, packet.dst))
            }
            Match::Other(_) => None,
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
            let kind = self.kind_of(ip, device);
            wanted.holds(|all| all.contains(&kind))
        };
        is(&addrtype.src, walk.packet.src) && is(&addrtype.dst, walk.packet.dst)
    }

    /// What an address is to this node: only the table `local` is asked.
    fn kind_of(&self, ip: IpAddr, device: Option<&str>) -> AddrKind {
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

/// Whether an interface has the name that a rule wants; a `+` at the end takes any rest.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('+') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}

fn marked(wanted: &MarkMatch, mark: u32) -> bool {
    (mark & wanted.mask == wanted.value) != wanted.not
}

fn tcp_flags(transport: Transport) -> u8 {
    match transport {
        Transport::Tcp { syn, ack, .. } => match (syn, ack) {
            (true, true) => 0x12,
            (true, false) => 0x02,
            // All but the first packet carry an acknowledgement.
            (false, _) => 0x10,
        },
        _ => 0,
    }
}

fn state(tracking: &Tracking) -> CtState {
    match tracking {
        Tracking::NotYet | Tracking::Invalid => CtState::Invalid,
        Tracking::Untracked => CtState::Untracked,
        Tracking::New { .. } => CtState::New,
        Tracking::Known { .. } => CtState::Established,
    }
}

fn tracked(wanted: &Conntrack, tracking: &Tracking) -> Option<f64> {
    let (no, yes) = (Some(0.0), Some(1.0));
    let connection = tracking.connection();
    if let Some(states) = &wanted.states {
        let now = state(tracking);
        let snat = connection.is_some_and(|one| one.source_translated());
        let dnat = connection.is_some_and(|one| one.destination_translated());
        let any = |all: &Vec<CtState>| {
            all.contains(&now)
                || (snat && all.contains(&CtState::Snat))
                || (dnat && all.contains(&CtState::Dnat))
        };
        if !states.holds(any) {
            return no;
        }
    }
    if connection.is_none() {
        return if wanted.states.is_some() { yes } else { no };
    }
    let reply = matches!(tracking, Tracking::Known { reply: true, .. });
    if wanted.direction.is_some_and(|direction| (direction == CtDirection::Reply) != reply) {
        return no;
    }
    let Some(status) = &wanted.status else { return yes };
    let certain = |holds: bool| if holds { yes } else { no };
    // `NONE` asks for no bit at all, so the kernel never finds it.
    let sure: &[CtStatus] = match tracking {
        Tracking::New { confirmed: false, .. } => return certain(status.not),
        Tracking::New { .. } => &[CtStatus::Confirmed],
        _ => &[CtStatus::SeenReply, CtStatus::Confirmed],
    };
    match status.value.iter().any(|one| sure.contains(one)) {
        true => certain(!status.not),
        // Whether it is ASSURED depends on what came before.
        false if status.value.contains(&CtStatus::Assured) && sure.len() > 1 => None,
        false => certain(status.not),
    }
}

fn empty_list(recent: &Recent) -> Supposition {
    Supposition {
        about: format!("the list {} of -m recent", recent.name).into(),
        taken: "the packet's address is not on it".into(),
        because: "a client's first connection comes before any entry".into(),
        settle: format!("/proc/net/xt_recent/{} on the node", recent.name).into(),
    }
}
