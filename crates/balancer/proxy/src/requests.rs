//! Requests from administrators and programs to the running load balancer.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, RecvError, RecvTimeoutError, Sender, SyncSender, channel};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::sync::oneshot;

use crate::error::StartError;

/// A request to the running load balancer.
#[derive(Debug)]
pub enum Request {
    /// Read the configuration again: SIGHUP, or the admin address, which waits for the outcome.
    Reload(Option<Answer>),
    /// Serve a configuration that came to the admin address.
    Replace(Replacement),
    /// Files that are watched have changed.
    Changed(Changed),
    /// Accept nothing more, and stop when what is open has ended: SIGTERM or SIGINT.
    Drain,
    /// Prepare a takeover by another process, which requests one step after the other.
    TakeOver(Step),
    /// The process that took over serves everything: stop, as for [`Request::Drain`].
    HandOver,
    /// Stop at once: a second SIGTERM or SIGINT, or the end of standard input.
    Stop,
}

/// A step of a takeover by another process.
#[derive(Debug)]
pub enum Step {
    /// Send all listening sockets to the other process, or none.
    Share(SyncSender<io::Result<Vec<OwnedFd>>>),
    /// Leave the kernel's rules to the other process, and answer when they are left.
    Leave(SyncSender<()>),
    /// Continue to serve as before: the takeover failed for this reason.
    Fail(io::Error),
}

/// The kind of watched files that have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// The configuration files.
    Config,
    /// Files that it names: certificates, keys, the admin token.
    Named,
}

/// The part of the configuration that documents describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The whole configuration.
    Whole,
    /// Only the changes.
    Part,
}

/// A configuration that came to the admin address, or a change of it.
#[derive(Debug)]
pub struct Replacement {
    /// The documents.
    pub text: String,
    /// Whether the documents are the whole configuration or only changes.
    pub scope: Scope,
    /// The versions that may be replaced; `None` for any.
    pub replaces: Option<Vec<String>>,
    /// The receiver of the outcome.
    pub answer: Answer,
}

/// The receiver of the outcome of a configuration change.
#[derive(Debug)]
pub struct Answer(oneshot::Sender<Result<(), Refusal>>);

/// The reason why the configuration was not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The configuration is wrong; there is a message for each fault.
    Faults(Vec<String>),
    /// The configuration cannot be served here.
    NotServed(String),
    /// The served version is not one of those that were to be replaced.
    Outdated,
}

impl Answer {
    pub(crate) fn new() -> (Self, oneshot::Receiver<Result<(), Refusal>>) {
        let (sender, receiver) = oneshot::channel();
        (Self(sender), receiver)
    }

    /// Sends the outcome.
    pub fn give(self, outcome: Result<(), Refusal>) {
        // A client that is gone does not need the outcome.
        let _ = self.0.send(outcome);
    }
}

/// The requests to the running load balancer, in the order in which they come.
#[derive(Debug)]
pub struct Requests {
    sender: Sender<Request>,
    receiver: Receiver<Request>,
}

impl Requests {
    /// Waits for the next request.
    ///
    /// # Errors
    /// Never while this exists, because it holds a sender itself.
    pub fn recv(&self) -> Result<Request, RecvError> {
        self.receiver.recv()
    }

    /// Waits for the next request, at most this long.
    ///
    /// # Errors
    /// When none comes in time.
    pub fn recv_timeout(&self, limit: Duration) -> Result<Request, RecvTimeoutError> {
        self.receiver.recv_timeout(limit)
    }

    /// Returns a sender for other sources of requests.
    pub fn sender(&self) -> Sender<Request> {
        self.sender.clone()
    }
}

/// Listens for requests. With `until_stdin_closes`, the end of standard input is a request to stop,
/// as the process that started this one is then gone.
///
/// # Errors
/// When signals cannot be listened for.
pub fn requests(until_stdin_closes: bool) -> Result<Requests, StartError> {
    let (sender, receiver) = channel();
    let signals = Signals::new([SIGHUP, SIGINT, SIGTERM]);
    let signals =
        signals.map_err(|source| StartError { doing: "listen for signals".into(), source })?;
    if until_stdin_closes {
        let sender = sender.clone();
        thread::spawn(move || {
            let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
            let _ = sender.send(Request::Stop);
        });
    }
    let of_signals = sender.clone();
    thread::spawn(move || forward(signals, &of_signals));
    Ok(Requests { sender, receiver })
}

fn forward(mut signals: Signals, sender: &Sender<Request>) {
    let mut is_draining = false;
    for signal in signals.forever() {
        let request = match signal {
            SIGHUP => Request::Reload(None),
            _ if is_draining => Request::Stop,
            _ => {
                is_draining = true;
                Request::Drain
            }
        };
        if sender.send(request).is_err() {
            return;
        }
    }
}
