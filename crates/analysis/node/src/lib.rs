//! Captures the state of a node's kernel: its rules, sets, virtual servers, addresses, routes and
//! sysctls, as the tools of the node print them.
//!
//! **Owns** which tools are run and which files are read ([`capture()`]), the report on their
//! success ([`Manifest`]), and the files of a capture ([`Captured::into_files`]), which
//! `uturn_snapshot` writes into a bundle and reads. It reads a [`Machine`]; [`Local`] is the one on
//! which it runs, in its network namespace.
//!
//! **Out of scope:** parsing the output of the tools, which `uturn-netfilter` does. It changes
//! nothing on the node, and it reads no secrets, no environment and no names of processes.
//!
//! **Start reading** at [`capture()`].

mod capture;
mod iptables;
mod machine;
mod manifest;
mod sysctls;

pub use capture::{Captured, Options, capture};
pub use machine::{Local, Machine, ToolFailure};
pub use manifest::{FORMAT, Manifest, Part, PartState};
