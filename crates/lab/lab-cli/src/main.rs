//! The program `uturn-lab`: [`uturn_lab_cli::main`], with its allocator.

use std::process::ExitCode;

/// The allocator, as of `uturn`.
#[cfg(target_os = "linux")]
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    uturn_lab_cli::main()
}
