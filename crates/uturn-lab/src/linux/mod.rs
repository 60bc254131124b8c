//! The lab on Linux: namespaces, links, rules, processes.

mod balancer;
mod build;
mod client;
mod count;
mod interrupt;
mod measure;
mod namespace;
mod netlink;
mod probe;
mod rules;
mod server;
mod state;
mod system;
mod target;

pub(crate) use measure::measure;
pub(crate) use probe::available;
pub(crate) use state::sweep;
