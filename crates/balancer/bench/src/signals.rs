//! Signals that end a run in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::failure::Failure;

/// Does what is set to `true` by a signal that asks to stop.
///
/// # Errors
/// Those of what is done, or that it was stopped.
pub(crate) fn until_stopped(
    run: impl FnOnce(&AtomicBool) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let stopped = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stopped))
            .map_err(Failure::of("listen for signals"))?;
    }
    let ended = run(&stopped);
    // Programs that were ended with this one are a consequence of that.
    match stopped.load(Ordering::Relaxed) {
        true => Err(Failure("stopped".to_owned())),
        false => ended,
    }
}
