//! The offer of the process that serves: another process may take over from it.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process;
use std::sync::mpsc::{Sender, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use rustix::process::geteuid;

use super::{BETWEEN_STEPS, DONE, LEAVE, SHARE, STEP, place, sockets};
use crate::error::StartError;
use crate::requests::{Request, Step};

/// The pause when the process has no descriptor left.
const EXHAUSTED: Duration = Duration::from_millis(100);

/// The number of attempts to make a folder that another process keeps removing.
const TRIES: usize = 10;

/// The socket at which another process may take over, until this is dropped.
#[derive(Debug)]
pub struct Offer {
    socket: PathBuf,
}

impl Drop for Offer {
    fn drop(&mut self) {
        // A socket that stays is removed by the next process of this user.
        let _ = fs::remove_file(&self.socket);
        if let Some(folder) = self.socket.parent() {
            // This fails if the folder has sockets of other processes.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Lets another process of this user, or of root, take over from this one. The steps that it asks
/// for are sent as [`Request::TakeOver`].
///
/// # Errors
/// When no folder can be made that only this user may enter.
pub fn offer(requests: Sender<Request>) -> Result<Offer, StartError> {
    let failed = |source| StartError { doing: "let another process take over".into(), source };
    let (listener, offer) = listen().map_err(failed)?;
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
    Ok(offer)
}

fn listen() -> io::Result<(UnixListener, Offer)> {
    // Another process that stops may remove the folder before there is a socket in it.
    let mut tried = (0..TRIES).map(|_| listen_once());
    let is_final = |outcome: &io::Result<_>| {
        outcome.as_ref().err().is_none_or(|error| error.kind() != io::ErrorKind::NotFound)
    };
    tried.find(is_final).unwrap_or_else(listen_once)
}

fn listen_once() -> io::Result<(UnixListener, Offer)> {
    let folder = place::make_folder(geteuid().as_raw())?;
    place::remove_leftovers(&folder);
    let socket = folder.join(place::name(process::id())?);
    // A previous process with the same id may have left a socket.
    let _ = fs::remove_file(&socket);
    Ok((UnixListener::bind(&socket)?, Offer { socket }))
}

/// The outcome of a connection at the socket.
enum Outcome {
    TakenOver,
    /// The other process may not take over.
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

/// Asks for a step of the takeover, and waits for the answer.
fn ask<T>(requests: &Sender<Request>, step: fn(SyncSender<T>) -> Step) -> io::Result<T> {
    let (answer, answers) = sync_channel(1);
    tell(requests, Request::TakeOver(step(answer)))?;
    answers.recv().map_err(|_| io::Error::other("this process stops"))
}

fn tell(requests: &Sender<Request>, request: Request) -> io::Result<()> {
    requests.send(request).map_err(|_| io::Error::other("this process stops"))
}

#[cfg(test)]
mod tests {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::fs::MetadataExt as _;
    use std::os::unix::net::SocketAddr;
    use std::sync::mpsc::channel;

    use super::*;
    use crate::takeover::Predecessor;

    /// Anybody can take an abstract name, which is in no file system.
    #[test]
    fn a_name_that_somebody_has_taken_keeps_nobody_from_taking_over() {
        let id = process::id();
        let name = SocketAddr::from_abstract_name(format!("uturn-lb/takeover/{id}")).unwrap();
        let _taken = UnixListener::bind_addr(&name).unwrap();
        let (requests, received) = channel();
        let offer = offer(requests).unwrap();
        let folder = fs::metadata(offer.socket.parent().unwrap()).unwrap();
        assert_eq!(folder.mode() & 0o777, 0o700);
        let predecessor = Predecessor::find(id).unwrap();
        predecessor.stop().unwrap();
        assert!(matches!(received.recv(), Ok(Request::HandOver)));
        let socket = offer.socket.clone();
        drop(offer);
        assert!(!socket.exists());
        Predecessor::find(id).unwrap_err();
    }
}
