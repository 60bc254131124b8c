//! Which real server a request goes to.

use uturn_model::{IpNet, Share, StepKind};

use super::index::{Choice, ServerTexts};
use crate::connection::Connection;
use crate::ipvs::{Picks, VirtualAddress, VirtualServer};
use crate::kernel::walk::{OpenBranches, Walk};

/// Picks a real server; branches pick the others.
pub(super) fn pick(
    server: &VirtualServer,
    texts: &ServerTexts,
    walk: &mut Walk,
    known: &[Connection],
    open: &mut OpenBranches,
) -> Option<usize> {
    // Only a persistent virtual server can accept any port.
    let any_port = matches!(server.at, VirtualAddress::Address { .. })
        && server.at.port().is_none()
        && server.persistence.is_none();
    if any_port {
        return None;
    }
    if let Some(kept) = kept(server, walk, known) {
        let why = "the real server that this client had before";
        walk.note(StepKind::Balance, why, texts.by.clone());
        return Some(kept);
    }
    let (first, others) = texts.choices.split_first()?;
    if !others.is_empty() {
        for assumption in &texts.supposed {
            walk.assume(assumption.clone());
        }
        if texts.picks == Picks::Unknown {
            let why =
                format!("the scheduler {} is not modelled: as if round robin", server.scheduler);
            walk.note_unknown(why, texts.by.clone());
        }
    }
    let whole = walk.share;
    let take = |walk: &mut Walk, way: &Choice| {
        walk.share = whole * way.share;
        walk.ipvs.pick = Some(way.at);
        if way.share < Share::ALL {
            walk.note(StepKind::Balance, way.why.clone(), texts.by.clone());
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

/// The real server that a persistent client keeps.
fn kept(server: &VirtualServer, walk: &Walk, known: &[Connection]) -> Option<usize> {
    let persistence = server.persistence?;
    let leg = walk.packet.leg();
    let net = |ip| IpNet::new(ip, persistence.prefix).ok().map(|net| net.trunc());
    let mut earlier = known.iter().filter_map(|connection| connection.scheduled.as_ref());
    let found = earlier.find(|earlier_request| {
        earlier_request.address == leg.dst
            && net(earlier_request.client.ip()) == net(leg.src.ip())
            && earlier_request.client != leg.src
    })?;
    server.servers.iter().position(|real| {
        real.address == found.real
            || (real.address.port(), real.address.ip()) == (0, found.real.ip())
    })
}
