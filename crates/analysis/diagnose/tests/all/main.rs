//! Findings and cures of whole clusters.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

mod analysis;
mod api_server;
mod backends_cured;
mod balancer_groups;
mod balancers;
mod captured;
mod causes;
mod clouds_unknown_cured;
mod cluster_names;
mod common;
mod controllers_cured;
mod corefile_cured;
#[path = "../../../scan/tests/classes/dice.rs"]
mod dice;
mod doubts;
mod evidence;
mod groups_cured;
mod https_hosts;
mod kube_proxy_cured;
mod large;
mod large_cures;
mod more_cures;
mod names_cured;
mod no_endpoints;
mod outside;
mod policies;
mod prepared;
mod random;
mod refusals;
mod repairs;
mod rows;
mod scenarios;
mod stated;
mod stated_balancers_cured;
mod stated_names;
mod suppositions;
mod tried;
mod unseen;
