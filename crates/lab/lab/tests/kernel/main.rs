//! Builds clusters on this kernel and holds what was measured against what must come out.
//!
//! Not run by the usual harness: this program is also the load balancer process of the labs it
//! builds. Where no lab can be built it says why and skips every row. A row's name as argument
//! runs that row only.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test says how it went")]

#[cfg(target_os = "linux")]
mod announced;
#[cfg(target_os = "linux")]
mod balancers;
#[cfg(target_os = "linux")]
mod cluster;
#[cfg(target_os = "linux")]
mod fabric;
#[cfg(target_os = "linux")]
mod host;
#[cfg(target_os = "linux")]
mod networks;
#[cfg(target_os = "linux")]
mod nodes;
#[cfg(target_os = "linux")]
mod rows;
#[cfg(target_os = "linux")]
mod set;
#[cfg(target_os = "linux")]
mod watched;

fn main() {
    #[cfg(target_os = "linux")]
    rows::main();
    #[cfg(not(target_os = "linux"))]
    uturn_testing::skip(
        uturn_testing::Requirement::Kernel,
        "the rows of the lab",
        "a lab needs Linux",
    );
}
