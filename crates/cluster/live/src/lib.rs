//! Reads a running cluster from its API server.
//!
//! ```text
//! kubeconfig ── access ── server ── list ── form ── Reading ──┬── Manifests, for the analysis
//!                                                             └── files of a bundle
//!                               watch ── WatchedCluster ── a Reading whenever one is wanted
//! ```
//!
//! **Owns** the kubeconfig as kubectl reads it ([`Access`]); which kinds are listed, in which
//! version, and what a refused list leaves open ([`read`]); pages, and the form in which objects
//! are kept; the rights that all this needs ([`rbac`]); keeping what was read up to date
//! ([`watch()`]); commands in containers ([`PodSession`], [`exec`]).
//!
//! Nodes are captured with such commands ([`Session::capture`]).
//!
//! **Out of scope:** the meaning of objects: `uturn-snapshot` says which kinds and fields are
//! needed. Reading changes nothing, and reads no Secret: it only lists and watches, and gets a few
//! ConfigMaps by name. Pods are made only if an image for them is named.
//!
//! **Start reading** at [`read`]; refusals of a server are handled in `server` and `list`.

mod access;
mod credential;
mod credentials;
mod debug_container;
mod error;
mod exec;
mod form;
mod kubeconfig;
mod list;
mod names;
mod nodes;
mod page;
mod plan;
mod pod_machine;
mod pod_session;
mod program;
mod proxy;
mod rbac;
mod read;
mod reading;
mod server;
mod session;
mod watch;

pub use access::Access;
pub use debug_container::DebugContainer;
pub use error::LiveError;
pub use exec::{Container, ExecError, Executed, MAX_OUTPUT, exec};
pub use form::Purpose;
pub use names::{Named, Names, names, object};
pub use nodes::{CaptureSettings, NodeCapture, NodeChoice, NodePlan, POD_NAMESPACE};
pub use pod_machine::PodMachine;
pub use pod_session::{PodSession, SessionError};
pub use rbac::{rbac, rbac_of_nodes, rbac_of_probes};
pub use read::{Settings, read, read_from};
pub use reading::Reading;
pub use server::Server;
pub use session::Session;
pub use watch::{Moment, NotCurrent, WatchEnd, WatchedCluster, Watching, follow, time, watch};
