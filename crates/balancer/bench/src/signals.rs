//! Handles signals, so that a run ends in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::failure::Failure;

/// Runs a function with a flag that becomes `true` when a signal asks to stop.
///
/// # Errors
/// When the function fails, or a signal stopped it.
pub(crate) fn until_stopped(
    run: impl FnOnce(&AtomicBool) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let stopped = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stopped))
            .map_err(Failure::of("listen for signals"))?;
    }
    let ended = run(&stopped);
    // After a stop, errors are ignored: programs that ended with this one cause some.
    if stopped.load(Ordering::Relaxed) { Err(Failure("stopped".to_owned())) } else { ended }
}
