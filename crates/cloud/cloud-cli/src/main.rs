//! The program `uturn-cloud`: [`uturn_cloud_cli::main`], with its allocator.

use std::process::ExitCode;

/// The allocator, as of `uturn`.
#[cfg(target_os = "linux")]
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    uturn_cloud_cli::main()
}
