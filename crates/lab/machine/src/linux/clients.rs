//! The clients of a running machine, outside: passes frames between their sockets and the channel.
//! The content of a frame concerns only the client and the inside.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags};

use super::frame::{Frame, Message};

/// The clients of a machine, by the number of their stream.
#[derive(Debug, Default)]
pub(super) struct Clients {
    control: Option<Arc<UnixListener>>,
    all: BTreeMap<u32, Client>,
    last: u32,
}

#[derive(Debug)]
struct Client {
    socket: UnixStream,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    is_over: bool,
}

impl Clients {
    /// Creates the clients of a machine, which are accepted on this socket.
    pub(super) fn of(control: Option<Arc<UnixListener>>) -> io::Result<Self> {
        if let Some(control) = &control {
            control.set_nonblocking(true)?;
        }
        Ok(Self { control, ..Self::default() })
    }

    /// Returns the file descriptors that have to be polled.
    pub(super) fn awaited(&self) -> impl Iterator<Item = PollFd<'_>> {
        let control = self.control.iter().map(|control| control.as_fd());
        let control = control.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        control.chain(self.all.values().map(|client| {
            let writes = !client.outgoing.is_empty();
            let flags = if writes { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            PollFd::new(&client.socket, flags)
        }))
    }

    /// Passes a frame of the inside on to its client.
    pub(super) fn hear(&mut self, frame: &Frame) {
        let Some(client) = self.all.get_mut(&frame.stream) else { return };
        client.outgoing.extend(frame.encode());
        client.is_over |= matches!(frame.message, Message::Ended(_) | Message::Cannot(_));
    }

    /// Accepts new clients, and writes and reads as far as that does not block. Returns frames
    /// for the inside.
    ///
    /// # Errors
    /// If a client cannot be accepted.
    pub(super) fn serve(&mut self) -> io::Result<Vec<Frame>> {
        self.accept()?;
        let mut frames = Vec::new();
        self.all.retain(|&number, client| {
            let is_there = client.serve(number, &mut frames);
            if !is_there && !client.is_over {
                frames.push(Frame { stream: number, message: Message::Gone });
            }
            is_there
        });
        Ok(frames)
    }

    fn accept(&mut self) -> io::Result<()> {
        let Some(control) = &self.control else { return Ok(()) };
        loop {
            match control.accept() {
                Ok((socket, _)) => {
                    socket.set_nonblocking(true)?;
                    self.last += 1;
                    let (incoming, outgoing) = (Vec::new(), Vec::new());
                    let client = Client { socket, incoming, outgoing, is_over: false };
                    self.all.insert(self.last, client);
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(()),
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => {}
                    _ => return Err(error),
                },
            }
        }
    }
}

impl Client {
    /// Reads and writes as far as possible. Returns `false` if the client is gone, or has been told
    /// everything.
    fn serve(&mut self, number: u32, frames: &mut Vec<Frame>) -> bool {
        if self.write().is_err() || self.is_over && self.outgoing.is_empty() {
            return false;
        }
        let is_open = self.read();
        loop {
            match Frame::take(&mut self.incoming) {
                Ok(Some(frame)) => frames.push(Frame { stream: number, ..frame }),
                Ok(None) => return is_open,
                // The peer is no client of the machine.
                Err(_) => return false,
            }
        }
    }

    fn write(&mut self) -> io::Result<()> {
        while !self.outgoing.is_empty() {
            match self.socket.write(&self.outgoing) {
                Ok(length) => drop(self.outgoing.drain(..length)),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(()),
                    io::ErrorKind::Interrupted => {}
                    _ => return Err(error),
                },
            }
        }
        Ok(())
    }

    /// Reads the available data. Returns `false` if the client has closed its end.
    fn read(&mut self) -> bool {
        let mut bytes = [0; 16 * 1024];
        loop {
            match self.socket.read(&mut bytes) {
                Ok(0) => return false,
                Ok(length) => self.incoming.extend(&bytes[..length]),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return true,
                    io::ErrorKind::Interrupted => {}
                    _ => return false,
                },
            }
        }
    }
}
