//! Starts the small machine and checks its output, and that nothing of it remains.
//!
//! The usual harness does not run these tests: this program is also the machine's first process. If
//! no machine can run here, it reports the reason and skips every test. With a test's name as
//! argument, only that test runs.
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
