//! The request of `uturn lab up`, and its result.

use std::path::PathBuf;

use uturn_model::ProxyMode;

/// A cluster that is to be built, with a real control plane and with namespaces as nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterRequest {
    /// The programs of the cluster that are uturn's own.
    pub programs: Programs,
    /// The names and texts of manifests. Their objects are applied, and their Nodes are built.
    pub manifests: Vec<(String, String)>,
    /// The mode of kube-proxy.
    pub mode: ProxyMode,
    /// The number of nodes to build. Without it, those of the manifests are built, or three.
    pub nodes: Option<usize>,
    /// The version of kube-proxy: `v1.34.4`.
    pub kube_proxy: Option<String>,
    /// The folder that `cargo xtask box-parts` filled. Without it, the search path is used.
    pub parts: Option<PathBuf>,
    /// Whether this runs in a small machine, which is slow and has nothing but its kernel.
    pub in_machine: bool,
}

/// The programs of a cluster that are uturn's own. Each takes its line from the command on:
/// `lab exec …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    /// `uturn-lab`, which enters pods.
    pub lab: PathBuf,
    /// `uturn-lb`, the data plane of the cloud.
    pub load_balancer: PathBuf,
    /// `uturn-cloud`.
    pub cloud: PathBuf,
    /// `uturn-operator`.
    pub operator: PathBuf,
}

/// A cluster that is up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterUp {
    /// A kubeconfig that reaches the API server from this machine.
    pub kubeconfig: PathBuf,
    /// The names of the nodes.
    pub nodes: Vec<String>,
    /// The number of ready pods.
    pub pods: usize,
    /// The objects that were not applied, and those that are not ready yet, each with the reason.
    pub notes: Vec<String>,
}

/// A cluster on record on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandingCluster {
    /// The kubeconfig of the cluster.
    pub kubeconfig: PathBuf,
    /// Whether the process that keeps the cluster is alive. `down` removes what a dead one left.
    pub is_alive: bool,
    /// The socket for reaching the small machine that the cluster is in, if it is in one.
    pub machine: Option<PathBuf>,
}
