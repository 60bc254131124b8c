//! The lab: builds a cluster on a real kernel and measures it.
//!
//! **Owns** the lab cluster, made of network namespaces. One namespace is the fabric: the VPC
//! with its private load balancers and security groups. If the plan has public load balancers or
//! clients outside the VPC, another one is its edge. Each node and each pod has a namespace of
//! its own. The lab loads kube-proxy's rules with the real `iptables-restore`, `ipset` and `nft`
//! (virtual servers of IPVS through netlink), resolves names with real CoreDNS, lets clients
//! connect, and counts the outcomes. It cleans up after an error, a panic and Ctrl-C; the next
//! [`sweep`] cleans up after a run that was killed.
//!
//! **Out of scope:** the host's own network, which the lab does not touch: both ends of every link
//! are made inside namespaces of the lab. The lab predicts nothing: rules come from
//! `uturn-kubeproxy`, decisions from `uturn-lb`, and the caller supplies the expected outcomes,
//! which [`agree`] compares with the measured ones.
//!
//! The lab also owns the cluster in a box ([`keep_cluster`]): the same namespaces with a real
//! control plane, real kube-proxies and a stand-in for the kubelet, for `kubectl`.
//!
//! **Start reading** at [`measure`], then `linux/mod.rs`.
//!
//! ```text
//!   pod ── cbr0 ─ node n1 ─┐                    every line is a pair of links of its own;
//!   pod ──┘                ├── fabric           packets between two nodes always cross
//!   pod ── cbr0 ─ node n2 ─┘   (VPC, LB)        the fabric, as in a real VPC
//!                                  │
//!            outside ──────────── edge            where addresses become public
//! ```

pub mod agree;
mod captured;
#[cfg(feature = "cluster")]
mod cluster;
#[cfg(feature = "cluster")]
mod cluster_control;
mod contention;
mod plan;
mod watch;

#[cfg(target_os = "linux")]
#[cfg_attr(not(feature = "cluster"), allow(dead_code, reason = "only the cluster uses all of it"))]
mod linux;

#[cfg(feature = "cluster")]
pub use cluster::{ClusterRequest, ClusterUp, Programs, StandingCluster};
#[cfg(feature = "cluster")]
pub use cluster_control::{
    can_keep_cluster, enter_cluster, give_cluster_up, keep_cluster, standing_cluster,
    stop_at_signals, take_cluster_down, when_unread,
};
pub use contention::Contention;
#[cfg(all(feature = "cluster", target_os = "linux"))]
pub use linux::cluster::ClusterRecord;
pub use plan::{
    Evidence, KernelPart, LabError, MeasuredFlow, Plan, ProbeEnd, TargetHealth, Unavailable,
};
pub use watch::{Explanation, LabNamespace, OnReady, Sighting, Subject, Watched, Watching};

/// Checks whether a lab can be built here.
///
/// # Errors
/// The first requirement that is missing: Linux, root, a program, or a feature of the kernel.
#[cfg(target_os = "linux")]
pub fn available() -> Result<(), Unavailable> {
    linux::available()
}

/// Removes what dead runs left: namespaces (with their links and rules), child processes, state.
/// Returns one line for each thing removed. Live runs are not touched.
///
/// # Errors
/// If the state of a dead run cannot be read or removed.
#[cfg(target_os = "linux")]
pub fn sweep() -> Result<Vec<String>, LabError> {
    linux::sweep()
}

/// Measures as [`measure`] does, but also writes captures and explains failures. If `standing` is
/// given, it is called with the result and the lab's namespaces once everything is measured, and
/// the lab stays up until the user presses Enter or Ctrl-C.
///
/// # Errors
/// Those of [`measure`], and if captures cannot be written or the kernel's tracing cannot be
/// read.
#[cfg(target_os = "linux")]
pub fn watch(
    plan: &Plan<'_>,
    watching: &Watching,
    standing: Option<OnReady<'_>>,
    progress: &mut dyn FnMut(&str),
) -> Result<Watched, LabError> {
    linux::watch(plan, watching, standing, progress)
}

/// Builds the plan's cluster, measures its flows, and takes everything down again. Calls
/// `progress` with a short sentence for each step.
///
/// # Errors
/// If a lab cannot be built here, if the plan contains something that the lab cannot build, if a
/// system call or a program fails, and if the user interrupts.
#[cfg(target_os = "linux")]
pub fn measure(
    plan: &Plan<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<MeasuredFlow>, LabError> {
    linux::measure(plan, progress)
}

/// Fails: this system is not Linux.
///
/// # Errors
/// Always [`Unavailable::NotLinux`].
#[cfg(not(target_os = "linux"))]
pub fn available() -> Result<(), Unavailable> {
    Err(Unavailable::NotLinux)
}

/// Does nothing: this system is not Linux.
///
/// # Errors
/// Never.
#[cfg(not(target_os = "linux"))]
pub fn sweep() -> Result<Vec<String>, LabError> {
    Ok(Vec::new())
}

/// Fails: this system is not Linux.
///
/// # Errors
/// Always [`Unavailable::NotLinux`].
#[cfg(not(target_os = "linux"))]
pub fn watch(
    _plan: &Plan<'_>,
    _watching: &Watching,
    _standing: Option<OnReady<'_>>,
    _progress: &mut dyn FnMut(&str),
) -> Result<Watched, LabError> {
    Err(Unavailable::NotLinux.into())
}

/// Fails: this system is not Linux.
///
/// # Errors
/// Always [`Unavailable::NotLinux`].
#[cfg(not(target_os = "linux"))]
pub fn measure(
    _plan: &Plan<'_>,
    _progress: &mut dyn FnMut(&str),
) -> Result<Vec<MeasuredFlow>, LabError> {
    Err(Unavailable::NotLinux.into())
}
