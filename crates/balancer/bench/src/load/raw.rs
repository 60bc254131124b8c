//! A client of layer 4 targets, over TCP and UDP.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::arguments::Exchange;
use crate::wire::{ENDLESS, MEBIBYTE, Request, SMALL};

/// The largest number of bytes that are read at a time.
const PART: usize = 128 * 1024;

/// The longest time until the answer to a datagram. Request and answer may both be lost.
const DATAGRAM: Duration = Duration::from_secs(1);

/// Returns the request to a layer 4 target. HTTP clients do not use it.
pub(super) fn request(exchange: Exchange, is_new: bool) -> Request {
    match exchange {
        Exchange::Stream => Request { length: ENDLESS, closes: false },
        Exchange::Http | Exchange::Http2 | Exchange::Echo | Exchange::Datagram => {
            Request { length: SMALL, closes: is_new }
        }
    }
}

/// A connection whose answers all have the same length.
pub(super) struct Echo {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// A connection whose only answer has no end.
pub(super) struct Flow {
    stream: TcpStream,
    buffer: Vec<u8>,
    is_asked: bool,
}

/// A socket that sends datagrams to one address.
pub(super) struct Datagrams {
    socket: UdpSocket,
}

impl Echo {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, buffer: vec![0; SMALL as usize] }
    }

    /// Sends a request and reads the answer.
    ///
    /// # Errors
    /// When the connection ends first.
    pub(super) async fn ask(&mut self, request: &[u8]) -> io::Result<()> {
        self.stream.write_all(request).await?;
        self.stream.read_exact(&mut self.buffer).await?;
        Ok(())
    }
}

impl Flow {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, buffer: vec![0; PART], is_asked: false }
    }

    /// Reads a mebibyte of the answer, after sending the request if that was not yet done.
    ///
    /// # Errors
    /// When the connection ends first.
    pub(super) async fn read(&mut self, request: &[u8]) -> io::Result<()> {
        if !self.is_asked {
            self.stream.write_all(request).await?;
            self.is_asked = true;
        }
        let mut left = MEBIBYTE;
        while left > 0 {
            let most = left.min(PART);
            match self.stream.read(&mut self.buffer[..most]).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => left -= count,
            }
        }
        Ok(())
    }
}

impl Datagrams {
    pub(super) fn new(socket: UdpSocket) -> Self {
        Self { socket }
    }

    /// Sends a request and waits for the answer.
    ///
    /// # Errors
    /// When no answer comes in time, or the port is closed.
    pub(super) async fn ask(&mut self, request: &[u8]) -> io::Result<()> {
        self.socket.send(request).await?;
        let mut answer = [0; SMALL as usize];
        match timeout(DATAGRAM, self.socket.recv(&mut answer)).await {
            Ok(received) => received.map(|_| ()),
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "no datagram came back")),
        }
    }
}
