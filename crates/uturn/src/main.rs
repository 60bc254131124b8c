//! The program `uturn`: [`uturn::main`], with its allocator.

use std::process::ExitCode;

/// A scan makes and throws away millions of small things on several threads: with this it takes
/// four fifths of the time.
#[cfg(target_os = "linux")]
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    uturn::main()
}
