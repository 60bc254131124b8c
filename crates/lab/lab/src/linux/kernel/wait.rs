//! Waiting for descriptors.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;

use super::system::During;
use crate::LabError;

/// The time between two checks for signals.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The time without events after which no more are expected.
pub(crate) const QUIET_PERIOD: Duration = Duration::from_millis(20);

/// Waits until a descriptor is ready or the time is over. Returns which descriptors are ready.
pub(crate) fn wait(waiting: &mut [PollFd<'_>], until: Instant) -> Result<Vec<bool>, LabError> {
    let left = until.saturating_duration_since(Instant::now());
    let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
    match poll(waiting, Some(&left)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error).during("wait"),
    }
    Ok(waiting.iter().map(|fd| !fd.revents().is_empty()).collect())
}
