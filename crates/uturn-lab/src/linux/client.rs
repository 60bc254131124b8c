//! Clients: connections that are really made, and how each of them ends.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use uturn_model::Outcome;

use super::namespace::Namespace;
use super::server::Answer;

/// What a client sends, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Aim {
    pub(crate) address: SocketAddr,
    pub(crate) host: String,
    pub(crate) path: String,
}

/// How a connection ended, and what was answered.
pub(crate) type Ending = (Outcome, Option<Answer>);

/// One connection and what has come of it so far.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// Which flow it belongs to.
    pub(crate) flow: usize,
    began: Instant,
    limit: Duration,
    stream: TcpStream,
    /// What is still to be sent.
    request: Option<String>,
    heard: Vec<u8>,
    ending: Option<io::Result<Ending>>,
}

impl Attempt {
    /// Begins `count` connections from within a namespace, in order.
    pub(crate) fn begin(
        from: &Namespace,
        aim: &Aim,
        flow: usize,
        count: u64,
        limit: Duration,
    ) -> io::Result<Vec<Self>> {
        from.run(|| (0..count).map(|_| Self::new(aim, flow, limit)).collect())
    }

    fn new(aim: &Aim, flow: usize, limit: Duration) -> io::Result<Self> {
        let Aim { address, host, path } = aim;
        let socket = Socket::new(Domain::for_address(*address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        let began = Instant::now();
        let ending = match socket.connect(&(*address).into()) {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::INPROGRESS) => None,
            Err(error) => Some(failure(error)),
            Ok(()) => None,
        };
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let (stream, heard) = (socket.into(), Vec::new());
        Ok(Self { flow, began, limit, stream, request: Some(request), heard, ending })
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ending.is_some()
    }

    /// What came of it, once it has ended.
    pub(crate) fn into_ending(self) -> Option<io::Result<Ending>> {
        self.ending
    }

    /// When it gives up.
    pub(crate) fn deadline(&self) -> Instant {
        self.began + self.limit
    }

    /// What it waits for.
    pub(crate) fn waits_for(&self) -> PollFd<'_> {
        let flags = if self.request.is_some() { PollFlags::OUT } else { PollFlags::IN };
        PollFd::new(&self.stream, flags)
    }

    /// Goes on after what it waited for has come.
    pub(crate) fn go_on(&mut self) {
        if self.has_ended() {
            return;
        }
        let waited = whole_seconds(self.began.elapsed());
        self.ending = match self.request.take() {
            Some(request) => send(&mut self.stream, &request).err().map(failure),
            None => match read(&mut self.stream, &mut self.heard) {
                Ok(false) => None,
                Ok(true) => Some(read_answer(&self.heard, waited)),
                Err(error) => Some(failure(error)),
            },
        };
    }

    /// Gives up if it is time.
    pub(crate) fn look_at_clock(&mut self, now: Instant) {
        if now >= self.deadline() {
            self.ending.get_or_insert(Ok((Outcome::Hangs, None)));
        }
    }
}

fn send(stream: &mut TcpStream, request: &str) -> io::Result<()> {
    match stream.take_error()? {
        Some(error) => Err(error),
        // A request is smaller than any socket's buffer.
        None => stream.write_all(request.as_bytes()),
    }
}

/// Reads what is there; whether that was all.
fn read(stream: &mut TcpStream, heard: &mut Vec<u8>) -> io::Result<bool> {
    let mut bytes = [0; 4096];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return Ok(true),
            Ok(count) => heard.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}

fn read_answer(heard: &[u8], after: Duration) -> io::Result<Ending> {
    let text = String::from_utf8_lossy(heard);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        // Closed before it said anything of use.
        return Ok((Outcome::Reset, None));
    };
    let status = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    match status {
        None => Err(io::Error::new(io::ErrorKind::InvalidData, "the answer is not HTTP/1.1")),
        Some(code @ 400..) => Ok((Outcome::Status { code, after }, None)),
        Some(_) => Ok((Outcome::Answered { after }, Answer::from_text(body))),
    }
}

/// Outcomes that the kernel tells as errors; all other errors are the lab's own.
fn failure(error: io::Error) -> io::Result<Ending> {
    let outcome = match error.kind() {
        io::ErrorKind::ConnectionRefused => Outcome::Refused,
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Outcome::Reset,
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => Outcome::Unreachable,
        io::ErrorKind::TimedOut => Outcome::Hangs,
        _ => return Err(error),
    };
    Ok((outcome, None))
}

/// Waiting is done in whole seconds (timeouts, retransmissions); the rest is the machine's.
fn whole_seconds(waited: Duration) -> Duration {
    Duration::from_secs((waited + Duration::from_millis(100)).as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_counted_in_whole_seconds() {
        for (milliseconds, seconds) in [(0, 0), (899, 0), (900, 1), (4003, 4), (4600, 4)] {
            let waited = Duration::from_millis(milliseconds);
            assert_eq!(whole_seconds(waited), Duration::from_secs(seconds), "{milliseconds}");
        }
    }

    #[test]
    fn answers_are_told_from_refusals() {
        let after = Duration::from_secs(4);
        let good = b"HTTP/1.1 200 OK\r\n\r\nby pod a/b\nsource 10.0.0.1\nforwarded-for \n";
        let (outcome, answer) = read_answer(good, after).unwrap();
        assert_eq!(outcome, Outcome::Answered { after });
        assert_eq!(answer.unwrap().by, "pod a/b");
        let bad = b"HTTP/1.1 504 Gateway Timeout\r\n\r\n";
        assert_eq!(read_answer(bad, after).unwrap().0, Outcome::Status { code: 504, after });
        assert_eq!(read_answer(b"", after).unwrap().0, Outcome::Reset);
        assert!(read_answer(b"SSH-2.0\r\n\r\n", after).is_err());
    }
}
