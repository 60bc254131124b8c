//! Handles Ctrl-C and SIGTERM while a lab is up: the lab is taken down in order, then the run
//! ends.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use super::system::During;
use crate::LabError;

static SIGNALS: OnceLock<Signals> = OnceLock::new();

/// How many labs of this process are up.
static WATCH_COUNT: Mutex<usize> = Mutex::new(0);

struct Signals {
    raised: Arc<AtomicBool>,
    /// While no lab is up, signals have their default effect.
    idle: Arc<AtomicBool>,
}

/// Intercepts signals as long as it lives.
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
        let raised = SIGNALS.get().is_some_and(|signals| signals.raised.load(Ordering::SeqCst));
        if raised { Err(LabError::Interrupted) } else { Ok(()) }
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
