//! What clients see of the pair: whether new connections work, and which open ones break.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::space::Space;

/// How long a new connection and its answer may take before the next is tried.
pub(crate) const TRY: Duration = Duration::from_millis(50);

/// The time between two new connections.
const PAUSE: Duration = Duration::from_millis(5);

/// How long a connection may be silent that may have been lost.
pub(crate) const SILENCE: Duration = Duration::from_secs(2);

/// How long one may be silent that has to work: longer than any is on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// The same where an answer is only waited for: nothing sends it again.
const WAIT: Duration = Duration::from_secs(1);

/// How long a new connection may be without an answer before another one is opened.
const ANSWER: Duration = Duration::from_secs(20);

/// A new connection now and then, each with a question.
pub(crate) struct Watch {
    stop: Sender<()>,
    thread: JoinHandle<Vec<Instant>>,
}

impl Watch {
    pub(crate) fn start(client: &Space, address: SocketAddr) -> Self {
        let (stop, stopped) = channel();
        let thread = client.run(|| {
            std::thread::spawn(move || {
                let mut answered = Vec::new();
                loop {
                    let is_last = stopped.recv_timeout(PAUSE) != Err(RecvTimeoutError::Timeout);
                    if ask_anew(address, TRY).is_ok() {
                        answered.push(Instant::now());
                    }
                    if is_last {
                        return answered;
                    }
                }
            })
        });
        Self { stop, thread }
    }

    /// The longest time without an answer, after an instant.
    pub(crate) fn longest_gap(self, since: Instant) -> Duration {
        drop(self.stop);
        let answered = self.thread.join().unwrap();
        let later = answered.iter().copied().filter(|at| *at > since);
        let gaps = later.scan(since, |before, at| Some(at - std::mem::replace(before, at)));
        gaps.max().unwrap_or_default()
    }
}

/// Opens a connection and returns what its target tells: its name and the client's address.
pub(crate) fn ask_anew(address: SocketAddr, limit: Duration) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, limit)?;
    stream.set_read_timeout(Some(limit))?;
    match address.port() {
        80 => ask(&mut stream, "/"),
        _ => read_line(&mut stream),
    }
}

fn send_request(stream: &mut TcpStream, path: &str) -> io::Result<()> {
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: shop\r\n\r\n").as_bytes())
}

fn ask(stream: &mut TcpStream, path: &str) -> io::Result<String> {
    send_request(stream, path)?;
    read_answer(stream)
}

/// Reads an answer; returns its body, which is shorter than ten thousand bytes.
fn read_answer(stream: &mut TcpStream) -> io::Result<String> {
    let mut length = 0;
    loop {
        let line = read_line(stream)?.to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.trim().parse().unwrap();
        }
        if line.starts_with("http/") && !line.contains(" 200 ") {
            return Err(io::Error::other(line));
        }
        if line.trim().is_empty() {
            let mut body = vec![0; length];
            stream.read_exact(&mut body)?;
            return Ok(String::from_utf8_lossy(&body).into_owned());
        }
    }
}

/// A line, without its end.
fn read_line(stream: &mut TcpStream) -> io::Result<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        stream.read_exact(&mut byte)?;
        match byte {
            [b'\n'] => return String::from_utf8(line).map_err(io::Error::other),
            [byte] => line.push(byte),
        }
    }
}

/// How an open connection is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Layer 7: it waits for a request.
    Idle,
    /// Layer 7: a request waits for its answer.
    Waiting,
    /// Layer 4: the client sends, the target answers.
    ClientSpeaks,
    /// Layer 4: the target sends all the time.
    TargetSpeaks,
}

/// Connections of one use.
pub(crate) struct Open {
    pub(crate) used: Use,
    pub(crate) address: SocketAddr,
    streams: Vec<TcpStream>,
}

impl Open {
    /// `silence` is how long they may be silent later.
    pub(crate) fn new(
        client: &Space,
        address: SocketAddr,
        used: Use,
        count: usize,
        silence: Duration,
    ) -> Self {
        let open = || (0..count).map(|_| open(address, used, silence)).collect::<io::Result<_>>();
        Self { used, address, streams: client.run(open).unwrap() }
    }

    /// Uses each of them again, on a thread of its own.
    pub(crate) fn use_again(self, client: &Space) -> Checked {
        let Self { used, address, streams } = self;
        let check = move |stream| std::thread::spawn(move || use_again(stream, used));
        let checks = client.run(|| streams.into_iter().map(check).collect());
        Checked { used, address, checks }
    }
}

/// Connections that are used again after a failure.
pub(crate) struct Checked {
    pub(crate) used: Use,
    pub(crate) address: SocketAddr,
    checks: Vec<JoinHandle<io::Result<()>>>,
}

/// How connections came through a failure.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fates {
    pub(crate) work: usize,
    /// Their clients were told.
    pub(crate) reset: usize,
    /// Their clients get no answer.
    pub(crate) silent: usize,
}

impl Checked {
    pub(crate) fn fates(self) -> Fates {
        let mut fates = Fates::default();
        for check in self.checks {
            match check.join().unwrap() {
                Ok(()) => fates.work += 1,
                Err(error) if error.kind() == ErrorKind::WouldBlock => fates.silent += 1,
                Err(_) => fates.reset += 1,
            }
        }
        fates
    }
}

fn use_again(mut stream: TcpStream, used: Use) -> io::Result<()> {
    match used {
        Use::Idle => ask(&mut stream, "/").map(drop),
        Use::Waiting => {
            stream.set_read_timeout(Some(WAIT))?;
            read_answer(&mut stream).map(drop)
        }
        Use::ClientSpeaks => {
            stream.write_all(b"hello\n")?;
            read_line(&mut stream).map(drop)
        }
        Use::TargetSpeaks => speaks_on(&mut stream),
    }
}

/// Opens a connection. One that breaks is opened anew: the VIP moved meanwhile.
fn open(address: SocketAddr, used: Use, silence: Duration) -> io::Result<TcpStream> {
    let end = Instant::now() + PATIENCE;
    loop {
        match try_to_open(address, used) {
            Ok(stream) => {
                stream.set_read_timeout(Some(silence))?;
                return Ok(stream);
            }
            Err(error) if !is_broken(&error) || Instant::now() > end => return Err(error),
            Err(_) => {}
        }
    }
}

/// Returns whether a connection got no answer, or was reset.
fn is_broken(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionReset)
}

fn try_to_open(address: SocketAddr, used: Use) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(ANSWER))?;
    match used {
        Use::Idle => drop(ask(&mut stream, "/")?),
        Use::Waiting => send_request(&mut stream, "/wait")?,
        Use::ClientSpeaks => drop(read_line(&mut stream)?),
        Use::TargetSpeaks => {
            read_line(&mut stream)?;
            stream.write_all(b"speak\n")?;
        }
    }
    Ok(stream)
}

/// Waits for what the target sends after what has arrived already.
fn speaks_on(stream: &mut TcpStream) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    stream.set_nonblocking(false)?;
    match stream.read(&mut buffer)? {
        0 => Err(ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}
