//! The access log: a line of JSON for each request, and for each connection on layer 4.
//!
//! A worker never waits for the log. Entries go through a queue of bounded length to a thread that
//! writes them. Entries that find no room are counted, and the log says how many there were.

mod entry;
mod output;
mod writer;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

pub(crate) use entry::{Entry, Head};
pub(crate) use output::Output;

use crate::error::StartError;
use crate::lock::locked;

/// The number of entries that may wait to be written. Further ones are dropped.
const WAITING_AT_MOST: usize = 8192;

/// The longest time that the end of the process waits for the last entries.
const LAST: Duration = Duration::from_secs(1);

/// The handle of the access log.
#[derive(Debug)]
pub(crate) struct AccessLog {
    queue: SyncSender<Message>,
    shared: Arc<Shared>,
    /// A channel that is disconnected when the thread has ended.
    ended: Mutex<Receiver<()>>,
}

/// A message of the queue.
#[derive(Debug)]
enum Message {
    Entry(Box<Entry>),
    /// The shared state has changed.
    Wake,
}

/// The state that workers, the writing thread and the admin address share.
#[derive(Debug, Default)]
struct Shared {
    is_on: AtomicBool,
    is_stopping: AtomicBool,
    /// The next output of the log, if it is to change.
    next: Mutex<Option<Output>>,
    written: AtomicU64,
    dropped: AtomicU64,
}

impl AccessLog {
    /// Starts a log without an output.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(crate) fn start() -> Result<Self, StartError> {
        Self::with_room(WAITING_AT_MOST)
    }

    fn with_room(entries: usize) -> Result<Self, StartError> {
        let (queue, receiver) = mpsc::sync_channel(entries);
        let (end, ended) = mpsc::channel();
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        thread::Builder::new()
            .name("access log".into())
            .spawn(move || {
                writer::run(&receiver, &of_thread);
                drop(end);
            })
            .map_err(|source| StartError { doing: "start the access log".into(), source })?;
        Ok(Self { queue, shared, ended: Mutex::new(ended) })
    }

    /// Switches to another output.
    pub(crate) fn switch(&self, output: Output) {
        let is_on = !matches!(output, Output::Off);
        *locked(&self.shared.next) = Some(output);
        self.shared.is_on.store(is_on, Ordering::Release);
        self.wake();
    }

    /// Returns whether entries are wanted.
    pub(crate) fn is_on(&self) -> bool {
        self.shared.is_on.load(Ordering::Acquire)
    }

    /// Queues an entry, or counts it as dropped.
    pub(crate) fn log(&self, entry: Box<Entry>) {
        if self.queue.try_send(Message::Entry(entry)).is_err() {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of written entries.
    pub(crate) fn written(&self) -> u64 {
        self.shared.written.load(Ordering::Relaxed)
    }

    /// Returns the number of dropped entries.
    pub(crate) fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Writes the queued entries, accepts no more, and ends the thread.
    pub(crate) fn stop(&self) {
        self.shared.is_on.store(false, Ordering::Release);
        self.shared.is_stopping.store(true, Ordering::Release);
        self.wake();
        let ended = locked(&self.ended);
        // An output that blocks must not keep the process from ending.
        let _ = ended.recv_timeout(LAST);
    }

    fn wake(&self) {
        // A full queue needs no wake-up, as the thread does not sleep then.
        let _ = self.queue.try_send(Message::Wake);
    }
}

/// Opens the output that the configuration names.
///
/// # Errors
/// When the file cannot be opened.
pub(crate) fn open(config: &uturn_lb::config::AccessLog) -> io::Result<Output> {
    Output::open(config)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};
    use std::time::Instant;

    use super::*;

    fn entry(connection: u64) -> Box<Entry> {
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 80);
        Box::new(Entry {
            began: Instant::now(),
            listener: address,
            client: address,
            connection,
            protocol: "HTTP/1.1",
            head: None,
            status: Some(200),
            received: 0,
            sent: 0,
            target: None,
            attempts: 0,
            first_byte: None,
            total: Duration::ZERO,
            why: None,
        })
    }

    #[test]
    fn entries_without_room_are_counted_and_the_log_says_how_many() {
        const ENTRIES: u64 = 20_000;
        let (mut read, write) = io::pipe().unwrap();
        let log = AccessLog::with_room(4).unwrap();
        log.switch(Output::Stream(Box::new(write)));
        assert!(log.is_on());
        // The pipe is not read meanwhile: the thread has to wait, and this one must not.
        for connection in 0..ENTRIES {
            log.log(entry(connection));
        }
        let dropped = log.dropped();
        assert!(dropped > 0);
        let text = thread::spawn(move || {
            let mut text = String::new();
            read.read_to_string(&mut text).unwrap();
            text
        });
        log.stop();
        assert!(!log.is_on());
        let text = text.join().unwrap();
        let (told, lines): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| line.contains("\"dropped\":"));
        assert_eq!(lines.len() as u64, ENTRIES - dropped);
        assert_eq!(log.written(), lines.len() as u64);
        let number = |line: &&str| -> u64 {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            value["dropped"].as_u64().unwrap()
        };
        assert_eq!(told.iter().map(number).sum::<u64>(), dropped, "{told:?}");
    }

    #[test]
    fn entries_that_cannot_be_written_count_as_dropped() {
        let (read, write) = io::pipe().unwrap();
        drop(read);
        let log = AccessLog::start().unwrap();
        log.switch(Output::Stream(Box::new(write)));
        log.log(entry(1));
        log.stop();
        assert_eq!((log.written(), log.dropped()), (0, 1));
    }
}
