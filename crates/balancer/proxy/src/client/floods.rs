//! Detects floods of HTTP/2 frames that cause work and carry nothing.
//!
//! PING, SETTINGS, WINDOW_UPDATE, PRIORITY, RST_STREAM, empty DATA, HEADERS that begin no request
//! and frames of unknown types cost their client a few bytes each, and hyper handles any number of
//! them. So each reduces an allowance, which grows with time, with requests, and with the bytes of
//! answers, as clients that download send WINDOW_UPDATE. A client without allowance is sent a
//! GOAWAY with the error ENHANCE_YOUR_CALM, and its connection ends. (hyper itself ends floods of
//! CONTINUATION, of small DATA and of streams that are reset before they were looked at.)

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::watched::Connected;
use crate::deadline::{Deadlines, TICK};
use crate::pass_on::pass_on;

/// The largest allowance: the number of frames that a client may send at once.
const MOST: u64 = 2000;

/// The growth of the allowance in a tick of the worker's clock: 100 frames per second.
const PER_TICK: u64 = 100 * TICK.as_millis() as u64 / 1000;

/// The number of bytes of answers that allow for another frame.
const BYTES: u64 = 512;

/// The length of the preface, which a client begins with.
const PREFACE: usize = 24;

/// The length of a frame's head.
const HEAD: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;

/// The error code of the GOAWAY.
const ENHANCE_YOUR_CALM: u32 = 11;

/// Ends a connection whose client floods it with frames.
#[derive(Debug)]
pub(super) struct Floods<S> {
    stream: S,
    incoming: Frames,
    outgoing: Frames,
    deadlines: Rc<Deadlines>,
    /// The number of frames that the client may send now.
    allowance: u64,
    /// The time when the allowance grew last, in ticks.
    grew: u64,
    /// The bytes of answers that do not count for a frame yet.
    bytes: u64,
    last_stream: u32,
}

impl<S> Floods<S> {
    pub(super) fn new(stream: S, deadlines: &Rc<Deadlines>) -> Self {
        Self {
            stream,
            incoming: Frames { skip: PREFACE, ..Frames::default() },
            outgoing: Frames::default(),
            deadlines: Rc::clone(deadlines),
            allowance: MOST,
            grew: deadlines.now(),
            bytes: 0,
            last_stream: 0,
        }
    }

    /// Inspects received bytes. Returns whether they exceed the allowance.
    fn receive(&mut self, bytes: &[u8]) -> bool {
        let now = self.deadlines.now();
        let grown = now.saturating_sub(self.grew).saturating_mul(PER_TICK);
        let mut allowance = self.allowance.saturating_add(grown).min(MOST);
        let (mut last_stream, mut is_flood) = (self.last_stream, false);
        self.incoming.read(bytes, |frame| match frame.kind {
            DATA if frame.length > 0 || frame.flags & END_STREAM != 0 => {}
            CONTINUATION => {}
            // Other HEADERS belong to an earlier request: they are trailers.
            HEADERS if frame.stream > last_stream => {
                last_stream = frame.stream;
                allowance = (allowance + 1).min(MOST);
            }
            kind => {
                // A request that is reset has cost more than the frame that resets it.
                let cost = if kind == RST_STREAM { 2 } else { 1 };
                is_flood |= allowance < cost;
                allowance = allowance.saturating_sub(cost);
            }
        });
        (self.grew, self.allowance, self.last_stream) = (now, allowance, last_stream);
        is_flood
    }

    fn sent(&mut self, bytes: &[u8], count: usize) {
        let mut answered = self.bytes;
        self.outgoing.read(&bytes[..count.min(bytes.len())], |frame| {
            if frame.kind == DATA {
                answered += u64::from(frame.length);
            }
        });
        self.allowance = (self.allowance + answered / BYTES).min(MOST);
        self.bytes = answered % BYTES;
    }
}

impl<S: AsyncWrite + Unpin> Floods<S> {
    /// Tells the client why its connection ends, unless the output has stopped within a frame.
    fn send_goaway(&mut self, cx: &mut Context<'_>) {
        if !self.outgoing.is_at_boundary() {
            return;
        }
        let mut frame = [0; HEAD + 8];
        (frame[2], frame[3]) = (8, GOAWAY);
        frame[HEAD..HEAD + 4].copy_from_slice(&self.last_stream.to_be_bytes());
        frame[HEAD + 4..].copy_from_slice(&ENHANCE_YOUR_CALM.to_be_bytes());
        // A client that does not read gets no message.
        let _ = Pin::new(&mut self.stream).poll_write(cx, &frame);
        let _ = Pin::new(&mut self.stream).poll_flush(cx);
    }
}

impl<S: Connected> Connected for Floods<S> {
    fn socket(&self) -> BorrowedFd<'_> {
        self.stream.socket()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Floods<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        let result = Pin::new(&mut this.stream).poll_read(cx, buffer);
        if this.receive(&buffer.filled()[before..]) {
            this.send_goaway(cx);
            let why = "the client sends more frames than its requests and answers need";
            return Poll::Ready(Err(io::Error::other(why)));
        }
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Floods<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if let Poll::Ready(Ok(count)) = result {
            self.sent(bytes, count);
        }
        result
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        if let Poll::Ready(Ok(count)) = result {
            let mut left = count;
            for part in parts {
                self.sent(part, left);
                left = left.saturating_sub(part.len());
            }
        }
        result
    }

    pass_on!(is_write_vectored, poll_flush, poll_shutdown);
}

/// Finds the heads of frames in bytes that come in pieces.
#[derive(Debug, Default)]
struct Frames {
    /// The part of the next head that was read.
    head: [u8; HEAD],
    known: usize,
    /// The number of bytes before the next head: the rest of the preface or of a payload.
    skip: usize,
}

/// A frame's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frame {
    length: u32,
    kind: u8,
    flags: u8,
    stream: u32,
}

impl Frames {
    fn read(&mut self, mut bytes: &[u8], mut each: impl FnMut(Frame)) {
        while !bytes.is_empty() {
            let skipped = self.skip.min(bytes.len());
            self.skip -= skipped;
            bytes = &bytes[skipped..];
            let count = (HEAD - self.known).min(bytes.len());
            self.head[self.known..self.known + count].copy_from_slice(&bytes[..count]);
            self.known += count;
            bytes = &bytes[count..];
            if self.known == HEAD {
                let [a, b, c, kind, flags, stream @ ..] = self.head;
                let length = u32::from_be_bytes([0, a, b, c]);
                let stream = u32::from_be_bytes(stream) & (u32::MAX >> 1);
                (self.known, self.skip) = (0, length as usize);
                each(Frame { length, kind, flags, stream });
            }
        }
    }

    /// Returns whether the next byte begins a frame.
    fn is_at_boundary(&self) -> bool {
        self.known == 0 && self.skip == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PING: u8 = 6;
    const WINDOW_UPDATE: u8 = 8;

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let head = [length[1], length[2], length[3], kind, flags];
        [&head[..], &stream.to_be_bytes(), payload].concat()
    }

    fn floods() -> Floods<()> {
        let mut floods = Floods::new((), &Rc::default());
        assert!(!floods.receive(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
        floods
    }

    #[test]
    fn frames_are_found_however_their_bytes_are_cut() {
        let sent =
            [frame(PING, 0, 0, &[7; 8]), frame(DATA, 1, 3, &[]), frame(DATA, 0, 5, &[9; 300])];
        let whole = sent.concat();
        for size in 1..whole.len() {
            let (mut frames, mut found) = (Frames::default(), Vec::new());
            for piece in whole.chunks(size) {
                frames.read(piece, |frame| found.push((frame.kind, frame.stream, frame.length)));
            }
            assert_eq!(found, [(PING, 0, 8), (DATA, 3, 0), (DATA, 5, 300)], "{size}");
            assert!(frames.is_at_boundary());
        }
    }

    #[test]
    fn frames_that_bring_nothing_use_the_allowance_up() {
        for (kind, payload, most) in [
            (PING, &[0; 8][..], MOST),
            (WINDOW_UPDATE, &[0, 0, 0, 1], MOST),
            (4, &[], MOST),
            (2, &[0; 5], MOST),
            (DATA, &[], MOST),
            (0xbe, &[1], MOST),
            (RST_STREAM, &[0; 4], MOST / 2),
        ] {
            let mut floods = floods();
            let bytes = frame(kind, 0, 1, payload);
            let taken = (0..2 * MOST).take_while(|_| !floods.receive(&bytes)).count();
            assert_eq!(taken as u64, most, "{kind}");
        }
    }

    #[test]
    fn headers_that_begin_no_request_allow_for_nothing() {
        let mut floods = floods();
        assert!(!floods.receive(&frame(HEADERS, 4, 3, b"x")));
        let both = [frame(PING, 0, 0, &[0; 8]), frame(HEADERS, 4, 3, b"x")].concat();
        let taken = (0..2 * MOST).take_while(|_| !floods.receive(&both)).count();
        assert_eq!(taken as u64, MOST / 2);
    }

    #[test]
    fn time_requests_and_answers_allow_for_more() {
        let deadlines = Rc::new(Deadlines::default());
        let mut floods = Floods::new((), &deadlines);
        floods.receive(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        let ping = frame(PING, 0, 0, &[0; 8]);
        assert!(!floods.receive(&ping.repeat(usize::try_from(MOST).unwrap())));
        for tick in 1..100 {
            deadlines.sweep(tick);
            assert!(!floods.receive(&ping.repeat(usize::try_from(PER_TICK).unwrap())));
        }
        // Requests that are all reset cost more than they allow for; others do not.
        for stream in (1..9999).step_by(2) {
            assert!(!floods.receive(&frame(HEADERS, 5, stream, b"x")));
            if stream % 6 == 5 {
                assert!(!floods.receive(&frame(RST_STREAM, 0, stream, &[0; 4])), "{stream}");
            }
        }
        // A download with an update for its stream and the connection for every 16 KiB.
        let answer = frame(DATA, 0, 1, &[0; 16 << 10]);
        for _ in 0..10_000 {
            floods.sent(&answer, answer.len());
            assert!(!floods.receive(&frame(WINDOW_UPDATE, 0, 0, &[0, 0, 64, 0]).repeat(2)));
        }
        // Bytes that are asked for one by one allow for nothing.
        let dribble = (0..100_000).take_while(|_| {
            floods.sent(&frame(DATA, 0, 1, b"x"), HEAD + 1);
            !floods.receive(&frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]))
        });
        assert!(dribble.count() < 10_000);
    }
}
