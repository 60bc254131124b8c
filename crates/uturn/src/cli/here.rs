//! The options of `uturn collect` for nodes: this one, or those of the cluster.

use clap::{Args, ValueEnum};
use uturn_model::Name;

use crate::completion;

/// The heading of these options in `--help`.
const NODES: &str = "Nodes (their rules, sets, addresses, routes and sysctls)";

#[derive(Args, Debug)]
pub(crate) struct Here {
    /// Capture this machine, in the network namespace of this process. Reading the rules needs
    /// root; nothing is changed, and no secrets and no environment are read
    #[arg(long, help_heading = NODES)]
    pub(crate) here: bool,
    /// Capture this node of the cluster by running tools in kube-proxy's pod on it, which changes
    /// nothing (repeat for more). With --here, the name of this machine in the cluster, by default
    /// its host name
    #[arg(long = "node", value_name = "NAME", help_heading = NODES, add = completion::node())]
    pub(crate) nodes: Vec<Name>,
    /// Which nodes of the cluster to capture: all; one of each class, that is, of those with the
    /// same kernel, kube-proxy and size of pod ranges (also if WHICH is left out); or none, the
    /// default
    #[arg(long = "nodes", value_name = "WHICH", num_args = 0..=1, help_heading = NODES)]
    #[arg(default_missing_value = "one-of-each-class", conflicts_with_all = ["here", "nodes"])]
    pub(crate) which: Option<WhichNodes>,
    /// If kube-proxy has no pod on a node, or its image lacks the tools, create a short-lived pod
    /// of this image there, with the node's network and the capabilities NET_ADMIN and NET_RAW. You
    /// are asked first, and the pod is removed in any case. Without --node and --nodes, one node of
    /// each class is captured
    #[arg(long, value_name = "IMAGE", conflicts_with = "here", help_heading = NODES)]
    pub(crate) image: Option<String>,
    /// Create the pods of --image without asking
    #[arg(short = 'y', long, requires = "image", help_heading = NODES)]
    pub(crate) yes: bool,
    /// Also capture the connections that the kernel tracks
    #[arg(long, help_heading = NODES)]
    pub(crate) conntrack: bool,
    /// Also capture how many packets and bytes each rule has counted
    #[arg(long, help_heading = NODES)]
    pub(crate) counters: bool,
    /// The time limit of each tool, in seconds; that of a node of the cluster is ten times as long
    #[arg(long, value_name = "SECONDS", default_value_t = 30, help_heading = NODES)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) timeout: u64,
}

/// Which nodes of a cluster are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhichNodes {
    /// Every node
    All,
    /// One node of each class
    OneOfEachClass,
    /// No node
    None,
}
