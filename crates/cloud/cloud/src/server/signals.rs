//! The signals that end the process.

use std::io;

use tokio::signal;

/// Waits for SIGTERM or an interrupt.
///
/// # Errors
///
/// Returns why the signals cannot be listened for. Has to be called within a runtime.
#[cfg(unix)]
pub(super) fn signalled() -> io::Result<impl Future<Output = ()> + Send> {
    use signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Waits for an interrupt.
///
/// # Errors
///
/// Never fails; the signature is that of other systems.
#[cfg(not(unix))]
pub(super) fn signalled() -> io::Result<impl Future<Output = ()> + Send> {
    Ok(async {
        // An error means that the process cannot listen for the interrupt, so that only a kill ends
        // it.
        if signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}
