//! The virtual servers by address and by mark, and what a walk says of them.

use std::net::SocketAddr;
use std::sync::OnceLock;

use uturn_model::{Assumption, Evidence, Family, Share, Text};

use crate::hash::FastMap;
use crate::ipvs::{Picks, RealServer, VirtualAddress, VirtualServer, VirtualServers};
use crate::kernel::xtables::one_in;
use crate::packet::{IpProtocol, Packet};

/// The virtual servers by address and by mark.
#[derive(Debug)]
pub(in crate::kernel) struct VirtualServerIndex {
    by_address: FastMap<(IpProtocol, SocketAddr), usize>,
    by_mark: FastMap<(Family, u32), usize>,
    /// The texts for each virtual server, by index.
    texts: Vec<OnceLock<ServerTexts>>,
    /// The step text for a packet that was scheduled.
    pub(super) sent: Text,
}

impl VirtualServerIndex {
    pub(in crate::kernel) fn new(servers: &VirtualServers) -> Self {
        let mut all = Self {
            by_address: FastMap::default(),
            by_mark: FastMap::default(),
            texts: Vec::with_capacity(servers.0.len()),
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
            all.texts.push(OnceLock::new());
        }
        all
    }

    pub(super) fn texts(&self, at: usize, server: &VirtualServer) -> &ServerTexts {
        self.texts[at].get_or_init(|| ServerTexts::new(server))
    }

    /// The virtual server for a packet: by its mark, by its address and port, or by its address
    /// with any port.
    pub(super) fn of(&self, packet: &Packet) -> Option<usize> {
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

/// Texts for the steps of a walk about one virtual server, built on first use.
#[derive(Debug)]
pub(super) struct ServerTexts {
    pub(super) by: Evidence,
    pub(super) picks: Picks,
    pub(super) choices: Vec<Choice>,
    pub(super) supposed: Vec<Assumption>,
    /// Evidence for each real server.
    pub(super) real: Vec<Evidence>,
}

/// A real server that can be picked.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) at: usize,
    pub(super) share: Share,
    pub(super) why: Text,
}

impl ServerTexts {
    fn new(server: &VirtualServer) -> Self {
        let (picks, odds) = server.odds();
        let way = |(at, share): (usize, Share)| {
            let real = server.servers[at].address;
            let why = format!("{real} picked one time in {}", one_in(share.get()));
            Choice { at, share, why: why.into() }
        };
        let by = |real: &RealServer| Evidence::Ipvs {
            server: format!("-a {} {real}", server.at).into(),
            origin: real.origin.clone(),
        };
        Self {
            by: server.by(),
            picks,
            choices: odds.into_iter().map(way).collect(),
            supposed: assumptions(server, picks),
            real: server.servers.iter().map(by).collect(),
        }
    }
}

fn assumptions(server: &VirtualServer, picks: Picks) -> Vec<Assumption> {
    let about = format!("the scheduler {} of {}", server.scheduler, server.at);
    let suppose = |taken: &str, because: &str, settle: String| Assumption {
        subject: about.clone().into(),
        assumed: taken.into(),
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
        all.push(Assumption {
            subject: format!("persistence of {}", server.at).into(),
            assumed: "the client has not been here for longer than that".into(),
            because: "a client that has been here keeps its real server".into(),
            settle: "`ipvsadm -Lcn` on the node".into(),
        });
    }
    all
}
