//! What is asked of the lab, what it gives, and what can go wrong.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;
use uturn_model::network::Transport;
use uturn_model::{
    Capture, CaptureFile, Cluster, Flow, LoadBalancer, Name, Outcome, ProxyMode, Text,
};

use crate::captured;

/// What to build and what to measure.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// Its load balancers.
    pub load_balancers: &'a [LoadBalancer],
    /// What to measure. A workload calls with each of its pods, and what came out is added
    /// up. Names are resolved by the cluster's own DNS, if there is a Corefile.
    pub flows: &'a [Flow],
    /// How many connects a flow makes, at least. Rounded up to a whole number of turns of
    /// the load balancer's scheduler, so that its picks can be held to exact counts.
    pub connects: usize,
    /// The `uturn` executable, which is started again as the load balancer.
    pub program: PathBuf,
    /// What nodes' kernels said, loaded instead of what kube-proxy would program there.
    pub rules: &'a BTreeMap<Name, Capture>,
    /// CoreDNS, where its place is known; else it is looked for in the search path.
    pub coredns: Option<PathBuf>,
}

impl Plan<'_> {
    /// What the plan needs of a kernel beyond what every lab needs.
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
                KernelPart::Vxlan => self.cluster.network.transport.value == Transport::Tunnel,
            })
            .collect()
    }
}

/// A part of the kernel that some clusters need, and not every kernel has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KernelPart {
    /// IPVS: what kube-proxy's IPVS mode is made of.
    IpVs,
    /// nf_tables: what its nftables mode is made of.
    NfTables,
    /// VXLAN: what tunnels between nodes are made of.
    Vxlan,
}

impl KernelPart {
    /// Says what the missing feature is for, and where to find it.
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

    /// All of them.
    pub const ALL: [Self; 3] = [Self::IpVs, Self::NfTables, Self::Vxlan];
}

/// What came out for one flow.
#[derive(Clone, Debug)]
pub struct MeasuredFlow {
    /// The flow.
    pub flow: Flow,
    /// How its connects ended, and how many of them ended so; waiting is rounded to whole
    /// seconds. In the order of [`Outcome`].
    pub counts: Vec<(Outcome, u64)>,
    /// How long each connect was waited for: what would have come later hangs.
    pub limit: Duration,
    /// What else was seen.
    pub evidence: Evidence,
}

/// What the load balancer and the servers saw of a flow. Each list is sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// How many packets that begin a connection came to the load balancer's address from
    /// the client, or from its node in its place. Zero: the flow never left the node.
    pub reached_load_balancer: u64,
    /// Targets that the load balancer on layer 7 picked first, and how often.
    pub picked: Vec<(SocketAddr, u64)>,
    /// Targets that did not answer the load balancer in time, and how often.
    pub timed_out: Vec<(SocketAddr, u64)>,
    /// What the load balancer's health checks say of the flow's targets when it begins;
    /// empty where nobody probes them.
    pub health: Vec<TargetHealth>,
    /// Who answered (`pod shop/front-1`), and how often.
    pub answered_by: Vec<(Text, u64)>,
    /// The client addresses that those who answered saw, and how often.
    pub sources_seen: Vec<(IpAddr, u64)>,
    /// What they saw in `X-Forwarded-For`, and how often.
    pub forwarded_for: Vec<(Text, u64)>,
}

/// A target as its health checks found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetHealth {
    /// The target.
    pub target: SocketAddr,
    /// Whether it counts as alive.
    pub alive: bool,
    /// How the probe that decided so ended.
    pub latest: ProbeEnd,
}

/// How a probe ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProbeEnd {
    /// The target answered.
    Answered,
    /// Nothing came back in time.
    TimedOut,
    /// The port is closed, or somebody on the way said no.
    Refused,
    /// There is no way to the target.
    Unreachable,
}

/// Why there can be no lab here.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unavailable {
    /// Namespaces are Linux's.
    #[error("the lab needs Linux: it is built of network namespaces")]
    NotLinux,
    /// Making network namespaces needs root.
    #[error("the lab needs root: it makes network namespaces")]
    NotRoot,
    /// A program is not installed.
    #[error("the lab needs {program}, which is not installed (Debian: apt-get install {package})")]
    Missing {
        /// The program.
        program: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// The kernel, or what loads it, lacks a part that the plan needs
    /// ([`needs`](Plan::needs)); another kernel may have it.
    #[error("{}", .0.why_needed())]
    Part(KernelPart),
    /// The kernel lacks something.
    #[error("this kernel cannot carry a lab: {tried}: {said}")]
    Kernel {
        /// What was tried.
        tried: String,
        /// What it said.
        said: String,
    },
}

/// Why a measurement did not come about.
#[derive(Debug, Error)]
pub enum LabError {
    /// There can be no lab here.
    #[error("{0}")]
    Unavailable(#[from] Unavailable),
    /// The plan asks for what the lab cannot build.
    #[error("the lab cannot build this: {0}")]
    Plan(String),
    /// The kernel refused.
    #[error("cannot {doing}: {source}")]
    System {
        /// What was being done.
        doing: String,
        /// What it said.
        source: io::Error,
    },
    /// A program that was started failed.
    #[error("cannot {doing}: {}", said.trim_end())]
    Program {
        /// What was being done.
        doing: String,
        /// What the program said.
        said: String,
    },
    /// The user wants to stop. Everything is taken down.
    #[error("interrupted; the lab is taken down")]
    Interrupted,
}
