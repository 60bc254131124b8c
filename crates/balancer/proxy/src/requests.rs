//! What the person or program that runs the load balancer asks of it while it runs.

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
    /// Another process takes over. It asks for a step, and then for the next one.
    TakeOver(Step),
    /// The process that takes over serves everything: stop, as for [`Request::Drain`].
    HandOver,
    /// Stop at once: a second SIGTERM or SIGINT, or the end of standard input.
    Stop,
}

/// What another process asks for that takes over.
#[derive(Debug)]
pub enum Step {
    /// Give it the listening sockets: all, or none.
    Share(SyncSender<io::Result<Vec<OwnedFd>>>),
    /// Leave the kernel's rules to it, and answer when they are left.
    Leave(SyncSender<()>),
    /// Serve on as before: it has not taken over, for this reason.
    Fail(io::Error),
}

/// What has changed among the files that are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// The configuration.
    Config,
    /// Files that it names: certificates, keys, the admin token.
    Named,
}

/// How much of a configuration documents are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All that is served.
    Whole,
    /// What changes.
    Part,
}

/// A configuration that came to the admin address, or a change of it.
#[derive(Debug)]
pub struct Replacement {
    /// The documents.
    pub text: String,
    /// Whether they are all that is served, or a change of it.
    pub scope: Scope,
    /// The versions that it may replace; `None` for any.
    pub replaces: Option<Vec<String>>,
    /// Takes the outcome.
    pub answer: Answer,
}

/// Takes the outcome of a change of the configuration.
#[derive(Debug)]
pub struct Answer(oneshot::Sender<Result<(), Refusal>>);

/// Why the configuration has not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is wrong; a message for each fault.
    Faults(Vec<String>),
    /// It cannot be served here.
    NotServed(String),
    /// Another version is served than the one that it was to replace.
    Outdated,
}

impl Answer {
    pub(crate) fn new() -> (Self, oneshot::Receiver<Result<(), Refusal>>) {
        let (sender, receiver) = oneshot::channel();
        (Self(sender), receiver)
    }

    /// Gives the outcome.
    pub fn give(self, outcome: Result<(), Refusal>) {
        // A client that is gone has no use for it.
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
    /// Never while this is there, because it could send one itself.
    pub fn recv(&self) -> Result<Request, RecvError> {
        self.receiver.recv()
    }

    /// Waits for the next request, and no longer than this.
    ///
    /// # Errors
    /// When none comes in time.
    pub fn recv_timeout(&self, limit: Duration) -> Result<Request, RecvTimeoutError> {
        self.receiver.recv_timeout(limit)
    }

    /// What other sources of requests send theirs with.
    pub fn sender(&self) -> Sender<Request> {
        self.sender.clone()
    }
}

/// Listens for requests. With `until_stdin_closes`, the end of standard input is one: the process
/// that started this one is gone.
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
