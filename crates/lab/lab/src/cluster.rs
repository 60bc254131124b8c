//! What `uturn lab up` is asked for, and what it gives.

use std::path::PathBuf;

use uturn_model::ProxyMode;

/// A cluster that is to be built: real control plane, nodes that are namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterRequest {
    /// The program `uturn`, which is the cloud, its load balancers and the operator.
    pub program: PathBuf,
    /// Names and texts of manifests: their objects are applied, their Nodes are built.
    pub manifests: Vec<(String, String)>,
    /// The mode of kube-proxy.
    pub mode: ProxyMode,
    /// How many nodes to build; without it those of the manifests, or three.
    pub nodes: Option<usize>,
    /// The version of kube-proxy: `v1.34.4`.
    pub kube_proxy: Option<String>,
    /// The folder that `cargo xtask box-parts` filled; without it the search path.
    pub parts: Option<PathBuf>,
    /// Whether this runs in a small machine, which is slow and has nothing but its kernel.
    pub in_machine: bool,
}

/// A cluster that is up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterUp {
    /// A kubeconfig that reaches the API server from this machine.
    pub kubeconfig: PathBuf,
    /// The names of the nodes.
    pub nodes: Vec<String>,
    /// How many pods are ready.
    pub pods: usize,
    /// What was not applied, and what is not ready yet, each with its reason.
    pub notes: Vec<String>,
}

/// A cluster of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandingCluster {
    /// Its kubeconfig.
    pub kubeconfig: PathBuf,
    /// Whether the process that keeps it is alive. What a dead one left, `down` removes.
    pub is_alive: bool,
    /// If it is in a small machine, the socket through which that is reached.
    pub machine: Option<PathBuf>,
}
