//! The end of a packet for a port that a load balancer does not serve.

use std::net::SocketAddr;

use uturn_clouds::unserved::Unserved;
use uturn_model::route::{Step, StepKind};
use uturn_model::{Assumption, LoadBalancer, Mechanism, Outcome};

use super::super::return_reply;
use crate::engine::walk::Walk;
use crate::error::WalkError;
use crate::packet::{Call, Exchange, PacketState, Peer, ended};

/// Returns the end of the packet: it is refused or dropped, as the load balancer's product does.
pub(super) fn end(
    walk: &Walk<'_, '_>,
    balancer: &LoadBalancer,
    call: &Call<'_>,
    mut state: PacketState,
) -> Result<Vec<Exchange>, WalkError> {
    let party = Peer::Balancer(balancer);
    let (place, by) = (party.place(), party.evidence(walk.cluster));
    let to = state.packet.leg().dst;
    let mut why = format!("has no listener on port {}", to.port());
    let mechanism = Some(Mechanism::WrongPort);
    let unserved = Unserved::of(walk.engine.cluster(), balancer);
    match unserved {
        Unserved::Refused | Unserved::Dropped => {}
        Unserved::LostAtNode => why.push_str(": no node has the address itself"),
        Unserved::RefusedByNode => {
            why.push_str(": it is up to the node that announces the address");
            state.supposed.push(nothing_listens(to));
        }
    }
    if unserved.is_silent() {
        state.note(place, Step::new(StepKind::Drop, why, by));
        return Ok(vec![ended(state, Outcome::Hangs, mechanism)]);
    }
    state.note(place, Step::new(StepKind::Reject, why, by));
    let answer = state.answer();
    return_reply(walk, party, call, answer, Outcome::Refused, mechanism)
}

fn nothing_listens(at: SocketAddr) -> Assumption {
    Assumption {
        subject: format!("programs on the node that announces {}", at.ip()).into(),
        assumed: format!("none listens on port {}", at.port()).into(),
        because: "the node has the address itself, and no object says what runs on it".into(),
        settle: "ss -ltn on the node".into(),
    }
}
