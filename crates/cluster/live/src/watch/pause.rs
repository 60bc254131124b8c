//! The pauses between tries.

use std::time::Duration;

/// The first pause. Each further one is twice as long.
const FIRST: Duration = Duration::from_millis(250);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(30);

/// The next pause before something is tried again.
pub(super) struct Pause {
    next: Duration,
}

impl Default for Pause {
    fn default() -> Self {
        Self { next: FIRST }
    }
}

impl Pause {
    /// Waits. The next pause is longer.
    pub(super) async fn wait(&mut self) {
        tokio::time::sleep(self.next).await;
        self.next = (self.next * 2).min(LONGEST);
    }

    /// Makes the next pause short again, after a success.
    pub(super) fn reset(&mut self) {
        self.next = FIRST;
    }
}
