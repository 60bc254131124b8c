//! The process that serves: it offers to be taken over from.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process;
use std::sync::mpsc::{Sender, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use rustix::process::geteuid;

use super::{BETWEEN_STEPS, DONE, LEAVE, SHARE, STEP, address_of, sockets};
use crate::error::StartError;
use crate::requests::{Request, Step};

/// How long to wait when the process has no descriptor left.
const EXHAUSTED: Duration = Duration::from_millis(100);

/// Lets another process of this user, or of root, take over from this one: what it asks for is sent
/// as [`Request::TakeOver`].
///
/// # Errors
/// When the name is another process's. Where containers share a network namespace and not their
/// process ids, two may have the same one.
pub fn offer(requests: Sender<Request>) -> Result<(), StartError> {
    let failed = |source| StartError { doing: "let another process take over".into(), source };
    let address = address_of(process::id()).map_err(failed)?;
    let listener = UnixListener::bind_addr(&address).map_err(failed)?;
    let serve = move || {
        for stream in listener.incoming() {
            match stream.map(|stream| follow(&stream, &requests)) {
                Ok(Outcome::TakenOver) => return,
                Ok(Outcome::Refused) => {}
                Ok(Outcome::Failed(why)) => {
                    if requests.send(Request::TakeOver(Step::Fail(why))).is_err() {
                        return;
                    }
                }
                Err(_) => thread::sleep(EXHAUSTED),
            }
        }
    };
    thread::Builder::new().name("takeover".into()).spawn(serve).map_err(failed)?;
    Ok(())
}

/// How the work of a process that connects ends.
enum Outcome {
    TakenOver,
    /// It may not take over.
    Refused,
    Failed(io::Error),
}

fn follow(stream: &UnixStream, requests: &Sender<Request>) -> Outcome {
    let is_allowed = |user| user == 0 || user == geteuid().as_raw();
    if !getsockopt(stream, PeerCredentials).is_ok_and(|peer| is_allowed(peer.uid())) {
        return Outcome::Refused;
    }
    match follow_steps(stream, requests) {
        Ok(()) => Outcome::TakenOver,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Outcome::Failed(io::Error::other("the other process has ended"))
        }
        Err(error) => Outcome::Failed(error),
    }
}

fn follow_steps(mut stream: &UnixStream, requests: &Sender<Request>) -> io::Result<()> {
    stream.set_read_timeout(Some(BETWEEN_STEPS))?;
    stream.set_write_timeout(Some(STEP))?;
    loop {
        let mut step = [0];
        stream.read_exact(&mut step)?;
        match step[0] {
            SHARE => sockets::send(stream, &ask(requests, Step::Share)??)?,
            LEAVE => {
                ask(requests, Step::Leave)?;
                stream.write_all(&[LEAVE])?;
            }
            DONE => return tell(requests, Request::HandOver),
            _ => return Err(io::Error::other("the other process asks for something unknown")),
        }
    }
}

/// Has the process take a step, and waits for what it answers.
fn ask<T>(requests: &Sender<Request>, step: fn(SyncSender<T>) -> Step) -> io::Result<T> {
    let (answer, answers) = sync_channel(1);
    tell(requests, Request::TakeOver(step(answer)))?;
    answers.recv().map_err(|_| io::Error::other("this process stops"))
}

fn tell(requests: &Sender<Request>, request: Request) -> io::Result<()> {
    requests.send(request).map_err(|_| io::Error::other("this process stops"))
}
