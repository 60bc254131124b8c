//! Whether this machine gave a row its processor.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The time from one beat to the next.
const BEAT: Duration = Duration::from_millis(20);

/// A beat that is later than this shows that something else had the processor. A call that counts as
/// answered at once may take nine times as long.
const LATE: Duration = Duration::from_millis(100);

/// A thread that sleeps and wakes all the time, and notes how late it woke at most.
pub(crate) struct Pulse {
    latest: Arc<AtomicU64>,
    _stop: Sender<()>,
}

impl Pulse {
    pub(crate) fn start() -> Self {
        let (latest, (stop, stopped)) = (Arc::new(AtomicU64::new(0)), channel());
        let noted = Arc::clone(&latest);
        thread::spawn(move || {
            let mut since = Instant::now();
            while stopped.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                let late = since.elapsed().saturating_sub(BEAT);
                noted.fetch_max(late.as_millis() as u64, Ordering::Relaxed);
                since = Instant::now();
            }
        });
        Self { latest, _stop: stop }
    }

    /// How late the latest beat was, if what is measured in real time proves nothing.
    pub(crate) fn lateness(&self) -> Option<Duration> {
        let latest = Duration::from_millis(self.latest.load(Ordering::Relaxed));
        (latest > LATE).then_some(latest)
    }
}
