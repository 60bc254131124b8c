//! What becomes of a packet for a port that a load balancer does not serve.

use std::net::SocketAddr;

use uturn_lb::cloud::UnservedPort;
use uturn_model::route::{Leg, Step, StepKind};
use uturn_model::{Mechanism, Outcome, ProxyMode, Supposition};

use crate::engine::Engine;
use crate::engine::walk::Walk;
use crate::error::WalkError;
use crate::packet::{Exchange, PacketState, Peer, ended};

/// What a client gets.
enum Answer {
    Refused,
    /// The node that announces the address has it, and refuses unless a program of its own listens.
    RefusedByNode,
    Dropped,
    /// The node that announces the address does not have it, and has nowhere to send the packet.
    LostAtNode,
}

impl<'a> Walk<'_, 'a> {
    pub(super) fn unserved(
        &self,
        balancer: usize,
        client: Peer<'a>,
        asked: Leg,
        mut state: PacketState,
    ) -> Result<Vec<Exchange>, WalkError> {
        let party = Peer::Balancer(balancer);
        let (place, by) = (self.engine.place(party), self.engine.by(party));
        let to = state.packet.leg().dst;
        let mut why = format!("has no listener on port {}", to.port());
        let mechanism = Some(Mechanism::WrongPort);
        let answer = self.engine.answer_at_unserved_port(balancer);
        match answer {
            Answer::Refused | Answer::Dropped => {}
            Answer::LostAtNode => why.push_str(": no node has the address itself"),
            Answer::RefusedByNode => {
                why.push_str(": it is up to the node that announces the address");
                state.supposed.push(nothing_listens(to));
            }
        }
        match answer {
            Answer::Refused | Answer::RefusedByNode => {
                state.note(place, Step::new(StepKind::Reject, why, by));
                let answer = state.answer();
                self.return_reply(party, client, asked, answer, Outcome::Refused, mechanism)
            }
            Answer::Dropped | Answer::LostAtNode => {
                state.note(place, Step::new(StepKind::Drop, why, by));
                Ok(vec![ended(state, Outcome::Hangs, mechanism)])
            }
        }
    }
}

impl Engine<'_> {
    fn answer_at_unserved_port(&self, balancer: usize) -> Answer {
        let mut listeners = self.balancers()[balancer].listeners.iter();
        let found = listeners.find_map(|listener| self.product_of(listener));
        let Some((product, service)) = found else { return Answer::Refused };
        // kube-proxy in IPVS mode has every address of a load balancer on every node.
        let proxy = &self.cluster().proxy;
        let is_bound = proxy.replaced_by().is_none() && proxy.mode.value == ProxyMode::Ipvs;
        let mut nodes = self.cluster().nodes.values();
        match product.unserved_port() {
            UnservedPort::Refused => Answer::Refused,
            UnservedPort::Dropped => Answer::Dropped,
            UnservedPort::UpToNode
                if is_bound || nodes.any(|node| product.is_held_by(service, node)) =>
            {
                Answer::RefusedByNode
            }
            UnservedPort::UpToNode => Answer::LostAtNode,
        }
    }
}

fn nothing_listens(at: SocketAddr) -> Supposition {
    Supposition {
        about: format!("programs on the node that announces {}", at.ip()).into(),
        taken: format!("none listens on port {}", at.port()).into(),
        because: "the node has the address itself, and no object says what runs on it".into(),
        settle: "ss -ltn on the node".into(),
    }
}
