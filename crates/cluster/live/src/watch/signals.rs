//! The signals that tell this process to end.

/// Waits until a signal tells this process to end.
#[cfg(unix)]
pub(crate) async fn signalled() {
    use tokio::signal::unix::{SignalKind, signal};

    let all = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
    let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hang_up)] = all else {
        // Without handlers, signals end the process at once.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
}

/// Waits until a signal tells this process to end.
#[cfg(not(unix))]
pub(crate) async fn signalled() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}
