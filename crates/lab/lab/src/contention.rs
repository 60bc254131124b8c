//! How long measurements had to wait for a processor.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The time from one beat to the next.
const BEAT: Duration = Duration::from_millis(20);

/// A measurement that waited longer may prove nothing. A call that counts as answered at once may
/// take nine times as long.
const TOO_LONG: Duration = Duration::from_millis(100);

/// The part of its time that a measurement may share the processors with other work: a quarter.
const SHARED: u32 = 4;

/// A thread that sleeps and wakes all the time. It notes how late it woke at most, and how long more
/// threads wanted to run than there are processors: the scheduler wakes a thread that sleeps most of
/// the time before those that work, so it may be on time while the measurement waits.
#[derive(Debug)]
pub struct Contention {
    noted: Arc<Noted>,
    began: Instant,
    _stop: Sender<()>,
}

/// The observations of the thread, in milliseconds.
#[derive(Debug, Default)]
struct Noted {
    latest: AtomicU64,
    contended: AtomicU64,
}

impl Contention {
    /// Begins to observe, until the value is dropped.
    pub fn observe() -> Self {
        let (noted, (stop, stopped)) = (Arc::new(Noted::default()), channel());
        let notes = Arc::clone(&noted);
        thread::spawn(move || {
            let processors = thread::available_parallelism().map_or(1, usize::from);
            let mut since = Instant::now();
            while stopped.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                let beat = since.elapsed();
                let late = beat.saturating_sub(BEAT);
                notes.latest.fetch_max(late.as_millis() as u64, Ordering::Relaxed);
                if runnable().is_some_and(|runnable| runnable > processors) {
                    notes.contended.fetch_add(beat.as_millis() as u64, Ordering::Relaxed);
                }
                since = Instant::now();
            }
        });
        Self { noted, began: Instant::now(), _stop: stop }
    }

    /// Returns how long the measurement may have waited for a processor, if that is long enough to
    /// change what it found.
    pub fn wait(&self) -> Option<Duration> {
        let Noted { latest, contended } = &*self.noted;
        let most = latest.load(Ordering::Relaxed).max(contended.load(Ordering::Relaxed));
        let most = Duration::from_millis(most);
        (most > TOO_LONG).then_some(most)
    }

    /// Returns how long the measurement may have waited for a processor, if other work had the
    /// processors for so much of its time that a difference proves nothing.
    pub fn long_wait(&self) -> Option<Duration> {
        self.wait().filter(|wait| *wait * SHARED > self.began.elapsed())
    }
}

/// Returns how many threads of this machine run or wait for a processor.
fn runnable() -> Option<usize> {
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    load.split_whitespace().nth(3)?.split_once('/')?.0.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::hint::spin_loop;
    use std::sync::atomic::AtomicBool;

    use super::*;

    /// More threads than processors contend, however fast they are.
    #[test]
    fn threads_that_want_to_run_are_seen() {
        let (contention, is_done) = (Contention::observe(), AtomicBool::new(false));
        let processors = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            for _ in 0..processors * 2 {
                scope.spawn(|| {
                    while !is_done.load(Ordering::Relaxed) {
                        spin_loop();
                    }
                });
            }
            while contention.wait().is_none() {
                thread::sleep(BEAT);
            }
            is_done.store(true, Ordering::Relaxed);
        });
    }
}
