//! Decides when requests are due.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use tokio::time::sleep;

/// Hands out requests to connections: at a constant rate, or as fast as the connections ask.
#[derive(Debug)]
pub(super) struct Schedule {
    rate: Option<u32>,
    begin: Cell<Option<Instant>>,
    lasts: Cell<Duration>,
    taken: Cell<u64>,
    /// The due times of requests that no connection has taken yet.
    due: RefCell<VecDeque<Instant>>,
    is_over: Cell<bool>,
    changed: Notify,
}

impl Schedule {
    /// Returns a schedule that has not started. `rate` is in requests per second.
    pub(super) fn new(rate: Option<u32>) -> Self {
        Self {
            rate,
            begin: Cell::new(None),
            lasts: Cell::new(Duration::ZERO),
            taken: Cell::new(0),
            due: RefCell::default(),
            is_over: Cell::new(false),
            changed: Notify::new(),
        }
    }

    /// Starts the schedule: requests are due from `begin` on.
    pub(super) fn start(&self, begin: Instant, lasts: Duration) {
        self.begin.set(Some(begin));
        self.lasts.set(lasts);
    }

    /// Returns the number of requests that were due.
    pub(super) fn taken(&self) -> u64 {
        self.taken.get()
    }

    /// Waits for a request and returns when it was due. Returns `None` if there will be no more
    /// requests.
    pub(super) async fn next(&self) -> Option<Instant> {
        if self.rate.is_none() {
            let now = Instant::now();
            if self.begin.get().is_none_or(|begin| now >= begin + self.lasts.get()) {
                return None;
            }
            self.taken.set(self.taken.get() + 1);
            return Some(now);
        }
        loop {
            if let Some(due) = self.due.borrow_mut().pop_front() {
                return Some(due);
            }
            if self.is_over.get() {
                return None;
            }
            self.changed.notified().await;
        }
    }

    /// Makes requests due until the time is over.
    ///
    /// # Errors
    /// When the kernel's timer cannot be set.
    pub(super) async fn run(&self) -> io::Result<()> {
        let Some(begin) = self.begin.get() else { return Ok(()) };
        let Some(rate) = self.rate else {
            sleep(self.lasts.get()).await;
            return Ok(());
        };
        let timer = Timer::new()?;
        let total = (self.lasts.get().as_secs_f64() * f64::from(rate)) as u64;
        for number in 0..total {
            let due = begin + Duration::from_secs_f64(number as f64 / f64::from(rate));
            let now = Instant::now();
            if due > now {
                timer.wait(due - now).await?;
            }
            self.taken.set(self.taken.get() + 1);
            self.due.borrow_mut().push_back(due);
            self.changed.notify_one();
        }
        self.is_over.set(true);
        self.changed.notify_waiters();
        Ok(())
    }
}

/// A timer of the kernel. The runtime's timers are exact to a millisecond only, which is longer
/// than most answers take.
struct Timer(AsyncFd<OwnedFd>);

impl Timer {
    #[expect(deprecated, reason = "the other way is unsafe; here the descriptor is owned")]
    fn new() -> io::Result<Self> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK)?;
        Ok(Self(AsyncFd::new(timer)?))
    }

    async fn wait(&self, duration: Duration) -> io::Result<()> {
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let after = Timespec {
            tv_sec: duration.as_secs() as i64,
            // A time of zero would switch the timer off.
            tv_nsec: i64::from(duration.subsec_nanos()).max(1),
        };
        let once = Itimerspec { it_interval: never, it_value: after };
        timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        loop {
            let mut ready = self.0.readable().await?;
            let mut count = [0; 8];
            let read =
                |timer: &AsyncFd<OwnedFd>| Ok(rustix::io::read(timer.get_ref(), &mut count)?);
            if let Ok(read) = ready.try_io(read) {
                return read.map(|_| ());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
    use tokio::task::spawn_local;

    use super::*;

    fn runtime() -> LocalRuntime {
        let mut builder = Builder::new_current_thread();
        builder.enable_all().build_local(LocalOptions::default()).unwrap()
    }

    #[test]
    fn requests_are_due_at_the_rate_however_late_they_are_taken() {
        let runtime = runtime();
        runtime.block_on(async {
            let schedule = Rc::new(Schedule::new(Some(1000)));
            let begin = Instant::now();
            schedule.start(begin, Duration::from_millis(50));
            schedule.run().await.unwrap();
            let mut due = Vec::new();
            while let Some(time) = schedule.next().await {
                due.push(time.duration_since(begin).as_micros());
            }
            let expected: Vec<u128> = (0..50).map(|number| number * 1000).collect();
            assert_eq!(due, expected);
            assert_eq!(schedule.taken(), 50);
        });
    }

    #[test]
    fn waiting_connections_end_with_the_schedule() {
        let runtime = runtime();
        runtime.block_on(async {
            let schedule = Rc::new(Schedule::new(Some(100)));
            schedule.start(Instant::now(), Duration::from_millis(20));
            let workers: Vec<_> = (0..5)
                .map(|_| {
                    let schedule = Rc::clone(&schedule);
                    spawn_local(async move {
                        let mut taken = 0;
                        while schedule.next().await.is_some() {
                            taken += 1;
                        }
                        taken
                    })
                })
                .collect();
            schedule.run().await.unwrap();
            let mut taken = 0;
            for worker in workers {
                taken += worker.await.unwrap();
            }
            assert_eq!(taken, 2);
        });
    }
}
