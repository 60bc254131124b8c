//! The program `uturn-lb`: [`uturn_lb_cli::main`], with its allocator.

use std::process::ExitCode;

/// The allocator, as of `uturn`.
#[cfg(target_os = "linux")]
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    uturn_lb_cli::main()
}
