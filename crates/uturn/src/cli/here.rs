//! The options of `uturn collect` for nodes: this one, or those of the cluster.

use clap::{Args, ValueEnum};
use uturn_model::Name;

use crate::completion;

/// The heading of these options in `--help`.
const NODES: &str = "Nodes (their rules, sets, addresses, routes and sysctls)";

#[derive(Args, Debug)]
pub(crate) struct Here {
    /// Capture the machine that this runs on, in its network namespace. It needs root for the
    /// rules; it changes nothing, and reads no secrets and no environment
    #[arg(long, help_heading = NODES)]
    pub(crate) here: bool,
    /// Capture this node of the cluster, by running tools in the pod of kube-proxy on it, which
    /// changes nothing; may be repeated. With --here, the name of this machine in the cluster; by
    /// default its own name
    #[arg(long = "node", value_name = "NAME", help_heading = NODES, add = completion::node())]
    pub(crate) nodes: Vec<Name>,
    /// Capture all nodes of the cluster; one of each class, that is of those with the same kernel,
    /// kube-proxy and size of pod ranges, which is meant if nothing is named; or none, the default
    #[arg(long = "nodes", value_name = "WHICH", num_args = 0..=1, help_heading = NODES)]
    #[arg(default_missing_value = "one-of-each-class", conflicts_with_all = ["here", "nodes"])]
    pub(crate) which: Option<WhichNodes>,
    /// Where kube-proxy has no pod, or its image lacks tools, make a short-lived pod of this image
    /// on the node, with the node's network and the capabilities NET_ADMIN and NET_RAW. It is asked
    /// for first, and removed whatever happens. Without --node and --nodes, for one node of each class
    #[arg(long, value_name = "IMAGE", conflicts_with = "here", help_heading = NODES)]
    pub(crate) image: Option<String>,
    /// Make the pods of --image without asking
    #[arg(short = 'y', long, requires = "image", help_heading = NODES)]
    pub(crate) yes: bool,
    /// Capture the connections that the kernel tracks too
    #[arg(long, help_heading = NODES)]
    pub(crate) conntrack: bool,
    /// Capture how many packets and bytes each rule counted too
    #[arg(long, help_heading = NODES)]
    pub(crate) counters: bool,
    /// The time limit of each tool, in seconds. A node of the cluster has ten times as long
    #[arg(long, value_name = "SECONDS", default_value_t = 30, help_heading = NODES)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) timeout: u64,
}

/// Which nodes of a cluster are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhichNodes {
    /// All of them
    All,
    /// One of those that are alike
    OneOfEachClass,
    /// None of them
    None,
}
