//! A cluster in a box: the real etcd, kube-apiserver, kube-controller-manager, kube-scheduler,
//! kube-proxies and CoreDNS; nodes and pods are namespaces.
//!
//! One process, the supervisor, owns everything: its [`Run`](super::run::state::Run) names the
//! namespaces and records the processes, so the sweep that cleans up after measurements also cleans
//! up after a supervisor that was killed. Only the kubelet is a stand-in ([`kubelet`]), and every
//! node says so.
//!
//! ```text
//!   supervisor ─ kubelet stand-in ─ pods' servers        [control]  etcd, kube-apiserver,
//!      │                                                     │      controllers, scheduler
//!      └─ relay 127.0.0.1:PORT ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ┘ eth0
//!                                                            │
//!   pod ── cbr0 ─ node n1 (kube-proxy) ─────────────────── fabric
//! ```
//!
//! If this kernel lacks something, or the user is not root, the same runs in a small machine, and
//! the supervisor does not see a difference. The process that started the machine has a
//! [`ClusterRecord`].
//!
//! The cloud, its load balancers and the controllers that call it are programs of `fabric`
//! ([`cloud`]).

mod api_client;
mod apply;
mod cloud;
mod control_plane;
mod credentials;
mod defaults;
mod end;
mod enter;
mod kernel;
mod kubelet;
mod layout;
mod manifests;
mod parts;
mod programmed;
mod proxies;
mod ready;
mod record;
mod relay;
mod shown;
mod stated;
mod supervisor;
mod vendor_build;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::kernel::system::During as _;
use super::run::interrupt;
use crate::LabError;

pub(crate) use end::down;
pub(crate) use enter::enter;
pub(crate) use kernel::can_keep;
pub use record::ClusterRecord;
pub(crate) use record::standing;
pub(crate) use supervisor::keep;

/// Takes down the cluster that this process builds or keeps, as a signal does.
pub(crate) fn give_up() {
    interrupt::raise();
}

/// Makes the signals that end a process set `stop` instead.
pub(crate) fn stop_at_signals(stop: &Arc<AtomicBool>) -> Result<(), LabError> {
    interrupt::set_at_signals(stop).during("listen for signals")
}

/// Calls `then` once nobody reads this process's standard output any more.
pub(crate) fn when_unread(then: impl FnOnce() + Send + 'static) -> Result<(), LabError> {
    interrupt::when_unread(then).during("wait for the end of the reader")
}
