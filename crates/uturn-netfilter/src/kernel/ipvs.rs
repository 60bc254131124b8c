//! IPVS: what it does with a packet in its three hooks.
//!
//! In INPUT and OUTPUT it first looks for answers of real servers, then for requests to
//! virtual ones; in FORWARD for answers only. So a forwarded request is never scheduled,
//! and one made on the node always is, whether the virtual address is bound or not. A
//! scheduled request that leaves the node goes through all of OUTPUT, with its new
//! destination, and on to POSTROUTING.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::OnceLock;

use uturn_model::route::Leg;
use uturn_model::{By, Family, Origin, Step, StepKind, Supposition, Text};

use super::Kernel;
use super::compile::Hook;
use super::fib::Query;
use super::route::Routed;
use super::walk::{OpenWays, Tracking, Walk};
use crate::hash::FastMap;
use crate::ipvs::{Forwarding, Picks, RealServer, VirtualAddress, VirtualServer, VirtualServers};
use crate::packet::{
    Connection, DropReason, EndKind, IpProtocol, Packet, RejectWith, Scheduled, Transport,
};
use crate::state::RouteKind;

/// Virtual servers by what they take.
#[derive(Debug)]
pub(super) struct Virtual {
    by_address: FastMap<(IpProtocol, SocketAddr), usize>,
    by_mark: FastMap<(Family, u32), usize>,
    /// What is said of each, in their order.
    said: Vec<OnceLock<Said>>,
    /// What is said of a packet that one of them took.
    sent: Text,
}

/// What is said of a virtual server in steps, made when it is first needed.
#[derive(Debug)]
struct Said {
    by: By,
    picks: Picks,
    ways: Vec<Way>,
    supposed: Vec<Supposition>,
    /// Of each real server.
    real: Vec<By>,
}

/// A real server that can be picked.
#[derive(Debug)]
struct Way {
    at: usize,
    share: f64,
    why: Text,
}

impl Said {
    fn new(server: &VirtualServer) -> Self {
        let (picks, odds) = server.odds();
        let way = |(at, share): (usize, f64)| {
            let real = server.servers[at].address;
            let why = format!("{real} picked one time in {}", super::tables::one_in(share));
            Way { at, share, why: why.into() }
        };
        let by =
            |real: &RealServer| By::new(format!("-a {} {real}", server.at), real.origin.clone());
        Self {
            by: server.by(),
            picks,
            ways: odds.into_iter().map(way).collect(),
            supposed: suppositions(server, picks),
            real: server.servers.iter().map(by).collect(),
        }
    }
}

impl Virtual {
    pub(super) fn new(servers: &VirtualServers) -> Self {
        let mut all = Self {
            by_address: FastMap::default(),
            by_mark: FastMap::default(),
            said: Vec::with_capacity(servers.0.len()),
            sent: "sent to a real server".into(),
        };
        for (at, server) in servers.0.iter().enumerate() {
            match server.at {
                VirtualAddress::Address { protocol, address } => {
                    all.by_address.insert((protocol.into(), address), at);
                }
                VirtualAddress::Mark { mark, family } => {
                    all.by_mark.insert((family, mark), at);
                }
            }
            all.said.push(OnceLock::new());
        }
        all
    }

    fn said(&self, at: usize, server: &VirtualServer) -> &Said {
        self.said[at].get_or_init(|| Said::new(server))
    }

    /// The virtual server that takes a packet: by its mark, by its address, by its address
    /// with any port.
    fn of(&self, packet: &Packet) -> Option<usize> {
        let marked = || self.by_mark.get(&(packet.family(), packet.mark));
        let protocol = packet.protocol();
        let dst = packet.leg().dst;
        let any = SocketAddr::new(dst.ip(), 0);
        let found = Some(packet.mark).filter(|mark| *mark > 0).and_then(|_| marked());
        found
            .or_else(|| self.by_address.get(&(protocol, dst)))
            .or_else(|| self.by_address.get(&(protocol, any)))
            .copied()
    }
}

/// What IPVS has done with a packet so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Handled {
    /// It had its turn: no hook of IPVS looks at the packet again.
    pub(super) done: bool,
    /// The real server that this copy of the walk is to take.
    pick: Option<usize>,
    /// The packet as a request.
    pub(super) request: Option<Rc<Scheduled>>,
    /// What IPVS remembers of a connection that nobody else does.
    pub(super) untracked: Option<Rc<Connection>>,
}

impl Kernel {
    /// An answer of a real server gets the virtual address as its source.
    pub(super) fn answer_virtual(
        &self,
        walk: &mut Walk,
        known: &[Connection],
        open: &mut OpenWays,
    ) -> Routed {
        let leg = walk.packet.leg();
        let protocol = walk.packet.protocol();
        let found = known.iter().filter(|one| one.protocol == protocol).find_map(|one| {
            let scheduled = one.scheduled.as_ref()?;
            let answers = scheduled.method == Forwarding::Masquerade
                && (scheduled.real, scheduled.client) == (leg.src, leg.dst);
            answers.then_some(scheduled)
        });
        let Some(scheduled) = found.filter(|_| !walk.ipvs.done) else {
            walk.stage += 1;
            return Ok(());
        };
        let after = Leg { src: scheduled.address, ..leg };
        walk.packet = walk.packet.with_leg(after);
        let why = "an answer of a real server: it gets the virtual server's address";
        let by = By::kernel(format!("IPVS: {} → {}", scheduled.address, scheduled.real));
        walk.trail.add(Step::new(StepKind::Untranslate, why, by).changing(leg, after));
        walk.ipvs.done = true;
        if !scheduled.tracked {
            walk.tracking = Tracking::Untracked;
        }
        // Its new source may call for another way.
        if walk.hook != Hook::Input && self.fib.custom && self.state.sysctls.ipvs_snat_reroute() {
            self.route_again(walk, open)?;
        }
        walk.stage += 1;
        Ok(())
    }

    /// A request to a virtual server goes to one of its real servers.
    pub(super) fn schedule(
        &self,
        walk: &mut Walk,
        known: &[Connection],
        open: &mut OpenWays,
    ) -> Routed {
        let leg = walk.packet.leg();
        let protocol = walk.packet.protocol();
        let carried = matches!(protocol, IpProtocol::TCP | IpProtocol::UDP | IpProtocol::SCTP);
        if walk.ipvs.done || !carried || self.state.ipvs.0.is_empty() && known.is_empty() {
            walk.stage += 1;
            return Ok(());
        }
        let before = known.iter().filter(|one| one.protocol == protocol).find_map(|one| {
            let scheduled = one.scheduled.as_ref()?;
            ((scheduled.client, scheduled.address) == (leg.src, leg.dst)).then_some(scheduled)
        });
        if let Some(before) = before {
            let by = By::kernel(format!("IPVS: {} → {}", before.address, before.real));
            let why = "scheduled as its connection's first packet was";
            return self.send(walk, before.clone(), why.into(), by, open);
        }
        let begins = match walk.packet.transport {
            Transport::Tcp { syn, .. } => syn || self.state.sysctls.ipvs_sloppy_tcp(),
            _ => true,
        };
        let Some(at) = self.servers.of(&walk.packet).filter(|_| begins) else {
            walk.stage += 1;
            return Ok(());
        };
        let server = &self.state.ipvs.0[at];
        let said = self.servers.said(at, server);
        let picked = match walk.ipvs.pick {
            Some(picked) => picked,
            None => match pick(server, said, walk, known, open) {
                Some(picked) => picked,
                None => {
                    walk.note(
                        StepKind::Reject,
                        "the virtual server has no real server",
                        said.by.clone(),
                    );
                    let with = RejectWith::usual(walk.packet.family());
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
        self.send(walk, scheduled, self.servers.sent.clone(), said.real[picked].clone(), open)
    }

    /// Sends a request to its real server, by the server's method.
    fn send(
        &self,
        walk: &mut Walk,
        scheduled: Scheduled,
        why: Text,
        by: By,
        open: &mut OpenWays,
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
                walk.trail.add(Step::new(StepKind::Translate, why, by).changing(before, after));
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
                return Err(walk.dropped(DropReason::MartianDestination, why, habit()));
            }
            if !came_in {
                self.take(walk, route);
            }
            walk.stage += 1;
            return Ok(());
        }
        if src.is_loopback() {
            let why = format!("a packet from {src} may not leave the node");
            return Err(walk.dropped(DropReason::MartianSource, why, habit()));
        }
        // Without translation, the real server itself is the next hop.
        let hop = Some(real.ip()).filter(|_| method != Forwarding::Masquerade);
        if method == Forwarding::Tunnel {
            // What is around the packet is another packet, and meets rules of its own.
            self.take(walk, route);
            if let Some(way) = &mut walk.way {
                way.via = way.via.or(hop);
            }
            walk.in_tunnel();
            return Err(EndKind::Forward);
        }
        self.spread(walk, route, equals, open, |walk| {
            walk.iif = None;
            walk.before = walk.packet;
            if let Some(way) = &mut walk.way {
                way.via = way.via.or(hop);
                walk.oif = Some(way.dev.clone());
            }
            walk.enter(Hook::Output);
        });
        Ok(())
    }

    /// What connection tracking, or IPVS alone, remembers of a scheduled packet.
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
                }));
            }
        }
    }
}

impl Walk {
    fn in_tunnel(&mut self) {
        self.suppose(Supposition {
            about: "the packet around one in a tunnel".into(),
            taken: "the node's rules let it pass".into(),
            because: "nobody models packets in packets".into(),
            settle: "the counters of rules for the protocol ipencap on the node".into(),
        });
    }
}

/// Which real server; copies of the walk take the others.
fn pick(
    server: &VirtualServer,
    said: &Said,
    walk: &mut Walk,
    known: &[Connection],
    open: &mut OpenWays,
) -> Option<usize> {
    // Only a virtual server whose clients keep their real server can be for any port.
    let any_port = matches!(server.at, VirtualAddress::Address { .. })
        && server.at.port().is_none()
        && server.persistence.is_none();
    if any_port {
        return None;
    }
    if let Some(kept) = kept(server, walk, known) {
        let why = "the real server that this client had before";
        walk.note(StepKind::Balance, why, said.by.clone());
        return Some(kept);
    }
    let (first, others) = said.ways.split_first()?;
    if !others.is_empty() {
        for one in &said.supposed {
            walk.suppose(one.clone());
        }
        if said.picks == Picks::Unknown {
            let why = format!("nobody models the scheduler {}: as if in turns", server.scheduler);
            walk.meet_unknown(why, said.by.clone());
        }
    }
    let whole = walk.share;
    let take = |walk: &mut Walk, way: &Way| {
        walk.share = whole * way.share;
        walk.ipvs.pick = Some(way.at);
        if way.share < 1.0 {
            walk.note(StepKind::Balance, way.why.clone(), said.by.clone());
        }
    };
    for other in others {
        let mut copy = walk.fork();
        take(&mut copy, other);
        open.push(copy);
    }
    take(walk, first);
    Some(first.at)
}

/// The real server that a client keeps.
fn kept(server: &VirtualServer, walk: &Walk, known: &[Connection]) -> Option<usize> {
    let persistence = server.persistence?;
    let leg = walk.packet.leg();
    let net = |ip| uturn_model::IpNet::new(ip, persistence.prefix).ok().map(|net| net.trunc());
    let mut earlier = known.iter().filter_map(|one| one.scheduled.as_ref());
    let found = earlier.find(|one| {
        one.address == leg.dst && net(one.client.ip()) == net(leg.src.ip()) && one.client != leg.src
    })?;
    server.servers.iter().position(|real| {
        real.address == found.real
            || (real.address.port(), real.address.ip()) == (0, found.real.ip())
    })
}

fn suppositions(server: &VirtualServer, picks: Picks) -> Vec<Supposition> {
    let about = format!("the scheduler {} of {}", server.scheduler, server.at);
    let suppose = |taken: &str, because: &str, settle: String| Supposition {
        about: about.clone().into(),
        taken: taken.into(),
        because: because.into(),
        settle: settle.into(),
    };
    let counts = "`ipvsadm -Ln` on the node shows the connections of each real server".to_owned();
    let tries = "connections of several clients from several addresses".to_owned();
    let mut all = match picks {
        Picks::Turns | Picks::First | Picks::Unknown => Vec::new(),
        Picks::ByLoad => vec![suppose(
            "real servers are about equally busy",
            "the share of each depends on the connections it has",
            counts,
        )],
        Picks::ByClient => vec![suppose(
            "every real server is as likely as its weight",
            "a client always gets the same one, and which is not known",
            tries,
        )],
        Picks::ByDestination => vec![suppose(
            "every real server is as likely",
            "this address always gets the same one, and which is not known",
            counts,
        )],
    };
    if server.persistence.is_some() {
        all.push(Supposition {
            about: format!("persistence of {}", server.at).into(),
            taken: "the client has not been here for longer than that".into(),
            because: "a client that has been here keeps its real server".into(),
            settle: "`ipvsadm -Lcn` on the node".into(),
        });
    }
    all
}

fn habit() -> By {
    By::new("IPVS: no way between loopback and other addresses", Origin::Kernel)
}
