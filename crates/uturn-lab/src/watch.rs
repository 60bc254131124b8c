//! What can be seen of a lab while it stands: captures of its links, the packets of one
//! connection with the places they were seen at, and how to look inside.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use uturn_model::{Flow, Mechanism, Outcome, Protocol};

use crate::MeasuredFlow;

/// What is watched beside the measuring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watching {
    /// The folder that gets a capture of every link (pcap).
    pub captures: Option<PathBuf>,
    /// Whether each flow that fails makes one more connection that is followed, and one more
    /// health check is followed to each target that is dead.
    pub explain: bool,
}

/// What came out.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The plan's flows.
    pub flows: Vec<MeasuredFlow>,
    /// Where that was asked for: one for each target that health checks found dead, and one
    /// for each client and target of which not every connection was answered at once.
    pub explanations: Vec<Explanation>,
}

/// Whose packets are followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A connection of a flow.
    Flow {
        /// Who called whom; a workload's flow is that of one of its pods.
        flow: Flow,
        /// Its place among the plan's flows.
        of: usize,
    },
    /// A load balancer's health check.
    Probe {
        /// The listener whose target it asks.
        listener: SocketAddr,
        /// The listener's protocol.
        protocol: Protocol,
        /// Who is asked.
        target: SocketAddr,
    },
}

/// One failing connection, packet by packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Whose it is.
    pub subject: Subject,
    /// How the connection ended; nothing where none of those made since has failed.
    pub outcome: Option<Outcome>,
    /// How many connections it took until one failed.
    pub connects: u64,
    /// Its packets in the order they were seen in.
    pub sightings: Vec<Sighting>,
    /// Why it failed, as far as that could be seen.
    pub mechanism: Option<Mechanism>,
    /// What that rests on.
    pub because: String,
    /// What else is worth knowing: counters that grew, what could not be watched.
    pub notes: Vec<String>,
}

/// A packet at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// `pod shop/client-1`, `node n1`, `fabric`.
    pub place: String,
    /// The link there.
    pub link: String,
    /// Whether it left the place by that link; else it came in.
    pub leaves: bool,
    /// How long after the first packet.
    pub after: Duration,
    /// Addresses and flags.
    pub packet: String,
    /// How often the very same was seen there: more than once when it was sent again.
    pub times: u64,
    /// Where in the kernel it ended, and why, if it ended here.
    pub dropped: Option<String>,
}

/// A namespace of a lab that stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabNamespace {
    /// Its name, as `ip netns` knows it.
    pub namespace: String,
    /// `fabric`, `node n1`, `pod shop/client-1`.
    pub what: String,
    /// Who listens there: `tcp 0.0.0.0:80`.
    pub listens: Vec<String>,
}

/// Is told of a lab that stays up, once everything is measured.
pub type OnReady<'a> = &'a mut dyn FnMut(&Watched, &[LabNamespace]);
