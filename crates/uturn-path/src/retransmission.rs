//! The first packet of a connection is sent again while nobody answers it.
//!
//! A node that dropped it may have kept nothing of it: connection tracking remembers a
//! connection when its first packet leaves the node or reaches a process there. Where rules
//! threw dice on the way to the drop, the next packet throws them anew, and may get through.
//! Where the dice were remembered, each packet goes the way of the first.

use std::time::Duration;

use uturn_model::route::{Place, Step, StepKind, Way};
use uturn_model::{Evidence, Mechanism, Node, Supposition, Text};
use uturn_netfilter::{End, EndKind, IpProtocol};

use crate::engine::{Engine, WalkError};
use crate::journey::{Arrival, PacketState, Peer, Stay, Stop, add_new};
use crate::refusal;

/// When packets are sent, in seconds after the first: each time after twice the time.
const DOUBLING: [u64; 7] = [0, 1, 3, 7, 15, 31, 63];
/// The same since Linux 6.5, which begins with five equal waits.
const STEADY: [u64; 11] = [0, 1, 2, 3, 4, 5, 7, 11, 19, 35, 67];
/// The first kernel that begins so.
const FIRST_STEADY: (u16, u16) = (6, 5);
/// A share so small is none.
const NONE: f64 = 1e-12;

/// When somebody sends a first packet again.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    seconds: &'static [u64],
    /// What had to be taken for true.
    supposed: Option<Supposition>,
}

impl Pace {
    /// Of somebody who waits so long and no longer.
    pub(crate) fn within(limit: Duration) -> Self {
        let is_late = |seconds: &&u64| Duration::from_secs(**seconds) >= limit;
        let end = DOUBLING.iter().position(|one| is_late(&one)).unwrap_or(DOUBLING.len());
        Self { seconds: &DOUBLING[..end.max(1)], supposed: None }
    }

    /// Of a client.
    pub(crate) fn of(client: Peer<'_>) -> Self {
        let node = match client {
            Peer::Host(node, _) => Some(node),
            Peer::Pod(_) | Peer::Balancer(_) | Peer::Outside => None,
        };
        Self::on(node)
    }

    /// Of a process on a node, by the node's kernel.
    pub(crate) fn on(node: Option<&Node>) -> Self {
        let version = node.and_then(Node::kernel_version);
        let seconds: &[u64] = match version {
            Some(version) if version >= FIRST_STEADY => &STEADY,
            _ => &DOUBLING,
        };
        let suppose = || Supposition {
            about: "when the client sends the first packet of a connection again".into(),
            taken: "after 1, 3, 7 and more seconds".into(),
            because: "nobody says which kernel it has: since Linux 6.5 it is after 1, 2, 3, 4"
                .into(),
            settle: "kubectl get nodes -o wide".into(),
        };
        Self { seconds, supposed: version.is_none().then(suppose) }
    }

    fn after(&self, tries: usize) -> Duration {
        Duration::from_secs(self.seconds.get(tries).copied().unwrap_or(0))
    }
}

/// How often a trip's packet was sent, and why not once.
#[derive(Clone, Debug)]
pub(crate) struct Tries {
    pace: Pace,
    /// How many got lost before this one.
    lost: usize,
    /// Why they did.
    pub(crate) why: Vec<Mechanism>,
}

impl Tries {
    pub(crate) fn first(pace: Pace) -> Self {
        Self { pace, lost: 0, why: Vec::new() }
    }

    /// As if this were the first: what came before is told elsewhere.
    pub(crate) fn forgotten(&self) -> Self {
        Self::first(self.pace.clone())
    }

    /// How long after the first packet this one was sent.
    pub(crate) fn delay(&self) -> Duration {
        self.pace.after(self.lost)
    }

    /// What it rests on that there was more than one.
    pub(crate) fn supposed(&self) -> Vec<Supposition> {
        let is_late = self.lost > 0;
        self.pace.supposed.iter().filter(|_| is_late).cloned().collect()
    }

    fn left(&self) -> usize {
        self.pace.seconds.len().saturating_sub(self.lost)
    }
}

impl<'a> Engine<'a> {
    /// When a client sends again what nobody answers.
    pub(crate) fn pace(&self, client: Peer<'a>) -> Pace {
        match client {
            Peer::Pod(pod) => {
                Pace::on(pod.node.as_ref().and_then(|name| self.cluster.nodes.get(name)))
            }
            _ => Pace::of(client),
        }
    }

    /// What becomes of a packet on a node, and of those that are sent after it.
    pub(crate) fn after_dice(
        &self,
        stay: &Stay<'a>,
        ends: Vec<End>,
        trip: &PacketState,
    ) -> Result<Vec<Arrival<'a>>, WalkError> {
        let is_open = |end: &End| trip.way == Way::Out && is_sent_again(end, stay);
        let lost: f64 = ends.iter().filter(|end| is_open(end)).map(|end| end.share).sum();
        let go = |ends: Vec<End>, trip: &PacketState| -> Result<Vec<Arrival<'a>>, WalkError> {
            let mut arrivals = Vec::new();
            for end in ends {
                arrivals.extend(self.after_node(stay, end, trip.clone())?);
            }
            Ok(arrivals)
        };
        let left = trip.tries.left();
        if !(NONE..=1.0 - NONE).contains(&lost) || left < 2 {
            return go(ends, trip);
        }
        let (open, kept): (Vec<End>, Vec<End>) = ends.into_iter().partition(is_open);
        let said = open.iter().find_map(|end| end.steps.last()).map(|step| step.by.clone());
        let mut hopeless = trip.clone();
        hopeless.share *= lost.powf((left - 1) as f64);
        hopeless.tries.lost += left - 1;
        let hopeless = go(open, &hopeless)?;
        let mut why: Vec<Mechanism> = hopeless.iter().filter_map(why_lost).collect();
        why.sort_unstable();
        why.dedup();
        let mut arrivals = Vec::new();
        for more in 0..left {
            let mut later = trip.clone();
            later.share *= lost.powf(more as f64);
            if more > 0 {
                later.tries.lost += more;
                let new = why.iter().filter(|one| !trip.tries.why.contains(one));
                later.tries.why.extend(new);
                later.tries.why.sort_unstable();
                let by = said.clone().unwrap_or_else(|| Evidence::kernel("connection tracking"));
                let why = dropped_before(more, later.tries.delay());
                let step = Step::new(StepKind::Timeout, why, by).seeing(trip.packet.leg());
                later.note(Place::Node(stay.node.name.clone()), step);
            }
            arrivals.extend(go(kept.clone(), &later)?);
        }
        arrivals.extend(hopeless);
        Ok(arrivals)
    }
}

/// Whether somebody sends a packet that ended so again, and nobody remembers the first.
fn is_sent_again(end: &End, stay: &Stay<'_>) -> bool {
    let EndKind::Drop(reason) = &end.kind else { return false };
    let protocol = end.packet.protocol();
    let is_told = match stay.sent_here {
        true => refusal::of_unsent(reason).is_some(),
        false => refusal::of_drop(reason, protocol).is_some(),
    };
    end.redrawn_on_retry && protocol == IpProtocol::TCP && !is_told
}

fn why_lost(arrival: &Arrival<'_>) -> Option<Mechanism> {
    match arrival.stop {
        Stop::Lost(why) => Some(why),
        Stop::At(_) | Stop::Refused(..) | Stop::Unknown(_) => None,
    }
}

fn dropped_before(many: usize, delay: Duration) -> Text {
    let seconds = delay.as_secs();
    let (packets, them) = match many {
        1 => ("one packet".to_owned(), "it"),
        _ => (format!("{many} packets"), "them"),
    };
    format!(
        "dropped {packets} before this one and kept nothing of {them}: sent again, {seconds} s \
         after the first, it meets the dice anew"
    )
    .into()
}

/// Adds what a late answer owes to packets that were lost before.
pub(crate) fn owe(trip: &mut PacketState, mechanisms: &mut Vec<Mechanism>) {
    mechanisms.extend(&trip.tries.why);
    mechanisms.sort_unstable();
    mechanisms.dedup();
    add_new(&mut trip.supposed, trip.tries.supposed());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_less_sends_less() {
        let sent = |limit| Pace::within(Duration::from_millis(limit)).seconds.len();
        assert_eq!([400, 2000, 3000, 4000, 127_000].map(sent), [1, 2, 2, 3, 7]);
    }
}
