//! Starts the small machine and looks at what comes out of it, and what is left of it.
//!
//! Not run by the usual harness: this program is also the machine's first process. Where no
//! machine can be had it says why and skips every test. A test's name as argument runs that
//! test only.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test says how it went")]

#[cfg(target_os = "linux")]
mod checks;
#[cfg(target_os = "linux")]
mod clients;
#[cfg(target_os = "linux")]
mod kernels;

fn main() -> std::process::ExitCode {
    if uturn_machine::is_inside() {
        return uturn_machine::inside();
    }
    #[cfg(target_os = "linux")]
    checks::main();
    #[cfg(not(target_os = "linux"))]
    uturn_testing::skip(uturn_testing::Requirement::Machine, "the small machine", "it needs Linux");
    std::process::ExitCode::SUCCESS
}
