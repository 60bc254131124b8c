//! The lab: builds a cluster on a real kernel and measures it.
//!
//! **Owns** the twin made of namespaces: one namespace is the fabric (the VPC, with the
//! private load balancers and the security groups in it), one its edge where anything is
//! beyond it (public load balancers, clients outside), each node and each pod has its own,
//! kube-proxy's rules are
//! loaded with the real `iptables-restore`, `ipset` and `nft` (virtual servers of IPVS
//! through netlink), names are resolved by real CoreDNS, clients connect for real and their
//! outcomes are counted. It owns the cleaning up too: after an error, a panic, Ctrl-C, and, with
//! the next [`sweep`], after a kill that left no chance.
//!
//! **Refuses** to touch the host's own network: both ends of every link are made inside
//! namespaces of the lab. It has no opinion of its own: rules come from `uturn-kubeproxy`,
//! decisions from `uturn-lb`, and what must come out is its caller's business ([`agree`]
//! compares the two).
//!
//! **Start reading** at [`measure`], then `linux/measure.rs` and `linux/build.rs`.
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
mod plan;
mod watch;

#[cfg(target_os = "linux")]
mod linux;

pub use plan::{
    Evidence, KernelPart, LabError, MeasuredFlow, Plan, ProbeEnd, TargetHealth, Unavailable,
};
pub use watch::{Explanation, LabNamespace, OnReady, Sighting, Subject, Watched, Watching};

/// Says whether a lab can be built here, and if not, what is missing.
#[cfg(target_os = "linux")]
pub fn available() -> Result<(), Unavailable> {
    linux::available()
}

/// Takes down what dead runs left: namespaces (with their links and rules), child
/// processes, state. Says what it removed, a line a thing. Runs that are alive are left
/// alone.
#[cfg(target_os = "linux")]
pub fn sweep() -> Result<Vec<String>, LabError> {
    linux::sweep()
}

/// Like [`measure`], and watches: writes captures, explains what fails. With `standing` the
/// lab stays up after that, its ways in are told, and it is taken down when the user presses
/// Enter or Ctrl-C.
///
/// # Errors
/// Those of [`measure`], and when what is seen cannot be kept.
#[cfg(target_os = "linux")]
pub fn watch(
    plan: &Plan<'_>,
    watching: &Watching,
    standing: Option<OnReady<'_>>,
    progress: &mut dyn FnMut(&str),
) -> Result<Watched, LabError> {
    linux::watch(plan, watching, standing, progress)
}

/// Builds the plan's cluster, measures its flows, and takes everything down again.
/// `progress` is told what is being done, in short sentences.
///
/// # Errors
/// When the lab cannot be had here, when the plan asks for what the lab cannot build, when
/// the kernel or a program refuses, and when the user interrupts.
#[cfg(target_os = "linux")]
pub fn measure(
    plan: &Plan<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<MeasuredFlow>, LabError> {
    linux::measure(plan, progress)
}

/// Says that a lab cannot be built here: this system is not Linux.
#[cfg(not(target_os = "linux"))]
pub fn available() -> Result<(), Unavailable> {
    Err(Unavailable::NotLinux)
}

/// There is nothing to take down: this system is not Linux.
#[cfg(not(target_os = "linux"))]
pub fn sweep() -> Result<Vec<String>, LabError> {
    Ok(Vec::new())
}

/// Cannot be done here: this system is not Linux.
#[cfg(not(target_os = "linux"))]
pub fn watch(
    _plan: &Plan<'_>,
    _watching: &Watching,
    _standing: Option<OnReady<'_>>,
    _progress: &mut dyn FnMut(&str),
) -> Result<Watched, LabError> {
    Err(Unavailable::NotLinux.into())
}

/// Cannot be done here: this system is not Linux.
#[cfg(not(target_os = "linux"))]
pub fn measure(
    _plan: &Plan<'_>,
    _progress: &mut dyn FnMut(&str),
) -> Result<Vec<MeasuredFlow>, LabError> {
    Err(Unavailable::NotLinux.into())
}
