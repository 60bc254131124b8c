//! What can be observed of a running lab: captures of its links, the packets of one connection
//! with the places where they were seen, and its namespaces.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use uturn_model::{Flow, Mechanism, Outcome, Protocol};

use crate::MeasuredFlow;

/// What is observed in addition to the measured outcomes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watching {
    /// The folder that gets a capture of every link (pcap).
    pub captures: Option<PathBuf>,
    /// Whether to follow one more connection of each failing flow, and one more health check of
    /// each dead target.
    pub explain: bool,
}

/// The result of a watched measurement.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The plan's flows.
    pub flows: Vec<MeasuredFlow>,
    /// If asked for: one explanation for each target that health checks found dead, and one for
    /// each client and target with connections that were not answered at once.
    pub explanations: Vec<Explanation>,
}

/// The connection whose packets are followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A connection of a flow.
    Flow {
        /// The flow. For a workload, the flow of one of its pods.
        flow: Flow,
        /// Its index in the plan's flows.
        of: usize,
    },
    /// A load balancer's health check.
    Probe {
        /// The listener whose target is probed.
        listener: SocketAddr,
        /// The listener's protocol.
        protocol: Protocol,
        /// The probed target.
        target: SocketAddr,
    },
}

/// One failing connection, packet by packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The connection.
    pub subject: Subject,
    /// How the connection ended. `None` if no followed connection failed.
    pub outcome: Option<Outcome>,
    /// How many connections it took until one failed.
    pub connects: u64,
    /// Its packets in the order they were seen in.
    pub sightings: Vec<Sighting>,
    /// Why it failed, as far as that could be seen.
    pub mechanism: Option<Mechanism>,
    /// The evidence for the mechanism.
    pub because: String,
    /// Other observations: counters that grew, what could not be observed.
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
    /// How often the same packet was seen there: more than once if it was retransmitted.
    pub times: u64,
    /// Where in the kernel it ended, and why, if it ended here.
    pub dropped: Option<String>,
}

/// A namespace of a running lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabNamespace {
    /// Its name, as `ip netns` knows it.
    pub namespace: String,
    /// `fabric`, `node n1`, `pod shop/client-1`.
    pub what: String,
    /// Listening sockets in it: `tcp 0.0.0.0:80`.
    pub listens: Vec<String>,
}

/// Called with the result and the namespaces of a lab that stays up, once everything is measured.
pub type OnReady<'a> = &'a mut dyn FnMut(&Watched, &[LabNamespace]);
