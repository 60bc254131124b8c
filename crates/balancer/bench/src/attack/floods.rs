//! Clients that send without end.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::spawn_local;
use tokio::time::sleep;

use super::ending;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The number of frames that are sent at once.
const AT_ONCE: u32 = 50;

/// The pause between two sends, as the machine is shared with the programs that are measured.
const PAUSE: Duration = Duration::from_millis(5);

/// The HTTP/2 frames that a flood sends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Flood {
    Ping,
    Settings,
    WindowUpdate,
    Reset,
    Continuation,
    Data,
    RapidReset,
}

impl Flood {
    /// Sends the frames until the connection ends, and describes how it ended.
    pub(super) async fn send(self, stream: TcpStream) -> io::Result<String> {
        let (mut from, mut to) = stream.into_split();
        let ended = spawn_local(async move { ending::of(&mut from).await });
        to.write_all(PREFACE).await?;
        to.write_all(&frame(SETTINGS, 0, 0, &[])).await?;
        // The body of this request does not end.
        to.write_all(&frame(HEADERS, END_HEADERS, 1, GET)).await?;
        if matches!(self, Self::Continuation) {
            to.write_all(&frame(HEADERS, 0, 3, GET)).await?;
        }
        let mut stream = 3;
        loop {
            let many: Vec<u8> = (0..AT_ONCE).flat_map(|_| self.next(&mut stream)).collect();
            if to.write_all(&many).await.is_err() || ended.is_finished() {
                return ended.await.map_err(io::Error::other);
            }
            sleep(PAUSE).await;
        }
    }

    fn next(self, stream: &mut u32) -> Vec<u8> {
        match self {
            Self::Ping => frame(PING, 0, 0, &[0; 8]),
            Self::Settings => frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 255, 255]),
            Self::WindowUpdate => frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]),
            Self::Reset => frame(RST_STREAM, 0, 1, &[0, 0, 0, 8]),
            Self::Continuation => frame(CONTINUATION, 0, 3, b"\0\x01x\x01y"),
            Self::Data => frame(DATA, 0, 1, &[]),
            Self::RapidReset => {
                let mut both = frame(HEADERS, END_HEADERS | END_STREAM, *stream, GET);
                both.extend(frame(RST_STREAM, 0, *stream, &[0, 0, 0, 8]));
                *stream += 2;
                both
            }
        }
    }
}

/// The header block of `GET /` for the host `a`, by HPACK's static table.
const GET: &[u8] = &[0x82, 0x86, 0x84, 0x01, 1, b'a'];

/// The header block of `GET /large`.
const GET_LARGE: &[u8] = b"\x82\x86\x04\x06/large\x01\x01a";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Opens as many streams as it may, and reads nothing of their answers.
pub(super) async fn streams(mut stream: TcpStream) -> io::Result<String> {
    let mut all = PREFACE.to_vec();
    // The initial window is 0.
    all.extend(frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]));
    for number in 0..100 {
        all.extend(frame(HEADERS, END_HEADERS | END_STREAM, 2 * number + 1, GET_LARGE));
    }
    stream.write_all(&all).await?;
    Ok(ending::of(&mut stream).await)
}

/// Sends headers of HTTP/1 without end.
pub(super) async fn headers(stream: TcpStream) -> io::Result<String> {
    let (mut from, mut to) = stream.into_split();
    let ended = spawn_local(async move { ending::of(&mut from).await });
    to.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n").await?;
    let line = format!("X: {}\r\n", "x".repeat(1000));
    repeat(&mut to, line.as_bytes(), || ended.is_finished()).await;
    ended.await.map_err(io::Error::other)
}

/// Sends bytes again and again, until sending fails or `is_in_vain` returns `true`.
async fn repeat(to: &mut (impl AsyncWrite + Unpin), bytes: &[u8], is_in_vain: impl Fn() -> bool) {
    while !is_in_vain() && to.write_all(bytes).await.is_ok() {
        sleep(PAUSE).await;
    }
}
