//! The client side of a takeover, in the process that takes over.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;

use super::{DONE, Inherited, LEAVE, SHARE, STEP, place, sockets};
use crate::error::StartError;

/// The serving process that this one takes over from.
#[derive(Debug)]
pub(crate) struct Predecessor {
    process: u32,
    stream: UnixStream,
}

impl Predecessor {
    /// Finds a process that offers to be taken over from.
    ///
    /// # Errors
    /// When there is no such process, or it does not offer that here.
    pub(crate) fn find(process: u32) -> Result<Self, StartError> {
        let stream = connect(process).map_err(|source| failed(process, source))?;
        Ok(Self { process, stream })
    }

    /// Requests the listening sockets. Both processes accept connections at them from then on.
    ///
    /// # Errors
    /// When the process does not send them, or this process may not have so many.
    pub(crate) fn sockets(&self) -> Result<Inherited, StartError> {
        let sockets = || {
            self.tell(SHARE)?;
            Inherited::new(sockets::receive(&self.stream)?)
        };
        self.in_its_words(sockets())
    }

    /// Requests that the process leaves the kernel's rules to this one.
    ///
    /// # Errors
    /// When it does not.
    pub(crate) fn leave_kernel(&self) -> Result<(), StartError> {
        let left = || {
            self.tell(LEAVE)?;
            let mut answer = [0];
            (&self.stream).read_exact(&mut answer)
        };
        self.in_its_words(left())
    }

    /// Requests that the process accepts nothing more, and stops when its open connections have
    /// ended. It may have ended already.
    ///
    /// # Errors
    /// When the process still exists, but does not read the request.
    pub(crate) fn stop(self) -> Result<(), StartError> {
        match self.tell(DONE) {
            Err(_) if !Path::new(&format!("/proc/{}", self.process)).exists() => Ok(()),
            told => self.in_its_words(told),
        }
    }

    fn tell(&self, step: u8) -> io::Result<()> {
        (&self.stream).write_all(&[step])
    }

    fn in_its_words<T>(&self, outcome: io::Result<T>) -> Result<T, StartError> {
        outcome.map_err(|source| {
            let source = match source.kind() {
                io::ErrorKind::UnexpectedEof
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::ConnectionReset => io::Error::other(
                    "it has hung up. Either it stops, or it runs as another user than this process",
                ),
                io::ErrorKind::WouldBlock => io::Error::other("it does not answer"),
                _ => source,
            };
            failed(self.process, source)
        })
    }
}

fn connect(process: u32) -> io::Result<UnixStream> {
    let program = |process: &str| fs::read_to_string(format!("/proc/{process}/comm"));
    if program(&process.to_string())? != program("self")? {
        return Err(io::Error::other("it is not this program"));
    }
    let offers_nothing =
        || io::Error::other("it is not a `uturn lb run`, or it runs in another network namespace");
    let user = user_of(process)?;
    let socket = place::find(user, process)?.ok_or_else(offers_nothing)?;
    let stream = UnixStream::connect(socket).map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused => offers_nothing(),
        _ => error,
    })?;
    // The socket may belong to a previous process, or to another user.
    let peer = getsockopt(&stream, PeerCredentials)?;
    if i32::try_from(process) != Ok(peer.pid()) || peer.uid() != user {
        return Err(offers_nothing());
    }
    stream.set_read_timeout(Some(STEP))?;
    stream.set_write_timeout(Some(STEP))?;
    Ok(stream)
}

/// Returns the user that a process runs as.
fn user_of(process: u32) -> io::Result<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let effective = ids.and_then(|ids| ids.split_whitespace().nth(1)?.parse().ok());
    effective.ok_or_else(|| io::Error::other("its user is not known"))
}

fn failed(process: u32, source: io::Error) -> StartError {
    StartError { doing: format!("take over from process {process}"), source }
}
