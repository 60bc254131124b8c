//! Whether this machine gave a row its processor.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The time from one beat to the next.
const BEAT: Duration = Duration::from_millis(20);

/// A row that waited longer for a processor proves nothing. A call that counts as answered at once
/// may take nine times as long.
const TOO_LONG: Duration = Duration::from_millis(100);

/// A thread that sleeps and wakes all the time. It notes how late it woke at most, and how long more
/// threads wanted to run than there are processors: the scheduler wakes a thread that sleeps most of
/// the time before those that work, so it may be on time while the row waits.
pub(crate) struct Pulse {
    waited: Arc<Waited>,
    _stop: Sender<()>,
}

/// What the thread noted, in milliseconds.
#[derive(Default)]
struct Waited {
    latest: AtomicU64,
    contended: AtomicU64,
}

impl Pulse {
    pub(crate) fn start() -> Self {
        let (waited, (stop, stopped)) = (Arc::new(Waited::default()), channel());
        let noted = Arc::clone(&waited);
        thread::spawn(move || {
            let processors = thread::available_parallelism().map_or(1, usize::from);
            let mut since = Instant::now();
            while stopped.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                let beat = since.elapsed();
                let late = beat.saturating_sub(BEAT);
                noted.latest.fetch_max(late.as_millis() as u64, Ordering::Relaxed);
                if runnable().is_some_and(|runnable| runnable > processors) {
                    noted.contended.fetch_add(beat.as_millis() as u64, Ordering::Relaxed);
                }
                since = Instant::now();
            }
        });
        Self { waited, _stop: stop }
    }

    /// How long the row may have waited for a processor, if what is measured in real time proves
    /// nothing.
    pub(crate) fn wait(&self) -> Option<Duration> {
        let Waited { latest, contended } = &*self.waited;
        let most = latest.load(Ordering::Relaxed).max(contended.load(Ordering::Relaxed));
        let most = Duration::from_millis(most);
        (most > TOO_LONG).then_some(most)
    }
}

/// Returns how many threads of this machine run or wait for a processor.
fn runnable() -> Option<usize> {
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    load.split_whitespace().nth(3)?.split_once('/')?.0.parse().ok()
}
