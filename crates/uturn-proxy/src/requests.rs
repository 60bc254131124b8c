//! What the person or program that runs the load balancer asks of it while it runs.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error::StartError;

/// A request to the running load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Read the configuration again: SIGHUP.
    Reload,
    /// Accept nothing more, and stop when what is open has ended: SIGTERM or SIGINT.
    Drain,
    /// Stop at once: a second SIGTERM or SIGINT, or the end of standard input.
    Stop,
}

/// Listens for requests. With `until_stdin_closes`, the end of standard input is one: the process
/// that started this one is gone.
///
/// # Errors
/// When signals cannot be listened for.
pub fn requests(until_stdin_closes: bool) -> Result<Receiver<Request>, StartError> {
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
    thread::spawn(move || forward(signals, &sender));
    Ok(receiver)
}

fn forward(mut signals: Signals, sender: &Sender<Request>) {
    let mut is_draining = false;
    for signal in signals.forever() {
        let request = match signal {
            SIGHUP => Request::Reload,
            _ if is_draining => Request::Stop,
            _ => Request::Drain,
        };
        is_draining |= request == Request::Drain;
        if sender.send(request).is_err() {
            return;
        }
    }
}
