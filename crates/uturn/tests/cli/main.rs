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
mod clouds;
mod commands;
mod common;
mod completion;
mod conditional;
mod conforms;
mod cure;
mod docs;
mod dual_stack;
mod folders;
mod groups;
mod healthy;
mod healthy_routes;
mod html;
mod in_words;
mod krew;
mod listings;
mod migrate;
mod missing_pods;
mod name_servers;
mod networks;
#[cfg(target_os = "linux")]
mod nodes;
mod outside;
mod partial;
mod parts;
mod pending;
mod picks_by_hash;
mod ports;
mod printed;
mod probe;
mod probes;
mod programs;
mod public_nodes;
mod redact;
mod remedies;
mod schema;
mod shop;
mod survive;
mod tcp_routes;
mod to_be_applied;
mod unjudged;
mod walk;
mod whatif;
mod without_nodes;
mod zones;
