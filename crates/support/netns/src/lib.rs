//! Network namespaces, and the messages of netlink.
//!
//! **Owns** how a thread enters a network namespace ([`enter`], [`run_in`]), a namespace that is
//! gone with the process that made it ([`Held`]), the framing of netlink ([`netlink`]), and how
//! connection tracking states a connection ([`conntrack`]).
//! **Out of scope:** sockets, and what the messages mean: that is with those who send them. The
//! lab's namespaces, which have names, are in `uturn-lab`.
//! **Start reading** in `held.rs` or `netlink.rs`.
#![cfg(target_os = "linux")]

pub mod conntrack;
mod held;
mod namespace;
pub mod netlink;

pub use held::Held;
pub use namespace::{enter, in_new_thread, run_in};
