//! Handles Ctrl-C and SIGTERM while a lab is up: the lab is taken down in order, then the run ends.
//! A process that keeps a lab for another one also ends when that one is gone.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::LabError;
use crate::linux::kernel::system::During;

static SIGNALS: OnceLock<Signals> = OnceLock::new();

/// The number of labs of this process that are up.
static WATCH_COUNT: Mutex<usize> = Mutex::new(0);

struct Signals {
    raised: Arc<AtomicBool>,
    /// While no lab is up, signals have their default effect.
    idle: Arc<AtomicBool>,
}

/// Intercepts signals until it is dropped.
#[derive(Debug)]
pub(crate) struct Watch(());

impl Watch {
    pub(crate) fn new() -> Result<Self, LabError> {
        let signals = match SIGNALS.get() {
            Some(signals) => signals,
            None => {
                let signals = register().during("listen for signals")?;
                SIGNALS.get_or_init(|| signals)
            }
        };
        let mut watch_count = watch_count();
        *watch_count += 1;
        signals.idle.store(false, Ordering::SeqCst);
        Ok(Self(()))
    }

    /// Returns [`LabError::Interrupted`] once a signal has been received.
    pub(crate) fn check(&self) -> Result<(), LabError> {
        check()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut watch_count = watch_count();
        *watch_count -= 1;
        if let (0, Some(signals)) = (*watch_count, SIGNALS.get()) {
            signals.idle.store(true, Ordering::SeqCst);
        }
    }
}

/// Returns [`LabError::Interrupted`] once a signal has been received while a lab was up.
pub(crate) fn check() -> Result<(), LabError> {
    let raised = SIGNALS.get().is_some_and(|signals| signals.raised.load(Ordering::SeqCst));
    if raised { Err(LabError::Interrupted) } else { Ok(()) }
}

/// Interrupts the labs of this process that are up, as a signal does.
pub(crate) fn raise() {
    if let Some(signals) = SIGNALS.get() {
        signals.raised.store(true, Ordering::SeqCst);
    }
}

/// Makes each of the signals set a flag, instead of ending the process.
pub(crate) fn set_at_signals(stop: &Arc<AtomicBool>) -> io::Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register(signal, Arc::clone(stop))?;
    }
    Ok(())
}

/// Calls `then`, in a thread of its own, once nobody can read any more what this process writes to
/// a pipe that is its standard output. If standard output is no pipe, `then` is never called.
pub(crate) fn when_unread(then: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let stdout = io::stdout().as_fd().try_clone_to_owned()?;
    let wait = move || {
        let is_unread = loop {
            // Without requested events, only the end of the reader is reported.
            let mut all = [PollFd::new(&stdout, PollFlags::empty())];
            match poll(&mut all, None) {
                Ok(_) => break true,
                Err(Errno::INTR) => {}
                Err(_) => break false,
            }
        };
        if is_unread {
            then();
        }
    };
    thread::Builder::new().name("unread".into()).spawn(wait).map(drop)
}

fn watch_count() -> MutexGuard<'static, usize> {
    WATCH_COUNT.lock().unwrap_or_else(PoisonError::into_inner)
}

fn register() -> io::Result<Signals> {
    let signals =
        Signals { raised: Arc::new(AtomicBool::new(false)), idle: Arc::new(AtomicBool::new(true)) };
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register_conditional_default(signal, Arc::clone(&signals.idle))?;
        flag::register(signal, Arc::clone(&signals.raised))?;
    }
    Ok(signals)
}
