//! The lab on Linux: namespaces, links, rules, processes.

mod balancer;
mod balancing;
mod beyond;
mod build;
mod client;
mod count;
mod generic;
mod health;
mod interrupt;
mod ipvs;
mod measure;
mod names;
mod namespace;
mod netlink;
mod nginx;
mod parts;
mod pods;
mod probe;
mod program;
mod public;
mod rules;
mod server;
mod sight;
mod state;
mod system;
mod tables;
mod target;
mod tunnel;
mod wait;
mod workload;

pub(crate) use measure::{measure, watch};
pub(crate) use probe::available;
pub(crate) use state::sweep;
