//! HTTP without TLS.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use uturn_model::Outcome;

use super::{ClientProtocol, Ending, RequestSpec};
use crate::linux::serve::server::{Answer, WANTS_TLS};

/// A connection with a request, and what has been received.
#[derive(Debug)]
pub(super) struct Plain {
    stream: TcpStream,
    /// The request, until it was sent.
    request: Option<String>,
    received: Vec<u8>,
    /// Whether an answer that asks for TLS counts as an answer.
    accepts_tls_hint: bool,
}

impl Plain {
    pub(super) fn new(spec: &RequestSpec) -> io::Result<(Self, io::Result<()>)> {
        Ok(Self::on(open(spec.address)?, spec))
    }

    /// Uses a socket that was opened before.
    pub(super) fn on(socket: Socket, spec: &RequestSpec) -> (Self, io::Result<()>) {
        let begun = begin(&socket, spec.address);
        let accepts_tls_hint = matches!(spec.protocol, ClientProtocol::Any { .. });
        let (stream, request) = (socket.into(), Some(request(spec)));
        (Self { stream, request, received: Vec::new(), accepts_tls_hint }, begun)
    }

    pub(super) fn location(&self) -> Option<String> {
        location(&self.received)
    }

    pub(super) fn waits_for(&self) -> PollFd<'_> {
        let flags = if self.request.is_some() { PollFlags::OUT } else { PollFlags::IN };
        PollFd::new(&self.stream, flags)
    }

    pub(super) fn advance(&mut self, waited: Duration) -> io::Result<Option<Ending>> {
        match self.request.take() {
            Some(request) => {
                if let Some(error) = self.stream.take_error()? {
                    return Err(error);
                }
                // A request is smaller than any socket's buffer.
                self.stream.write_all(request.as_bytes())?;
                Ok(None)
            }
            None if read(&mut self.stream, &mut self.received)? => {
                read_answer(&self.received, waited, self.accepts_tls_hint).map(Some)
            }
            None => Ok(None),
        }
    }
}

/// Opens a socket for a connection. It stays in the namespace of the thread that opens it.
pub(super) fn open(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

pub(super) fn begin(socket: &Socket, address: SocketAddr) -> io::Result<()> {
    match socket.connect(&address.into()) {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::INPROGRESS) => Ok(()),
        begun => begun,
    }
}

pub(super) fn request(spec: &RequestSpec) -> String {
    let RequestSpec { host, path, .. } = spec;
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
}

/// Reads what is available. Returns whether the connection has ended.
fn read(stream: &mut TcpStream, received: &mut Vec<u8>) -> io::Result<bool> {
    let mut bytes = [0; 4096];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return Ok(true),
            Ok(count) => received.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}

/// Returns the `Location` of an answer.
pub(super) fn location(received: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(received);
    let (head, _) = text.split_once("\r\n\r\n")?;
    let mut headers = head.lines().filter_map(|line| line.split_once(':'));
    let found = headers.find(|(name, _)| name.eq_ignore_ascii_case("location"))?;
    Some(found.1.trim().to_owned())
}

/// Returns whether a header says that the server wants TLS.
fn wants_tls(head: &str) -> bool {
    head.lines().any(|line| line.eq_ignore_ascii_case(WANTS_TLS))
}

/// Turns a complete answer into an outcome.
pub(super) fn read_answer(
    received: &[u8],
    after: Duration,
    accepts_tls_hint: bool,
) -> io::Result<Ending> {
    let text = String::from_utf8_lossy(received);
    if received.is_empty() {
        return Ok((Outcome::EmptyReply, None));
    }
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        // The answer was cut within the header.
        return Ok((Outcome::Reset, None));
    };
    let status = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    match status {
        None => Err(io::Error::new(io::ErrorKind::InvalidData, "the answer is not HTTP/1.1")),
        Some(_) if accepts_tls_hint && wants_tls(head) => {
            Ok((Outcome::Answered { after }, Answer::from_text(body)))
        }
        Some(code @ 300..) => Ok((Outcome::Status { code, after }, None)),
        Some(_) => Ok((Outcome::Answered { after }, Answer::from_text(body))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_distinguished_from_refusals() {
        let after = Duration::from_secs(4);
        let read = |received: &[u8]| read_answer(received, after, false);
        let good = b"HTTP/1.1 200 OK\r\n\r\nby pod a/b\nsource 10.0.0.1\nforwarded-for \n";
        let (outcome, answer) = read(good).unwrap();
        assert_eq!(outcome, Outcome::Answered { after });
        assert_eq!(answer.unwrap().by, "pod a/b");
        let bad = b"HTTP/1.1 504 Gateway Timeout\r\n\r\n";
        assert_eq!(read(bad).unwrap().0, Outcome::Status { code: 504, after });
        assert_eq!(read(b"").unwrap().0, Outcome::EmptyReply);
        assert_eq!(read(b"HTTP/1.1 200 OK\r\n").unwrap().0, Outcome::Reset);
        assert!(read(b"SSH-2.0\r\n\r\n").is_err());
    }

    #[test]
    fn headers_may_be_in_any_case() {
        for name in ["Location", "location", "LOCATION"] {
            let received =
                format!("HTTP/1.1 302 Found\r\nDate: now\r\n{name}: http://a:80/b\r\n\r\n");
            assert_eq!(location(received.as_bytes()).as_deref(), Some("http://a:80/b"));
        }
    }

    #[test]
    fn a_demand_for_tls_is_an_answer_too() {
        let received = format!("HTTP/1.1 400 Bad Request\r\n{WANTS_TLS}\r\n\r\n");
        let outcome = |takes| read_answer(received.as_bytes(), Duration::ZERO, takes).unwrap().0;
        assert_eq!(outcome(false), Outcome::Status { code: 400, after: Duration::ZERO });
        assert_eq!(outcome(true), Outcome::AT_ONCE);
    }
}
