//! IPVS: how its three hooks treat a packet.
//!
//! In INPUT and OUTPUT it first looks for replies of real servers, then for requests to virtual
//! servers; in FORWARD for replies only. So a request that the node forwards is never scheduled,
//! and one made on the node always is, whether the virtual address is bound or not. A scheduled
//! request that leaves the node traverses all of OUTPUT with its new destination, then
//! POSTROUTING.

mod index;
mod pick;

use std::net::SocketAddr;
use std::rc::Rc;

use uturn_model::route::Leg;
use uturn_model::{Assumption, Evidence, Step, StepKind, Text};

pub(super) use self::index::VirtualServerIndex;
use self::pick::pick;
use super::Kernel;
use super::compile::Hook;
use super::fib::Query;
use super::route::Routed;
use super::walk::{OpenBranches, Tracking, Walk};
use crate::connection::{Connection, Scheduled};
use crate::end::{DropReason, EndKind, RejectWith};
use crate::ipvs::Forwarding;
use crate::packet::{IpProtocol, Transport};
use crate::state::RouteKind;

impl Kernel {
    /// Rewrites the source of a real server's reply to the virtual address.
    pub(super) fn answer_virtual(
        &self,
        walk: &mut Walk,
        known: &[Connection],
        open: &mut OpenBranches,
    ) -> Routed {
        let leg = walk.packet.leg();
        let protocol = walk.packet.connection_protocol();
        let found = known.iter().filter(|connection| connection.protocol == protocol).find_map(
            |connection| {
                let scheduled = connection.scheduled.as_ref()?;
                let answers = scheduled.method == Forwarding::Masquerade
                    && (scheduled.real, scheduled.client) == (leg.src, leg.dst);
                answers.then_some(scheduled)
            },
        );
        let Some(scheduled) = found.filter(|_| !walk.ipvs.done) else {
            walk.stage += 1;
            return Ok(());
        };
        let after = Leg { src: scheduled.address, ..leg };
        walk.packet = walk.packet.with_leg(after);
        let why = "an answer of a real server: it gets the virtual server's address";
        let by = Evidence::kernel(format!("IPVS: {} → {}", scheduled.address, scheduled.real));
        walk.log.add(Step::new(StepKind::Untranslate, why, by).changing(leg, after));
        walk.ipvs.done = true;
        if !scheduled.tracked {
            walk.tracking = Tracking::Untracked;
        }
        // The new source may select another route.
        if walk.hook != Hook::Input && self.fib.custom && self.state.sysctls.ipvs_snat_reroute() {
            self.route_again(walk, open)?;
        }
        walk.stage += 1;
        Ok(())
    }

    /// Schedules a request to a virtual server to one of its real servers.
    pub(super) fn schedule(
        &self,
        walk: &mut Walk,
        known: &[Connection],
        open: &mut OpenBranches,
    ) -> Routed {
        let leg = walk.packet.leg();
        let protocol = walk.packet.protocol();
        let carried = matches!(protocol, IpProtocol::TCP | IpProtocol::UDP | IpProtocol::SCTP);
        if walk.ipvs.done || !carried || self.state.ipvs.0.is_empty() && known.is_empty() {
            walk.stage += 1;
            return Ok(());
        }
        let before = known.iter().filter(|connection| connection.protocol == protocol).find_map(
            |connection| {
                let scheduled = connection.scheduled.as_ref()?;
                ((scheduled.client, scheduled.address) == (leg.src, leg.dst)).then_some(scheduled)
            },
        );
        if let Some(before) = before {
            let by = Evidence::kernel(format!("IPVS: {} → {}", before.address, before.real));
            let why = "scheduled as its connection's first packet was";
            return self.send(walk, before.clone(), why.into(), by, open);
        }
        let begins = match walk.packet.transport {
            Transport::Reset { .. } => false,
            Transport::Tcp { syn, .. } => syn || self.state.sysctls.ipvs_sloppy_tcp(),
            _ => true,
        };
        let Some(at) = self.servers.of(&walk.packet).filter(|_| begins) else {
            walk.stage += 1;
            return Ok(());
        };
        let server = &self.state.ipvs.0[at];
        let texts = self.servers.texts(at, server);
        let picked = match walk.ipvs.pick {
            Some(picked) => picked,
            None => match pick(server, texts, walk, known, open) {
                Some(picked) => picked,
                None => {
                    walk.note(
                        StepKind::Reject,
                        "the virtual server has no real server",
                        texts.by.clone(),
                    );
                    let with = RejectWith::default_for(walk.packet.family());
                    return Err(EndKind::Reject(with));
                }
            },
        };
        let real = &server.servers[picked];
        let port = if real.address.port() == 0 { leg.dst.port() } else { real.address.port() };
        let scheduled = Scheduled {
            client: leg.src,
            address: leg.dst,
            real: SocketAddr::new(real.address.ip(), port),
            method: real.method,
            tracked: self.state.sysctls.ipvs_conntrack() && walk.tracking.connection().is_some(),
        };
        self.send(walk, scheduled, self.servers.sent.clone(), texts.real[picked].clone(), open)
    }

    /// Forwards a request to its real server, by the server's forwarding method.
    fn send(
        &self,
        walk: &mut Walk,
        scheduled: Scheduled,
        why: Text,
        by: Evidence,
        open: &mut OpenBranches,
    ) -> Routed {
        let (before, real) = (walk.packet.leg(), scheduled.real);
        let (method, came_in) = (scheduled.method, walk.hook == Hook::Input);
        walk.ipvs.done = true;
        self.remember(walk, &scheduled);
        walk.ipvs.request = Some(Rc::new(scheduled));
        match method {
            Forwarding::Masquerade => {
                let after = Leg { dst: real, ..before };
                walk.packet = walk.packet.with_leg(after);
                walk.log.add(Step::new(StepKind::Translate, why, by).changing(before, after));
            }
            Forwarding::Direct => {
                walk.note(StepKind::Balance, format!("{why} as it is: {}", real.ip()), by);
            }
            Forwarding::Tunnel => {
                walk.note(StepKind::Balance, format!("{why} in a tunnel: {}", real.ip()), by);
            }
        }
        let query = Query {
            src: None,
            dst: real.ip(),
            iif: "lo",
            oif: None,
            mark: 0,
            transport: None,
            from_here: false,
        };
        let (route, equals) = self.ask(walk, query, None)?;
        let src = walk.packet.src;
        if matches!(route.kind, RouteKind::Local | RouteKind::Broadcast | RouteKind::Anycast) {
            let loops = real.ip().is_loopback() && real.ip().is_ipv4() && came_in;
            if loops && method == Forwarding::Masquerade {
                let why = format!("a packet from outside may not go to {}", real.ip());
                return Err(walk.dropped(DropReason::MartianDestination, why, kernel_behaviour()));
            }
            if !came_in {
                self.take(walk, route);
            }
            walk.stage += 1;
            return Ok(());
        }
        if src.is_loopback() {
            let why = format!("a packet from {src} may not leave the node");
            return Err(walk.dropped(DropReason::MartianSource, why, kernel_behaviour()));
        }
        // Without NAT, the real server itself is the next hop.
        let hop = Some(real.ip()).filter(|_| method != Forwarding::Masquerade);
        if method == Forwarding::Tunnel {
            // The outer packet traverses the rules on its own.
            self.take(walk, route);
            if let Some(way) = &mut walk.route {
                way.via = way.via.or(hop);
            }
            walk.in_tunnel();
            return Err(EndKind::Forward);
        }
        self.branch_over_routes(walk, route, equals, open, |walk| {
            walk.iif = None;
            walk.before = walk.packet;
            if let Some(way) = &mut walk.route {
                way.via = way.via.or(hop);
                walk.oif = Some(way.dev.clone());
            }
            walk.enter(Hook::Output);
        });
        Ok(())
    }

    /// Records a scheduled packet in conntrack, or in IPVS alone.
    fn remember(&self, walk: &mut Walk, scheduled: &Scheduled) {
        let real = scheduled.real;
        let answered =
            if scheduled.method == Forwarding::Masquerade { real } else { scheduled.address };
        match &mut walk.tracking {
            Tracking::New { connection, .. } if scheduled.tracked => {
                connection.reply.src = answered;
                connection.scheduled = Some(scheduled.clone());
            }
            Tracking::Known { .. } if scheduled.tracked => {}
            _ => {
                walk.tracking = Tracking::Untracked;
                let leg = Leg { src: scheduled.client, dst: scheduled.address };
                walk.ipvs.untracked = Some(Rc::new(Connection {
                    protocol: walk.packet.protocol(),
                    original: leg,
                    reply: Leg { src: answered, dst: scheduled.client },
                    mark: 0,
                    scheduled: Some(scheduled.clone()),
                    seen_reply: false,
                }));
            }
        }
    }
}

impl Walk {
    fn in_tunnel(&mut self) {
        self.assume(Assumption {
            subject: "the packet around one in a tunnel".into(),
            assumed: "the node's rules let it pass".into(),
            because: "encapsulated packets are not modelled".into(),
            settle: "the counters of rules for the protocol ipencap on the node".into(),
        });
    }
}

fn kernel_behaviour() -> Evidence {
    Evidence::kernel("IPVS: no way between loopback and other addresses")
}
