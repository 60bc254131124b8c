//! The cluster in a box: what `uturn lab up` is asked for, what it gives, and how it ends.

use std::path::PathBuf;

use uturn_model::ProxyMode;

use crate::plan::LabError;
#[cfg(not(target_os = "linux"))]
use crate::plan::Unavailable;

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
}

/// Builds a cluster with a real control plane, calls `on_ready` once it is up, and keeps it until
/// SIGTERM or Ctrl-C. Everything is gone when this returns. Calls `progress` before each step; if
/// that fails, the cluster is taken down.
///
/// # Errors
/// If a cluster cannot be built here, if one is up already, if a program or an object of the
/// manifests is missing or wrong, and if a program fails.
#[cfg(target_os = "linux")]
pub fn keep_cluster(
    request: &ClusterRequest,
    progress: &mut dyn FnMut(&str) -> Result<(), LabError>,
    on_ready: &mut dyn FnMut(&ClusterUp),
) -> Result<(), LabError> {
    crate::linux::cluster::keep(request, progress, on_ready)
}

/// The cluster of this machine, if there is one.
///
/// # Errors
/// If the record of clusters cannot be read.
#[cfg(target_os = "linux")]
pub fn standing_cluster() -> Result<Option<StandingCluster>, LabError> {
    crate::linux::cluster::standing()
}

/// Takes the cluster of this machine down. Returns how many there were, and a line for each thing
/// that one whose process had died left behind.
///
/// # Errors
/// If the record of clusters cannot be read, or if something cannot be removed.
#[cfg(target_os = "linux")]
pub fn take_cluster_down() -> Result<(usize, Vec<String>), LabError> {
    crate::linux::cluster::down()
}

/// Replaces this process by a program that runs in a pod or on a node of the cluster that is up.
/// Returns only if it cannot.
#[cfg(target_os = "linux")]
pub fn enter_cluster(place: &str, program: &str, arguments: &[String]) -> LabError {
    crate::linux::cluster::enter(place, program, arguments)
}

/// Fails: this system is not Linux.
///
/// # Errors
/// Always [`Unavailable::NotLinux`].
#[cfg(not(target_os = "linux"))]
pub fn keep_cluster(
    _request: &ClusterRequest,
    _progress: &mut dyn FnMut(&str) -> Result<(), LabError>,
    _on_ready: &mut dyn FnMut(&ClusterUp),
) -> Result<(), LabError> {
    Err(Unavailable::NotLinux.into())
}

/// Finds none: this system is not Linux.
///
/// # Errors
/// Never.
#[cfg(not(target_os = "linux"))]
pub fn standing_cluster() -> Result<Option<StandingCluster>, LabError> {
    Ok(None)
}

/// Does nothing: this system is not Linux.
///
/// # Errors
/// Never.
#[cfg(not(target_os = "linux"))]
pub fn take_cluster_down() -> Result<(usize, Vec<String>), LabError> {
    Ok((0, Vec::new()))
}

/// Fails: this system is not Linux.
#[cfg(not(target_os = "linux"))]
pub fn enter_cluster(_place: &str, _program: &str, _arguments: &[String]) -> LabError {
    Unavailable::NotLinux.into()
}
