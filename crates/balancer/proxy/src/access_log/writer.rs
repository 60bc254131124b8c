//! The thread that writes the access log.

use std::iter::once;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

use super::{Message, Output, Shared};
use crate::lock::locked;
use crate::timestamp::Clock;

/// The most entries that are written at once.
const AT_ONCE: usize = 1024;

/// The time for which entries gather. While the thread sleeps, workers need no system call to wake
/// it.
const PAUSE: Duration = Duration::from_millis(10);

/// Writes until the log stops.
pub(super) fn run(queue: &Receiver<Message>, shared: &Shared) {
    let mut writer = Writer { output: Output::Off, lines: Vec::new(), told: 0, shared };
    while let Ok(first) = queue.recv() {
        writer.write(once(first).chain(queue.try_iter()));
        if shared.is_stopping.load(Ordering::Acquire) {
            // Entries may have been queued just before the stop.
            writer.write(queue.try_iter());
            return;
        }
        thread::sleep(PAUSE);
    }
}

struct Writer<'a> {
    output: Output,
    lines: Vec<u8>,
    /// The number of dropped entries that the log has reported.
    told: u64,
    shared: &'a Shared,
}

impl Writer<'_> {
    /// Writes entries, many at once.
    fn write(&mut self, messages: impl Iterator<Item = Message>) {
        let mut messages = messages.peekable();
        while messages.peek().is_some() {
            let clock = Clock::now();
            let mut entries = 0;
            for message in messages.by_ref().take(AT_ONCE) {
                if let Message::Entry(entry) = message {
                    entry.write(&clock, &mut self.lines);
                    entries += 1;
                }
            }
            self.switch();
            let count = match self.output.write(&self.lines) {
                Ok(()) => &self.shared.written,
                Err(_) => &self.shared.dropped,
            };
            count.fetch_add(entries, Ordering::Relaxed);
            self.lines.clear();
            self.tell_of_dropped(&clock);
        }
    }

    fn switch(&mut self) {
        let next = locked(&self.shared.next).take();
        if let Some(next) = next {
            self.output = next;
        }
    }

    /// Writes how many entries were dropped since the last such line.
    fn tell_of_dropped(&mut self, clock: &Clock) {
        let dropped = self.shared.dropped.load(Ordering::Relaxed);
        if dropped == self.told {
            return;
        }
        let (time, count) = (clock.text(Instant::now()), dropped - self.told);
        let line = format!("{{\"time\":\"{time}\",\"dropped\":{count}}}\n");
        if self.output.write(line.as_bytes()).is_ok() {
            self.told = dropped;
        }
    }
}
