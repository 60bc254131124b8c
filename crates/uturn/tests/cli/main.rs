//! Whole commands: exit status, stdout and stderr, as a user gets them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod announced;
mod api_server;
mod as_found;
mod bad_input;
mod behind_controllers;
mod bypassed_tls;
mod check;
mod ci;
#[cfg(unix)]
mod cloud_crash;
mod cloud_errors;
mod cloud_serve;
mod clouds;
mod commands;
mod common;
mod completion;
mod conditional;
mod cure;
mod docs;
mod dual_stack;
mod folders;
mod groups;
mod healthy;
mod healthy_routes;
mod html;
mod krew;
mod lab;
mod lb;
mod lb_capabilities;
mod lb_certificates;
mod lb_changes;
mod lb_descriptors;
mod lb_probes;
mod lb_run;
mod listings;
#[cfg(target_os = "linux")]
mod machine;
#[cfg(target_os = "linux")]
mod machine_ends;
mod missing_pods;
mod name_servers;
mod networks;
#[cfg(target_os = "linux")]
mod nodes;
mod operator;
mod outside;
mod partial;
mod parts;
mod pending;
mod picks_by_hash;
mod ports;
mod printed;
mod probe;
mod probes;
mod public_nodes;
mod redact;
mod remedies;
mod schema;
mod shop;
mod tcp_routes;
mod to_be_applied;
mod unjudged;
mod walk;
mod without_nodes;
mod zones;
