//! Reads a running cluster from its API server.
//!
//! ```text
//! kubeconfig ── access ── server ── list ── form ── Reading ──┬── Manifests, for the analysis
//!                                                             └── files of a bundle
//! ```
//!
//! **Owns** the kubeconfig as kubectl reads it ([`Access`]); which kinds are listed, in which
//! version, and what a list that is refused leaves open ([`read`]); pages, and what of an object is
//! kept; the rights that all this needs ([`rbac`]).
//!
//! **Refuses** to change anything, to read a Secret, and to know what objects mean: which kinds and
//! fields are needed, `uturn-snapshot` says. It only lists, and gets a few ConfigMaps by name.
//!
//! **Start reading** at [`read`]; a server that refuses something is met in `server` and `list`.

mod access;
mod error;
mod form;
mod list;
mod plan;
mod rbac;
mod read;
mod server;

pub use access::Access;
pub use error::LiveError;
pub use rbac::rbac;
pub use read::{Purpose, Reading, Settings, read, read_from};
pub use server::Server;
