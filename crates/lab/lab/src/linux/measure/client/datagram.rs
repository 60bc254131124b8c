//! A UDP client, which sends a datagram with a unique number that the answer must repeat.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use uturn_model::Outcome;

use super::Ending;
use crate::linux::serve::server::Answer;

/// A datagram that is sent once.
#[derive(Debug)]
pub(super) struct Question {
    socket: UdpSocket,
    number: String,
}

impl Question {
    pub(super) fn new(to: SocketAddr) -> io::Result<(Self, io::Result<()>)> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let number = format!("{}-{number}", std::process::id());
        let socket = Socket::new(Domain::for_address(to), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        // A connected socket receives answers only from the called address.
        let begun = socket.connect(&to.into());
        let question = Self { socket: socket.into(), number };
        let begun = begun.and_then(|()| match question.socket.send(question.number.as_bytes()) {
            // A local rule dropped the datagram, so no answer will come.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            sent => sent.map(drop),
        });
        Ok((question, begun))
    }

    pub(super) fn advance(&mut self, waited: Duration) -> io::Result<Option<Ending>> {
        let mut bytes = [0; 4096];
        loop {
            let count = match self.socket.recv(&mut bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                other => other?,
            };
            let text = String::from_utf8_lossy(&bytes[..count]);
            if let Some((number, rest)) = text.split_once('\n')
                && number == self.number
            {
                let after = Outcome::Answered { after: waited };
                return Ok(Some((after, Answer::from_text(rest))));
            }
        }
    }
}

impl AsFd for Question {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
