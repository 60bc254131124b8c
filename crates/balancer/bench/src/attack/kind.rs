//! The kinds of hostile clients, with their numbers and the pauses between their attempts.

use std::io;
use std::time::Duration;

use super::{Attackers, dripping, floods, other};
use crate::ports::{ADMIN, HTTP, HTTPS, PROXIED, TCP, TCP_SSL};

/// A kind of hostile client.
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) attempt: Attempt,
    /// The number of clients of this kind at a time.
    pub(super) clients: usize,
    /// The pause of a client between two attempts.
    pub(super) pause: Duration,
}

/// The attack of a hostile client.
#[derive(Clone, Copy)]
pub(super) enum Attempt {
    /// Sends `beginning`, and then `part` once a second.
    Drip { port: u16, beginning: &'static [u8], part: &'static [u8] },
    /// Asks for a large answer and reads a byte of the answer once a second.
    ReadSlowly,
    /// Asks for a large answer and reads nothing.
    ReadNothing,
    /// Sends the bytes and waits.
    Silence { port: u16, bytes: &'static [u8] },
    /// Sends the bytes, closes its side, and reads what comes.
    HalfClose { port: u16, bytes: &'static [u8] },
    /// Begins TLS and waits.
    Hello { port: u16 },
    /// Opens a connection to each listener in turn, and waits.
    Idle,
    /// Sends HTTP/2 frames without end.
    Frames(floods::Flood),
    /// Opens as many streams as it may, and reads nothing of their answers.
    Streams,
    /// Sends headers of HTTP/1 without end.
    Headers,
    /// Sends a thousand requests and reads no answer.
    Pipeline,
    /// Opens a connection and resets it, from an address that is allowed to call.
    Churn { port: u16 },
    /// Opens a connection and sends a request, from an address that is not allowed to call.
    Refused,
    /// Sends datagrams from new ports.
    Datagrams,
}

const SECOND: Duration = Duration::from_secs(1);
const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const HEAD: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n";
const CHUNKED: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
const COUNTED: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n";
const HALF_BODY: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc";
const MISNAMED: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: evil.example.com\r\n\r\n";

const fn kind(name: &'static str, attempt: Attempt, clients: usize, pause: Duration) -> Kind {
    Kind { name, attempt, clients, pause }
}

/// All kinds of hostile clients.
pub(super) const KINDS: &[Kind] = &[
    kind(
        "head byte by byte",
        Attempt::Drip { port: HTTP, beginning: HEAD, part: b"X" },
        15,
        SECOND,
    ),
    kind(
        "body byte by byte",
        Attempt::Drip { port: HTTP, beginning: COUNTED, part: b"x" },
        15,
        SECOND,
    ),
    kind(
        "chunks of one byte",
        Attempt::Drip { port: HTTP, beginning: CHUNKED, part: b"1\r\nx\r\n" },
        10,
        SECOND,
    ),
    kind(
        "PROXY header byte by byte",
        Attempt::Drip { port: PROXIED, beginning: b"PROXY TCP4 1", part: b"1" },
        10,
        SECOND,
    ),
    kind("answer byte by byte", Attempt::ReadSlowly, 8, SECOND),
    kind("answer not read", Attempt::ReadNothing, 8, SECOND),
    kind("half a head", Attempt::Silence { port: HTTP, bytes: HEAD }, 10, SECOND),
    kind("half a body", Attempt::Silence { port: HTTP, bytes: HALF_BODY }, 10, SECOND),
    kind("half a preface", Attempt::Silence { port: HTTP, bytes: b"PRI * HT" }, 5, SECOND),
    kind("half a PROXY header", Attempt::Silence { port: PROXIED, bytes: b"PROXY " }, 10, SECOND),
    kind("closed half after a head", Attempt::HalfClose { port: HTTP, bytes: HEAD }, 4, SECOND),
    kind(
        "closed half after a body",
        Attempt::HalfClose { port: HTTP, bytes: HALF_BODY },
        4,
        SECOND,
    ),
    kind("closed half after a request", Attempt::HalfClose { port: HTTP, bytes: GET }, 4, SECOND),
    kind("no TLS where there should be", Attempt::HalfClose { port: HTTPS, bytes: GET }, 2, SECOND),
    kind("TLS begun (HTTPS)", Attempt::Hello { port: HTTPS }, 15, SECOND),
    kind("TLS begun (TCP_SSL)", Attempt::Hello { port: TCP_SSL }, 15, SECOND),
    kind("half a TLS record", Attempt::Silence { port: HTTPS, bytes: &[22, 3, 1, 2] }, 10, SECOND),
    kind("idle", Attempt::Idle, 400, SECOND),
    kind("flood of PING", Attempt::Frames(floods::Flood::Ping), 2, SECOND),
    kind("flood of SETTINGS", Attempt::Frames(floods::Flood::Settings), 2, SECOND),
    kind("flood of WINDOW_UPDATE", Attempt::Frames(floods::Flood::WindowUpdate), 2, SECOND),
    kind("flood of RST_STREAM", Attempt::Frames(floods::Flood::Reset), 2, SECOND),
    kind("flood of CONTINUATION", Attempt::Frames(floods::Flood::Continuation), 2, SECOND),
    kind("flood of empty DATA", Attempt::Frames(floods::Flood::Data), 2, SECOND),
    kind("streams reset at once", Attempt::Frames(floods::Flood::RapidReset), 2, SECOND),
    kind("streams without a window", Attempt::Streams, 4, SECOND),
    kind("headers without end", Attempt::Headers, 2, SECOND),
    kind("pipelined, not read", Attempt::Pipeline, 2, SECOND),
    kind(
        "bad PROXY header",
        Attempt::HalfClose { port: PROXIED, bytes: b"PROXY TCP9 no yes 0 0\r\n\r\n" },
        2,
        SECOND,
    ),
    kind("opened and reset (HTTP)", Attempt::Churn { port: HTTP }, 4, Duration::from_millis(80)),
    kind("opened and reset (HTTPS)", Attempt::Churn { port: HTTPS }, 2, Duration::from_millis(80)),
    kind("opened and reset (TCP)", Attempt::Churn { port: TCP }, 2, Duration::from_millis(80)),
    kind("refused by its address", Attempt::Refused, 4, Duration::from_millis(20)),
    kind("datagrams from new ports", Attempt::Datagrams, 2, Duration::from_millis(100)),
    kind(
        "admin by another name",
        Attempt::HalfClose { port: ADMIN, bytes: MISNAMED },
        2,
        Duration::from_millis(200),
    ),
    kind("admin, half a head", Attempt::Silence { port: ADMIN, bytes: HEAD }, 5, SECOND),
    kind("admin, idle", Attempt::Silence { port: ADMIN, bytes: b"" }, 20, SECOND),
];

impl Attempt {
    /// Makes an attempt, and describes how it ended.
    ///
    /// # Errors
    /// When the connection fails meanwhile.
    pub(super) async fn make(self, attackers: &Attackers, number: usize) -> io::Result<String> {
        match self {
            Self::Drip { port, beginning, part } => {
                dripping::drip(attackers.hold(port, None).await?, beginning, part).await
            }
            Self::ReadSlowly => dripping::read(attackers).await,
            Self::ReadNothing => other::read_nothing(attackers).await,
            Self::Silence { port, bytes } => {
                other::wait(attackers.hold(port, None).await?, bytes).await
            }
            Self::HalfClose { port, bytes } => {
                other::half_close(attackers.pass(port).await?, bytes).await
            }
            Self::Hello { port } => other::hello(attackers.hold(port, None).await?).await,
            Self::Idle => {
                let ports = [HTTP, HTTPS, TCP_SSL, PROXIED, TCP];
                let port = ports[number % ports.len()];
                other::wait(attackers.hold(port, None).await?, b"").await
            }
            Self::Frames(flood) => flood.send(attackers.pass(HTTP).await?).await,
            Self::Streams => floods::streams(attackers.pass(HTTP).await?).await,
            Self::Headers => floods::headers(attackers.pass(HTTP).await?).await,
            Self::Pipeline => other::pipeline(attackers.pass(HTTP).await?).await,
            Self::Churn { port } => other::reset(attackers.pass(port).await?),
            Self::Refused => other::refused(attackers).await,
            Self::Datagrams => other::datagrams(attackers).await,
        }
    }
}
