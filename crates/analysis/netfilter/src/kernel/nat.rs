//! Connection tracking and network address translation.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use uturn_model::route::Leg;
use uturn_model::{Assumption, Evidence, Family, IpNet, Step, StepKind, Text};

use super::Kernel;
use super::compile::Hook;
use super::walk::{OpenBranches, Tracking, Walk};
use super::xtables::StageResult;
use crate::connection::Connection;
use crate::end::DropReason;
use crate::iptables::{NatPorts, NatTo, PortRange, TableKind, Target};
use crate::packet::{Packet, Transport};

/// Which end of a connection is translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Source,
    Destination,
}

/// The largest number of addresses of a NAT range that are followed.
const MAX_ADDRESSES: usize = 256;

impl Kernel {
    /// Looks up or creates the packet's conntrack entry.
    pub(super) fn track(&self, walk: &mut Walk, known: &[Connection]) {
        // Untracked, or already tracked before it was looped back through `lo`.
        if !matches!(walk.tracking, Tracking::NotYet) {
            return;
        }
        let (packet, leg) = (&walk.packet, walk.packet.leg());
        let mut own = known.iter().filter(|connection| {
            connection.protocol == packet.connection_protocol() && connection.is_tracked()
        });
        let found = own
            .clone()
            .find(|connection| connection.original == leg)
            .map(|connection| (connection, false));
        let found = found.or_else(|| {
            let answered = own.clone().find(|connection| connection.reply == leg);
            answered.map(|connection| (connection, true))
        });
        // A refusal has the refused packet's entry from the start, however far translation had
        // come.
        let is_given = walk.from_here && packet.transport.has_entry_of_refused();
        let given = || {
            own.find_map(|connection| Some((connection, half_translated(connection, leg)?)))
                .filter(|_| is_given)
        };
        walk.tracking = match found.or_else(given) {
            Some((connection, reply)) => Tracking::Known { connection: connection.clone(), reply },
            None if begins(packet, self.state.sysctls.tcp_loose()) => Tracking::New {
                connection: Connection::untranslated(packet),
                src_settled: false,
                dst_settled: false,
                confirmed: false,
            },
            None => Tracking::Invalid,
        };
    }

    /// Translates one end of the packet: by the table `nat` for the first packet of a connection,
    /// by its conntrack entry for all others.
    pub(super) fn translate(
        &self,
        side: Side,
        walk: &mut Walk,
        open: &mut OpenBranches,
        at_limit: bool,
    ) -> StageResult {
        match &walk.tracking {
            Tracking::NotYet | Tracking::Untracked | Tracking::Invalid => StageResult::On,
            Tracking::New { .. } if is_open(side, walk) => {
                self.pass(TableKind::Nat, walk, open, at_limit)
            }
            Tracking::New { .. } => StageResult::On,
            Tracking::Known { connection, reply } => {
                let (original, answer) = (connection.original, connection.reply);
                let leg = walk.packet.leg();
                let translated = match (side, reply) {
                    // IPVS translated the destination, and will do so again.
                    (Side::Destination, false) if !connection.destination_translated() => leg,
                    (Side::Destination, false) => Leg { dst: answer.src, ..leg },
                    (Side::Source, false) => Leg { src: answer.dst, ..leg },
                    (Side::Destination, true) => Leg { dst: original.src, ..leg },
                    (Side::Source, true) => Leg { src: original.dst, ..leg },
                };
                if translated != leg {
                    let (kind, why) = if *reply {
                        (StepKind::Untranslate, "an answer: translated back, as its connection was")
                    } else {
                        (StepKind::Translate, "translated as its connection's first packet was")
                    };
                    walk.packet = walk.packet.with_leg(translated);
                    let by = Evidence::kernel(format!("connection tracking: {original}"));
                    walk.log.add(Step::new(kind, why, by).changing(leg, translated));
                }
                StageResult::On
            }
        }
    }

    /// Carries out a NAT target. If it can choose among several addresses, branches take the
    /// others.
    pub(super) fn bind(
        &self,
        target: &Target,
        why: &Text,
        by: Evidence,
        walk: &mut Walk,
        open: &mut OpenBranches,
    ) -> Result<(), DropReason> {
        let (side, (first, others), ports, random) = match target {
            Target::Dnat(to) => (Side::Destination, addresses(to, walk), to.ports, false),
            Target::Snat(to) => {
                (Side::Source, addresses(to, walk), to.ports, to.random || to.random_fully)
            }
            Target::Redirect(NatPorts { ports, .. }) => {
                (Side::Destination, (self.own_address(walk), Vec::new()), *ports, false)
            }
            Target::Masquerade(to) => {
                let own = (self.masquerade_address(walk), Vec::new());
                (Side::Source, own, to.ports, to.random || to.random_fully)
            }
            Target::Netmap(net) => {
                let before = matches!(walk.hook, Hook::Prerouting | Hook::Output);
                let (side, ip) = if before {
                    (Side::Destination, walk.packet.dst)
                } else {
                    (Side::Source, walk.packet.src)
                };
                (side, (Some(remap(ip, *net)), Vec::new()), None, false)
            }
            _ => return Ok(()),
        };
        let Some(first) = first else {
            walk.note(StepKind::Drop, format!("{why}: the interface has no address"), by);
            return Err(DropReason::Invalid);
        };
        let share = walk.share.split(others.len() + 1);
        for ip in others {
            let mut other = walk.fork();
            other.share = share;
            translate_end(&mut other, side, ip, ports, random, why, by.clone());
            // The branch continues after this stage.
            other.frames.clear();
            other.stage += 1;
            open.push(other);
        }
        walk.share = share;
        translate_end(walk, side, first, ports, random, why, by);
        match target {
            Target::Redirect(_) => self.redirected(walk),
            Target::Masquerade(_) if first.is_unspecified() => {
                walk.assume(unknown_masquerade_address());
            }
            _ => {}
        }
        Ok(())
    }

    /// The address that REDIRECT translates to.
    fn own_address(&self, walk: &Walk) -> Option<IpAddr> {
        let family = walk.packet.family();
        match (walk.hook, family) {
            (Hook::Output, Family::V4) => Some(Ipv4Addr::LOCALHOST.into()),
            (Hook::Output, Family::V6) => Some(Ipv6Addr::LOCALHOST.into()),
            _ => {
                let own = self.first_address(walk.iif.as_deref()?, family);
                own.or_else(|| self.knows_no_address().then_some(walk.packet.dst))
            }
        }
    }

    /// The address that MASQUERADE translates to.
    fn masquerade_address(&self, walk: &Walk) -> Option<IpAddr> {
        let way = walk.route.as_ref()?;
        let own = self.source_address(&way.dev, way.via, walk.packet.dst);
        own.or_else(|| {
            let unseen = match walk.packet.family() {
                Family::V4 => IpAddr::from(Ipv4Addr::UNSPECIFIED),
                Family::V6 => IpAddr::from(Ipv6Addr::UNSPECIFIED),
            };
            self.knows_no_address().then_some(unseen)
        })
    }
}

/// The assumption for MASQUERADE if the node's addresses are unknown.
fn unknown_masquerade_address() -> Assumption {
    Assumption {
        subject: "the address that MASQUERADE takes".into(),
        assumed: "one of the node, shown as unspecified".into(),
        because: "the capture has neither addr nor route".into(),
        settle: "capture ip addr as addr".into(),
    }
}

/// Moves an address to another network, keeping its host bits.
fn remap(ip: IpAddr, net: IpNet) -> IpAddr {
    match (ip, net) {
        (IpAddr::V4(ip), IpNet::V4(net)) => (ip & net.hostmask() | net.network()).into(),
        (IpAddr::V6(ip), IpNet::V6(net)) => (ip & net.hostmask() | net.network()).into(),
        _ => ip,
    }
}

/// Whether rules may still translate this end of a new connection.
pub(super) fn is_open(side: Side, walk: &Walk) -> bool {
    match &walk.tracking {
        Tracking::New { src_settled, dst_settled, .. } => match side {
            Side::Source => !src_settled,
            Side::Destination => !dst_settled,
        },
        _ => false,
    }
}

/// Marks one end of a new connection as final.
pub(super) fn settle_end(side: Side, walk: &mut Walk) {
    if let Tracking::New { src_settled, dst_settled, .. } = &mut walk.tracking {
        match side {
            Side::Source => *src_settled = true,
            Side::Destination => *dst_settled = true,
        }
    }
}

/// Whether a packet is one of a connection with some ends translated and others not yet, and whether it
/// goes the way of replies.
fn half_translated(connection: &Connection, leg: Leg) -> Option<bool> {
    let Connection { original, reply, .. } = connection;
    let goes = |src: [SocketAddr; 2], dst: [SocketAddr; 2]| {
        src.contains(&leg.src) && dst.contains(&leg.dst)
    };
    let (caller, called) = ([original.src, reply.dst], [original.dst, reply.src]);
    if goes(called, caller) { Some(true) } else { goes(caller, called).then_some(false) }
}

/// Whether a packet without a conntrack entry creates one.
fn begins(packet: &Packet, loose: bool) -> bool {
    match packet.transport {
        // A packet from the middle of a connection may create an entry, a SYN-ACK does not.
        Transport::Tcp { syn, ack, .. } => match (syn, ack) {
            (true, ack) => !ack,
            (false, _) => loose,
        },
        Transport::Udp { .. } | Transport::Sctp { .. } => true,
        Transport::Reset { .. } | Transport::IcmpError { .. } => false,
        Transport::Icmp { kind, .. } => match packet.family() {
            Family::V4 => matches!(kind, 8 | 13 | 15 | 17),
            // Conntrack ignores neighbour and router discovery; here it counts as new.
            Family::V6 => kind == 128 || kind >= 130,
        },
    }
}

/// The first address that DNAT or SNAT can choose, and all others; the packet's own if the target
/// names none.
fn addresses(to: &NatTo, walk: &Walk) -> (Option<IpAddr>, Vec<IpAddr>) {
    let destination = matches!(walk.hook, Hook::Prerouting | Hook::Output);
    let own = if destination { walk.packet.dst } else { walk.packet.src };
    let Some((first, last)) = to.addresses else { return (Some(own), Vec::new()) };
    let others = match (first, last) {
        _ if first == last => Vec::new(),
        (IpAddr::V4(first), IpAddr::V4(last)) => {
            let some = (first.to_bits()..=last.to_bits()).take(MAX_ADDRESSES).skip(1);
            some.map(|bits| Ipv4Addr::from_bits(bits).into()).collect()
        }
        (IpAddr::V6(first), IpAddr::V6(last)) => {
            let some = (first.to_bits()..=last.to_bits()).take(MAX_ADDRESSES).skip(1);
            some.map(|bits| Ipv6Addr::from_bits(bits).into()).collect()
        }
        _ => Vec::new(),
    };
    (Some(first), others)
}

fn translate_end(
    walk: &mut Walk,
    side: Side,
    ip: IpAddr,
    ports: Option<PortRange>,
    random: bool,
    why: &Text,
    by: Evidence,
) {
    let before = walk.packet.leg();
    let old = if side == Side::Source { before.src.port() } else { before.dst.port() };
    let port = match ports {
        Some(range) if !range.contains(old) => range.first,
        _ => old,
    };
    let end = SocketAddr::new(ip, port);
    let after = match side {
        Side::Source => Leg { src: end, ..before },
        Side::Destination => Leg { dst: end, ..before },
    };
    walk.packet = walk.packet.with_leg(after);
    // Ports are not kept for protocols without ports.
    let after = walk.packet.leg();
    if let Tracking::New { connection, src_settled, dst_settled, .. } = &mut walk.tracking {
        match side {
            Side::Source => (connection.reply.dst, *src_settled) = (after.src, true),
            Side::Destination => (connection.reply.src, *dst_settled) = (after.dst, true),
        }
    }
    let why: Text = if random {
        [why, " (from any free port; shown is its own)"].concat().into()
    } else {
        why.clone()
    };
    walk.log.add(Step::new(StepKind::Translate, why, by).changing(before, after));
}
