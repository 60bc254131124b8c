//! What the load balancer tells of its work: metrics, the state of targets, and the access log.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as the test itself may")]

mod access_log;
#[path = "../common/mod.rs"]
mod common;
mod metrics;
mod pages;
mod support;
mod targets;
