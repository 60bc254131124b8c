//! The data plane as clients and targets meet it that break, stall, abuse and confuse it.
//!
//! Everything happens on the loopback interface. `UTURN_CHAOS=N` makes the runs whose length is
//! arbitrary N times as long.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as the test itself may")]

mod abuse;
mod admission;
#[path = "../common/mod.rs"]
mod common;
mod faults;
mod floods;
mod frames;
mod gone;
#[path = "../common/groups.rs"]
mod groups;
mod grpc;
mod idle;
mod kept;
mod life;
mod messages;
mod options;
mod origin;
mod paths;
mod refused;
mod smuggling;
mod stickiness;
mod support;
#[path = "../common/wait.rs"]
mod wait;
