//! Reading, watching and entering a cluster, through servers that answer as an API server does.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod exec;
mod mock;
mod mocked;
#[cfg(target_os = "linux")]
mod pod_machine;
mod watched;
