//! The times at which the first packet of a connection is retransmitted.

use std::time::Duration;

use uturn_model::{Assumption, Cluster, Mechanism, Node};

use super::{PacketState, Peer};
use crate::add_missing::add_missing;

/// The times of transmissions, in seconds after the first: each wait is twice the one before.
const DOUBLING: [u64; 7] = [0, 1, 3, 7, 15, 31, 63];
/// The times since Linux 6.5, which starts with five equal waits.
const STEADY: [u64; 11] = [0, 1, 2, 3, 4, 5, 7, 11, 19, 35, 67];
/// The first kernel version with the times `STEADY`.
const FIRST_STEADY: (u16, u16) = (6, 5);

/// The times at which a first packet is retransmitted.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    pub(super) seconds: &'static [u64],
    /// The assumption that the times rest on.
    supposed: Option<Assumption>,
}

impl Pace {
    /// Returns the pace of a sender that waits at most this long.
    pub(crate) fn within(limit: Duration) -> Self {
        let is_late = |seconds: &&u64| Duration::from_secs(**seconds) >= limit;
        let end = DOUBLING.iter().position(|packet| is_late(&packet)).unwrap_or(DOUBLING.len());
        Self { seconds: &DOUBLING[..end.max(1)], supposed: None }
    }

    /// Returns the pace of a client.
    pub(crate) fn of(client: Peer<'_>, cluster: &Cluster) -> Self {
        let node = match client {
            Peer::Host(node, _) => Some(node),
            _ => client.node().and_then(|name| cluster.nodes.get(name)),
        };
        Self::on(node)
    }

    /// Returns the pace of a process on a node, which the node's kernel determines.
    pub(crate) fn on(node: Option<&Node>) -> Self {
        let version = node.and_then(Node::kernel_version);
        let seconds: &[u64] = match version {
            Some(version) if version >= FIRST_STEADY => &STEADY,
            _ => &DOUBLING,
        };
        let suppose = || Assumption {
            subject: "when the client sends the first packet of a connection again".into(),
            assumed: "after 1, 3, 7 and more seconds".into(),
            because:
                "the version of its kernel is not stated: since Linux 6.5 it is after 1, 2, 3, 4"
                    .into(),
            settle: "kubectl get nodes -o wide".into(),
        };
        Self { seconds, supposed: version.is_none().then(suppose) }
    }

    fn after(&self, tries: usize) -> Duration {
        Duration::from_secs(self.seconds.get(tries).copied().unwrap_or(0))
    }
}

/// The transmissions of a packet: how many were lost before, and why.
#[derive(Clone, Debug)]
pub(crate) struct Tries {
    pace: Pace,
    /// The number of transmissions that were lost before this one.
    pub(crate) lost: usize,
    /// The reasons for the losses.
    pub(crate) why: Vec<Mechanism>,
}

impl Tries {
    pub(crate) fn first(pace: Pace) -> Self {
        Self { pace, lost: 0, why: Vec::new() }
    }

    /// Returns the tries without the lost packets, which are accounted for elsewhere.
    pub(crate) fn forgotten(&self) -> Self {
        Self::first(self.pace.clone())
    }

    /// Returns the time from the first transmission to this one.
    pub(crate) fn delay(&self) -> Duration {
        self.pace.after(self.lost)
    }

    /// Returns the assumptions on which the time of a retransmission rests.
    pub(crate) fn supposed(&self) -> Vec<Assumption> {
        let is_late = self.lost > 0;
        self.pace.supposed.iter().filter(|_| is_late).cloned().collect()
    }

    pub(crate) fn left(&self) -> usize {
        self.pace.seconds.len().saturating_sub(self.lost)
    }
}

/// Adds the reasons for the packets that were lost before, and the assumptions of a late answer.
pub(crate) fn account_for_losses(state: &mut PacketState, mechanisms: &mut Vec<Mechanism>) {
    mechanisms.extend(&state.tries.why);
    mechanisms.sort_unstable();
    mechanisms.dedup();
    add_missing(&mut state.supposed, state.tries.supposed());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_wait_sends_fewer_packets() {
        let sent = |limit| Pace::within(Duration::from_millis(limit)).seconds.len();
        assert_eq!([400, 2000, 3000, 4000, 127_000].map(sent), [1, 2, 2, 3, 7]);
    }
}
