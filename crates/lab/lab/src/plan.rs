//! The plan that a lab carries out, its result, and its errors.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;
use uturn_model::{
    Capture, CaptureFile, Cluster, Flow, LoadBalancer, Name, Outcome, ProxyMode, Text,
};

use crate::captured;

/// The cluster to build and the flows to measure.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// The load balancers of the cluster.
    pub load_balancers: &'a [LoadBalancer],
    /// The flows to measure. A workload's flow is measured from each of its pods, and the results
    /// are added up. If the cluster has a Corefile, its own DNS resolves names.
    pub flows: &'a [Flow],
    /// The minimum number of connects of a flow. Rounded up to a whole number of turns of the
    /// load balancer's scheduler, so that its picks can be compared with exact counts.
    pub connects: usize,
    /// Whether the connections of a flow begin one after another: each once those before it have
    /// ended or wait for a timeout. Then a slow machine delays no answer for the work that other
    /// connections make. Takes longer.
    pub paced: bool,
    /// The executable that is started as the load balancer, with `lb run` and its options.
    pub program: PathBuf,
    /// Captured rules of nodes, loaded instead of what kube-proxy would program there.
    pub rules: &'a BTreeMap<Name, Capture>,
    /// The CoreDNS executable. If `None`, it is looked for in the search path.
    pub coredns: Option<PathBuf>,
}

impl Plan<'_> {
    /// Returns the kernel parts that the plan needs beyond what every lab needs.
    pub fn needs(&self) -> Vec<KernelPart> {
        let has_servers =
            |capture: &Capture| !captured::text(capture, CaptureFile::Ipvs).trim().is_empty();
        let mode = self.cluster.proxy.mode.value;
        let is_compiled = self.cluster.nodes.keys().any(|name| !self.rules.contains_key(name));
        KernelPart::ALL
            .into_iter()
            .filter(|part| match part {
                KernelPart::IpVs => {
                    is_compiled && mode == ProxyMode::Ipvs || self.rules.values().any(has_servers)
                }
                KernelPart::NfTables => {
                    is_compiled && mode == ProxyMode::Nftables
                        || self
                            .rules
                            .values()
                            .any(|capture| !captured::own_tables(capture).is_empty())
                }
                KernelPart::Vxlan => self.cluster.network.has_tunnels(),
            })
            .collect()
    }
}

/// A feature of the kernel that some clusters need and not every kernel has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KernelPart {
    /// IPVS, which kube-proxy's IPVS mode needs.
    IpVs,
    /// nf_tables, which its nftables mode needs.
    NfTables,
    /// VXLAN, which tunnels between nodes need.
    Vxlan,
}

impl KernelPart {
    /// All kernel parts.
    pub const ALL: [Self; 3] = [Self::IpVs, Self::NfTables, Self::Vxlan];

    /// Returns a message about the missing feature: what it is for, and where to find it.
    fn why_needed(self) -> &'static str {
        match self {
            Self::IpVs => {
                "this kernel has no ip_vs loaded, which kube-proxy's IPVS mode is made of: \
                 the small machine has it (--vm)"
            }
            Self::NfTables => {
                "this kernel takes no nf_tables rules, which kube-proxy's nftables mode is made \
                 of: run the lab natively, on a kernel that has nf_tables and with nft installed"
            }
            Self::Vxlan => {
                "this kernel has no VXLAN, which the lab's tunnels between nodes are made of: \
                 the small machine has it (--vm)"
            }
        }
    }
}

/// The measured result of one flow.
#[derive(Clone, Debug)]
pub struct MeasuredFlow {
    /// The flow.
    pub flow: Flow,
    /// The outcomes of its connects with their counts, in the order of [`Outcome`]. Delays are
    /// rounded to whole seconds.
    pub counts: Vec<(Outcome, u64)>,
    /// The longest wait for each connect. A later answer counts as [`Outcome::Hangs`].
    pub limit: Duration,
    /// Other observations.
    pub evidence: Evidence,
}

/// The observations of the load balancer and the servers for a flow. Each list is sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// The number of packets that begin a connection and reached the load balancer's address from
    /// the client or, masqueraded, from its node. Zero means that the flow never left the node.
    pub reached_load_balancer: u64,
    /// The targets that the load balancer picked first, with counts.
    pub picked: Vec<(SocketAddr, u64)>,
    /// The targets that did not answer the load balancer in time, with counts.
    pub timed_out: Vec<(SocketAddr, u64)>,
    /// The health of the flow's targets when the flow begins. Empty if they are not probed.
    pub health: Vec<TargetHealth>,
    /// The servers that answered (`pod shop/front-1`), with counts.
    pub answered_by: Vec<(Text, u64)>,
    /// The client addresses that the servers saw, with counts.
    pub sources_seen: Vec<(IpAddr, u64)>,
    /// The values of `X-Forwarded-For` that the servers saw, with counts.
    pub forwarded_for: Vec<(Text, u64)>,
}

/// The health of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetHealth {
    /// The target.
    pub target: SocketAddr,
    /// Whether the target counts as alive.
    pub alive: bool,
    /// The end of the probe that decided this.
    pub latest: ProbeEnd,
}

/// The end of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProbeEnd {
    /// The target answered.
    Answered,
    /// Nothing came back in time.
    TimedOut,
    /// The port is closed, or a hop rejected the connection.
    Refused,
    /// There is no route to the target.
    Unreachable,
}

/// The reason why a lab cannot be built here.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unavailable {
    /// Network namespaces need Linux.
    #[error("the lab needs Linux: it is built of network namespaces")]
    NotLinux,
    /// Making network namespaces needs root.
    #[error("the lab needs root: it makes network namespaces")]
    NotRoot,
    /// A program that is not installed.
    #[error("the lab needs {program}, which is not installed (Debian: apt-get install {package})")]
    Missing {
        /// The program.
        program: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// The kernel, or the program that configures it, lacks a feature that the plan
    /// [needs](Plan::needs). Another kernel may have it.
    #[error("{}", .0.why_needed())]
    Part(KernelPart),
    /// The kernel lacks something.
    #[error("this kernel cannot run a lab: {tried}: {reason}")]
    Kernel {
        /// The action that failed.
        tried: String,
        /// The error.
        reason: String,
    },
}

/// The reason why a measurement failed.
#[derive(Debug, Error)]
pub enum LabError {
    /// A lab cannot be built here.
    #[error("{0}")]
    Unavailable(#[from] Unavailable),
    /// The plan contains something that the lab cannot build.
    #[error("the lab cannot build this: {0}")]
    Plan(String),
    /// A cluster in a box cannot be built or used in this way.
    #[error("{0}")]
    Cluster(String),
    /// The kernel refused.
    #[error("cannot {doing}: {source}")]
    System {
        /// The action that failed.
        doing: String,
        /// The system's error.
        source: io::Error,
    },
    /// A program that was started failed.
    #[error("cannot {doing}: {}", reason.trim_end())]
    Program {
        /// The action that failed.
        doing: String,
        /// The program's error output.
        reason: String,
    },
    /// The user interrupted the run. The lab is taken down.
    #[error("interrupted; the lab is taken down")]
    Interrupted,
}
