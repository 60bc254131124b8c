//! Keeps, finds, enters and ends a cluster in a box.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use uturn_model::ProxyMode;

use crate::cluster::{ClusterRequest, ClusterUp, StandingCluster};
#[cfg(target_os = "linux")]
use crate::linux;
use crate::plan::LabError;
#[cfg(not(target_os = "linux"))]
use crate::plan::Unavailable;

/// Builds a cluster with a real control plane, calls `on_ready` once it is up, and keeps it until
/// SIGTERM or Ctrl-C. Everything is removed when this returns. Calls `progress` before each step;
/// if that fails, the cluster is taken down.
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
    linux::cluster::keep(request, progress, on_ready)
}

/// Checks whether this kernel can carry a cluster whose kube-proxy is in this mode.
///
/// # Errors
/// The first requirement that is missing.
#[cfg(target_os = "linux")]
pub fn can_keep_cluster(mode: ProxyMode) -> Result<(), LabError> {
    linux::cluster::can_keep(mode)
}

/// Returns the cluster of this machine, if there is one.
///
/// # Errors
/// If the record of clusters cannot be read.
#[cfg(target_os = "linux")]
pub fn standing_cluster() -> Result<Option<StandingCluster>, LabError> {
    linux::cluster::standing()
}

/// Takes the cluster of this machine down. Returns how many there were, and a line for each thing
/// that a cluster whose process had died left behind.
///
/// # Errors
/// If the record of clusters cannot be read, or if something cannot be removed.
#[cfg(target_os = "linux")]
pub fn take_cluster_down() -> Result<(usize, Vec<String>), LabError> {
    linux::cluster::down()
}

/// Replaces this process by a program that runs in a pod or on a node of the running cluster.
/// Returns only if that fails.
#[cfg(target_os = "linux")]
pub fn enter_cluster(place: &str, program: &str, arguments: &[String]) -> LabError {
    linux::cluster::enter(place, program, arguments)
}

/// Calls `then` once the process that reads this one's standard output through a pipe is gone.
///
/// # Errors
/// If no thread can be started to wait for that.
#[cfg(target_os = "linux")]
pub fn when_unread(then: impl FnOnce() + Send + 'static) -> Result<(), LabError> {
    linux::cluster::when_unread(then)
}

/// Takes the cluster down that this process keeps or builds, as SIGTERM does.
#[cfg(target_os = "linux")]
pub fn give_cluster_up() {
    linux::cluster::give_up();
}

/// Makes SIGINT, SIGTERM and SIGHUP set `stop` instead of ending this process.
///
/// # Errors
/// If the system refuses to deliver the signals.
#[cfg(target_os = "linux")]
pub fn stop_at_signals(stop: &Arc<AtomicBool>) -> Result<(), LabError> {
    linux::cluster::stop_at_signals(stop)
}

/// Does nothing: there is no cluster on this system.
///
/// # Errors
/// Never.
#[cfg(not(target_os = "linux"))]
pub fn when_unread(_then: impl FnOnce() + Send + 'static) -> Result<(), LabError> {
    Ok(())
}

/// Does nothing: there is no cluster on this system.
#[cfg(not(target_os = "linux"))]
pub fn give_cluster_up() {}

/// Does nothing: there is no cluster on this system.
///
/// # Errors
/// Never.
#[cfg(not(target_os = "linux"))]
pub fn stop_at_signals(_stop: &Arc<AtomicBool>) -> Result<(), LabError> {
    Ok(())
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

/// Fails: this system is not Linux.
///
/// # Errors
/// Always [`Unavailable::NotLinux`].
#[cfg(not(target_os = "linux"))]
pub fn can_keep_cluster(_mode: ProxyMode) -> Result<(), LabError> {
    Err(Unavailable::NotLinux.into())
}

/// Returns `None`: this system is not Linux.
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
