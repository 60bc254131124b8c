//! Health checks: every target of every listener is asked for real, on both layers.
//!
//! A TCP target is alive where it takes a connection. A UDP one is where its machine answers
//! an echo request and nothing reports the port as closed: nothing else can be known of a
//! protocol without answers.
//!
//! Each target has a thread. Until a target's state is decided, probes follow each other without a
//! pause, so that the load balancer can serve soon; from then on they come at the configured
//! interval.

use std::fmt;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use socket2::{Domain, Protocol, Socket, Type};
use uturn_model::Protocol as Transport;
use uturn_model::lb::HealthCheck;

use super::event::Event;
use crate::health::Health;

/// How soon a wish to stop is noticed.
const ATTENTION: Duration = Duration::from_millis(100);

/// What became of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeResult {
    /// The target answered.
    Answered,
    /// Nothing came back in time.
    TimedOut,
    /// The port is closed, or a router on the way refused the probe.
    Refused,
    /// There is no way to it.
    Unreachable,
}

impl fmt::Display for ProbeResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Answered => "answered",
            Self::TimedOut => "timed out",
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
        })
    }
}

/// A target of a rule, and where its state is kept.
#[derive(Debug)]
pub(crate) struct Probe {
    pub(crate) listener: SocketAddr,
    pub(crate) transport: Transport,
    pub(crate) rule: usize,
    pub(crate) place: usize,
    pub(crate) target: SocketAddr,
    pub(crate) check: HealthCheck,
    /// The address that it asks from.
    pub(crate) source: IpAddr,
    pub(crate) alive: Arc<[AtomicBool]>,
}

impl Probe {
    /// Asks again and again until `stop` is raised.
    pub(crate) fn run(&self, report: &(dyn Fn(&Event) + Sync), stop: &AtomicBool) {
        let mut health = Health::new(&self.check);
        while !stop.load(Ordering::Relaxed) {
            let began = Instant::now();
            let result = self.ask();
            if let Some(alive) = health.record(result == ProbeResult::Answered) {
                self.alive[self.place].store(alive, Ordering::Relaxed);
                report(&Event::Health {
                    listener: self.listener,
                    protocol: self.transport.lower().into(),
                    rule: self.rule,
                    target: self.target,
                    alive,
                    result,
                });
            }
            if health.decided().is_some() {
                rest_until(began + self.check.interval, stop);
            }
        }
    }

    fn ask(&self) -> ProbeResult {
        let asked = match self.transport {
            Transport::Udp => ask_udp(self.source, self.target, self.check.timeout),
            Transport::Tcp | Transport::Sctp => {
                ask_tcp(self.source, self.target, self.check.timeout)
            }
        };
        asked.unwrap_or_else(|error| result_of(&error))
    }
}

/// Whether an address can be probed from here at all.
pub(crate) fn can_ask_from(source: IpAddr, transport: Transport) -> io::Result<()> {
    let at = SocketAddr::new(source, 0);
    match transport {
        Transport::Udp => echo_socket(source).map(drop),
        Transport::Tcp | Transport::Sctp => {
            let socket = Socket::new(Domain::for_address(at), Type::STREAM, Some(Protocol::TCP))?;
            socket.bind(&at.into())
        }
    }
}

fn ask_tcp(source: IpAddr, target: SocketAddr, timeout: Duration) -> io::Result<ProbeResult> {
    let socket = Socket::new(Domain::for_address(target), Type::STREAM, Some(Protocol::TCP))?;
    socket.bind(&SocketAddr::new(source, 0).into())?;
    socket.connect_timeout(&target.into(), timeout)?;
    Ok(ProbeResult::Answered)
}

fn ask_udp(source: IpAddr, target: SocketAddr, timeout: Duration) -> io::Result<ProbeResult> {
    let until = Instant::now() + timeout;
    let datagram = UdpSocket::bind(SocketAddr::new(source, 0))?;
    datagram.connect(target)?;
    match datagram.send(b"uturn health check\n") {
        // A rule of this machine dropped it, so nothing could refuse it.
        Err(error) if Errno::from_io_error(&error) == Some(Errno::PERM) => {}
        sent => drop(sent?),
    }
    let echoed = echo(source, target.ip(), until)?;
    // A refusal arrives no later than the machine's answer to an echo request that was sent
    // afterwards.
    datagram.set_nonblocking(true)?;
    match datagram.recv(&mut [0; 64]) {
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => Ok(result_of(&error)),
        _ if echoed => Ok(ProbeResult::Answered),
        _ => Ok(ProbeResult::TimedOut),
    }
}

/// Sends an echo request; whether its answer came in time.
fn echo(source: IpAddr, target: IpAddr, until: Instant) -> io::Result<bool> {
    let socket = echo_socket(source)?;
    socket.connect(&SocketAddr::new(target, 0).into())?;
    let id = (std::process::id() as u16).to_be_bytes();
    let (request, answer) = match target {
        IpAddr::V4(_) => (8, 0),
        IpAddr::V6(_) => (128, 129),
    };
    let mut packet = [request, 0, 0, 0, id[0], id[1], 0, 1];
    // For IPv6 the kernel fills it in.
    if target.is_ipv4() {
        [packet[2], packet[3]] = checksum(&packet).to_be_bytes();
    }
    socket.send(&packet)?;
    let mut heard = [0; 256];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        socket.set_read_timeout(Some(left))?;
        let count = match (&socket).read(&mut heard) {
            Ok(count) => count,
            Err(error) if is_timeout(&error) => return Ok(false),
            Err(error) => return Err(error),
        };
        // An IPv4 socket of this kind hears the packet's head too.
        let head = if target.is_ipv4() { usize::from(heard[0] & 0x0f) * 4 } else { 0 };
        let reply = heard[..count].get(head..).unwrap_or_default();
        if reply.first() == Some(&answer) && reply.get(4..6) == Some(&id[..]) {
            return Ok(true);
        }
    }
}

fn echo_socket(source: IpAddr) -> io::Result<Socket> {
    let protocol = if source.is_ipv4() { Protocol::ICMPV4 } else { Protocol::ICMPV6 };
    let at = SocketAddr::new(source, 0);
    let socket = Socket::new(Domain::for_address(at), Type::RAW, Some(protocol))?;
    socket.bind(&at.into())?;
    Ok(socket)
}

/// The internet's checksum over an even number of bytes.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

fn result_of(error: &io::Error) -> ProbeResult {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => ProbeResult::TimedOut,
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            ProbeResult::Unreachable
        }
        // A packet that a rule of this very machine drops never gets anywhere.
        _ if Errno::from_io_error(error) == Some(Errno::PERM) => ProbeResult::TimedOut,
        _ => ProbeResult::Refused,
    }
}

fn rest_until(when: Instant, stop: &AtomicBool) {
    loop {
        let left = when.saturating_duration_since(Instant::now());
        if left.is_zero() || stop.load(Ordering::Relaxed) {
            return;
        }
        thread::sleep(left.min(ATTENTION));
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const PATIENCE: Duration = Duration::from_secs(5);

    #[test]
    fn a_port_is_open_or_closed() {
        let listener = TcpListener::bind((HERE, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(ask_tcp(HERE, address, PATIENCE).unwrap(), ProbeResult::Answered);
        drop(listener);
        let refused = ask_tcp(HERE, address, PATIENCE).unwrap_err();
        assert_eq!(result_of(&refused), ProbeResult::Refused);
    }

    #[test]
    fn checksums_are_the_internets() {
        // RFC 1071, section 3.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(checksum(&bytes), !0xddf2);
    }
}
