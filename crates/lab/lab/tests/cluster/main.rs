//! A cluster in a box, from `uturn lab up` to `uturn lab down`.
//!
//! Needs root, the program `uturn` and the parts of a cluster: `cargo xtask box` builds them, says
//! where they are, and runs this.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test says how it went")]

#[cfg(target_os = "linux")]
mod installed;
#[cfg(target_os = "linux")]
mod machine;
#[cfg(target_os = "linux")]
mod nodes;
#[cfg(target_os = "linux")]
mod rows;
#[cfg(target_os = "linux")]
mod stage;
#[cfg(target_os = "linux")]
mod stories;

fn main() {
    #[cfg(target_os = "linux")]
    rows::main();
    #[cfg(not(target_os = "linux"))]
    uturn_testing::skip(
        uturn_testing::Requirement::ClusterParts,
        "a cluster in a box",
        "it needs Linux",
    );
}
