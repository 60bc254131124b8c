//! A connection to a TCP port: reads the request, over TLS or not, and answers it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags};
use rustls::{ServerConfig, ServerConnection};

use uturn_lb::proxy_header;

use super::{Answer, WANTS_TLS};

/// The first byte of a TLS handshake.
const GREETING: u8 = 0x16;

/// The most bytes of a request's head. More bytes close the connection.
const LONGEST: usize = 1 << 20;

pub(super) struct Connection<'a> {
    stream: TcpStream,
    peer: SocketAddr,
    name: &'a str,
    tls: Option<&'a Arc<ServerConfig>>,
    mode: Mode,
    received: Vec<u8>,
    answered: bool,
    /// Whether a PROXY header has to come before anything else.
    expects_header: bool,
}

/// The result of reading a PROXY header.
enum Header {
    Read,
    Incomplete,
    Missing,
}

enum Mode {
    /// Nothing has been received yet.
    Unknown,
    Clear,
    Tls(Box<ServerConnection>),
}

impl<'a> Connection<'a> {
    pub(super) fn new(
        stream: TcpStream,
        peer: SocketAddr,
        name: &'a str,
        tls: Option<&'a Arc<ServerConfig>>,
        expects_header: bool,
    ) -> Self {
        let (mode, received) = (Mode::Unknown, Vec::new());
        Self { stream, peer, name, tls, mode, received, answered: false, expects_header }
    }

    pub(super) fn waits_for(&self) -> PollFd<'_> {
        let flags = match &self.mode {
            Mode::Tls(tls) if tls.wants_write() => PollFlags::IN | PollFlags::OUT,
            _ => PollFlags::IN,
        };
        PollFd::from_borrowed_fd(std::os::fd::AsFd::as_fd(&self.stream), flags)
    }

    /// Reads what is available. Returns whether the connection stays open.
    pub(super) fn advance(&mut self) -> bool {
        self.read_stream().unwrap_or(false) && self.received.len() < LONGEST
    }

    fn read_stream(&mut self) -> io::Result<bool> {
        if self.expects_header {
            match self.read_header()? {
                Header::Read => self.expects_header = false,
                Header::Incomplete => return Ok(true),
                Header::Missing => return Ok(false),
            }
        }
        if let Mode::Unknown = self.mode {
            let mut first = [0];
            match self.stream.peek(&mut first) {
                Ok(0) => return Ok(false),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                peeked => drop(peeked?),
            }
            self.mode = match (self.tls, first[0]) {
                (Some(config), GREETING) => {
                    let tls = ServerConnection::new(Arc::clone(config));
                    Mode::Tls(Box::new(tls.map_err(io::Error::other)?))
                }
                _ => Mode::Clear,
            };
        }
        let stays = match &mut self.mode {
            Mode::Tls(tls) => read_tls(tls, &mut self.stream, &mut self.received)?,
            _ => read_all(&mut self.stream, &mut self.received)?,
        };
        if stays && !self.answered && self.has_request() {
            self.answered = true;
            self.answer()?;
        }
        Ok(stays)
    }

    /// Reads the PROXY header. Other bytes in its place are read too, since a server that closes
    /// before it has read everything resets the connection.
    fn read_header(&mut self) -> io::Result<Header> {
        let mut bytes = [0; 4096];
        let seen = match self.stream.peek(&mut bytes) {
            Ok(0) => return Ok(Header::Missing),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Header::Incomplete),
            peeked => peeked?,
        };
        let (length, found) = match proxy_header::read(&bytes[..seen]) {
            Ok(None) => return Ok(Header::Incomplete),
            Ok(Some(header)) => (header.length, Header::Read),
            Err(_) => (seen, Header::Missing),
        };
        self.stream.read_exact(&mut bytes[..length])?;
        Ok(found)
    }

    /// Returns whether the head of a request has been received, or bytes that cannot be one.
    fn has_request(&self) -> bool {
        let is_http = self.received.first().is_none_or(u8::is_ascii_uppercase);
        !is_http || self.received.windows(4).any(|four| four == b"\r\n\r\n")
    }

    fn answer(&mut self) -> io::Result<()> {
        let head = String::from_utf8_lossy(&self.received);
        let forwarded_for = head.lines().find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case("x-forwarded-for").then(|| value.trim().to_owned())
        });
        let text = Answer::new(self.name, self.peer, forwarded_for).to_text();
        let is_http = head.starts_with(|first: char| first.is_ascii_uppercase());
        let status = match (&self.mode, self.tls) {
            (Mode::Clear, Some(_)) => format!("400 Bad Request\r\n{WANTS_TLS}"),
            _ if !is_http => "400 Bad Request".to_owned(),
            _ => "200 OK".to_owned(),
        };
        let length = text.len();
        let whole = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n{text}"
        );
        match &mut self.mode {
            Mode::Tls(tls) => {
                tls.writer().write_all(whole.as_bytes())?;
                tls.send_close_notify();
                write_all(tls, &mut self.stream)
            }
            // The text is small enough for any socket's buffer.
            _ => {
                self.stream.write_all(whole.as_bytes())?;
                self.stream.shutdown(Shutdown::Write)
            }
        }
    }
}

/// Reads what is available. Returns whether more may come.
fn read_all(stream: &mut impl Read, received: &mut Vec<u8>) -> io::Result<bool> {
    let mut bytes = [0; 4096];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return Ok(false),
            Ok(count) => received.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
            Err(error) => return Err(error),
        }
    }
}

fn read_tls(
    tls: &mut ServerConnection,
    stream: &mut TcpStream,
    received: &mut Vec<u8>,
) -> io::Result<bool> {
    loop {
        let is_over = match tls.read_tls(stream) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                write_all(tls, stream)?;
                return Ok(true);
            }
            read => read? == 0,
        };
        let understood = tls.process_new_packets();
        // Send the alert if there is one.
        write_all(tls, stream)?;
        understood.map_err(io::Error::other)?;
        if is_over || !read_all(&mut tls.reader(), received)? {
            return Ok(false);
        }
    }
}

fn write_all(tls: &mut ServerConnection, stream: &mut TcpStream) -> io::Result<()> {
    while tls.wants_write() {
        match tls.write_tls(stream) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            written => drop(written?),
        }
    }
    Ok(())
}
