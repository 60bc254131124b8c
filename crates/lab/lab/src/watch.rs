//! Observations of a running lab: captures of its links, the packets of one connection with the
//! places where they were seen, and its namespaces.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use uturn_model::{Flow, Mechanism, Outcome, Protocol};

use crate::MeasuredFlow;

/// The observations to make in addition to the measured outcomes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watching {
    /// The folder for captures of every link (pcap).
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
        /// The index of the flow in the plan's flows.
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
    /// The outcome of the connection. `None` if no followed connection failed.
    pub outcome: Option<Outcome>,
    /// The number of connections until one failed.
    pub connects: u64,
    /// The packets in the order in which they were seen.
    pub sightings: Vec<Sighting>,
    /// The reason for the failure, as far as it could be seen.
    pub mechanism: Option<Mechanism>,
    /// The evidence for the mechanism.
    pub because: String,
    /// Other observations: counters that grew, and what could not be observed.
    pub notes: Vec<String>,
}

/// A packet at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The place: `pod shop/client-1`, `node n1`, `fabric`.
    pub place: String,
    /// The link there.
    pub link: String,
    /// Whether the packet left the place by that link; otherwise it arrived.
    pub leaves: bool,
    /// The time since the first packet.
    pub after: Duration,
    /// The addresses and flags of the packet.
    pub packet: String,
    /// The number of times that the packet was seen there: more than one if it was retransmitted.
    pub times: u64,
    /// The kernel function in which the packet was dropped, and the reason, if it was dropped here.
    pub dropped: Option<String>,
}

/// A namespace of a running lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabNamespace {
    /// The name of the namespace in `ip netns`.
    pub namespace: String,
    /// The role of the namespace: `fabric`, `node n1`, `pod shop/client-1`.
    pub what: String,
    /// The listening sockets in it: `tcp 0.0.0.0:80`.
    pub listens: Vec<String>,
}

/// A callback that receives the result and the namespaces of a lab that stays up, once everything
/// is measured.
pub type OnReady<'a> = &'a mut dyn FnMut(&Watched, &[LabNamespace]);
