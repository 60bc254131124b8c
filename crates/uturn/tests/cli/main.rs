//! Whole commands: exit status, stdout and stderr, as a user gets them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod bad_input;
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
mod cure;
mod docs;
mod folders;
mod groups;
mod healthy;
mod html;
mod krew;
mod lab;
mod lb;
mod lb_capabilities;
mod lb_certificates;
mod lb_changes;
mod lb_probes;
mod lb_run;
#[cfg(target_os = "linux")]
mod machine;
mod networks;
#[cfg(target_os = "linux")]
mod nodes;
mod operator;
mod partial;
mod parts;
mod pending;
mod ports;
mod probe;
mod redact;
mod remedies;
mod schema;
mod shop;
mod unjudged;
mod walk;
