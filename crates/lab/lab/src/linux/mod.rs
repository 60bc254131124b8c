//! The lab on Linux: namespaces, links, rules, processes.

mod availability;
mod balancer_process;
mod build;
mod call_counters;
mod client;
#[cfg(feature = "cluster")]
pub(crate) mod cluster;
mod conntrack;
mod edge;
mod generic;
mod handover;
mod haproxy;
mod health;
mod interrupt;
mod ipvs;
mod kernel_parts;
mod kernel_settings;
mod layer_4;
mod links;
mod load_balancers;
mod measure;
mod names;
mod namespace;
mod netlink;
mod nginx;
mod node_answers;
mod observe;
mod pods;
mod program;
mod public;
mod reports;
mod rules;
mod server;
mod state;
mod sweep;
mod system;
mod tables;
mod target;
mod tunnel;
mod wait;
mod worker;
mod workload;

pub(crate) use availability::available;
pub(crate) use measure::{measure, watch};
pub(crate) use sweep::sweep;
