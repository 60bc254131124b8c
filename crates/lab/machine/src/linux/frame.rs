//! The frames that the two sides exchange. Encoded: kind, stream, length (4 bytes each except the
//! kind, which has one), payload.
//!
//! Stream 0 belongs to the job that the machine was started for. Every client of a running machine
//! has a stream of its own. A client and the inside each send at most [`WINDOW`] bytes that the
//! other side has not [`Message::Taken`] yet, so that a slow reader never stops the other streams.

use std::io;

use crate::Ended;

/// The largest payload of a piece of input or output, in bytes.
pub(super) const MAX: usize = 64 * 1024;

/// The limit for the bytes of input, or of output, in flight in one stream.
pub(super) const WINDOW: usize = 256 * 1024;

/// The largest payload of any frame: a job with its environment and its input.
const LARGEST: usize = 64 << 20;

/// The length of the head, which precedes the payload.
pub(super) const HEAD: usize = 9;

/// A message of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) stream: u32,
    pub(super) message: Message,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// The job's standard output, or the data from a server inside.
    Out(Vec<u8>),
    /// The job's standard error.
    Err(Vec<u8>),
    /// The job, or the connection, is over.
    Ended(Ended),
    /// The job, or the connection, could not be started, for this reason.
    Cannot(String),
    /// To the inside: run this encoded job.
    Run(Vec<u8>),
    /// To the inside: connect to this port of the machine's loopback.
    Connect(u16),
    /// To the inside: standard input, or data for the server there.
    Input(Vec<u8>),
    /// To the inside: there is no more input.
    InputEnds,
    /// From the inside: there is no more output.
    OutputEnds,
    /// Both ways: this many bytes have been processed.
    Taken(u32),
    /// To the inside: the client is gone.
    Gone,
    /// From the inside: the machine is set up, and its first job runs.
    Begun,
}

impl Frame {
    /// Creates a frame for the machine's first job.
    pub(super) fn of_job(message: Message) -> Self {
        Self { stream: 0, message }
    }

    /// Encodes the frame.
    pub(super) fn encode(&self) -> Vec<u8> {
        let number;
        let (kind, payload): (u8, &[u8]) = match &self.message {
            Message::Out(bytes) => (1, bytes),
            Message::Err(bytes) => (2, bytes),
            Message::Ended(Ended::Exit(code)) => {
                number = code.to_le_bytes();
                (3, &number)
            }
            Message::Ended(Ended::Signal(signal)) => {
                number = signal.to_le_bytes();
                (4, &number)
            }
            Message::Cannot(why) => (5, why.as_bytes()),
            Message::Run(job) => (6, job),
            Message::Connect(port) => {
                number = i32::from(*port).to_le_bytes();
                (7, &number)
            }
            Message::Input(bytes) => (8, bytes),
            Message::InputEnds => (9, &[]),
            Message::OutputEnds => (10, &[]),
            Message::Taken(count) => {
                number = count.to_le_bytes();
                (11, &number)
            }
            Message::Gone => (12, &[]),
            Message::Begun => (13, &[]),
        };
        let length = payload.len() as u32;
        [&[kind][..], &self.stream.to_le_bytes(), &length.to_le_bytes(), payload].concat()
    }

    /// Returns the length of the payload that follows this head.
    ///
    /// # Errors
    /// If the length exceeds that of any frame.
    pub(super) fn length(head: &[u8; HEAD]) -> io::Result<usize> {
        let [_, _, _, _, _, length @ ..] = *head;
        let length = u32::from_le_bytes(length) as usize;
        if length > LARGEST {
            Err(io::Error::other(format!("a frame of {length} bytes")))
        } else {
            Ok(length)
        }
    }

    /// Decodes a frame.
    ///
    /// # Errors
    /// If the kind of frame is unknown.
    pub(super) fn decode(head: &[u8; HEAD], payload: Vec<u8>) -> io::Result<Self> {
        let [kind, s0, s1, s2, s3, ..] = *head;
        let number = || payload.as_slice().try_into().map(i32::from_le_bytes).unwrap_or(-1);
        let message = match kind {
            1 => Message::Out(payload),
            2 => Message::Err(payload),
            3 => Message::Ended(Ended::Exit(number())),
            4 => Message::Ended(Ended::Signal(number())),
            5 => Message::Cannot(String::from_utf8_lossy(&payload).into_owned()),
            6 => Message::Run(payload),
            7 => Message::Connect(u16::try_from(number()).unwrap_or_default()),
            8 => Message::Input(payload),
            9 => Message::InputEnds,
            10 => Message::OutputEnds,
            11 => Message::Taken(number().cast_unsigned()),
            12 => Message::Gone,
            13 => Message::Begun,
            kind => return Err(io::Error::other(format!("a frame of kind {kind}"))),
        };
        Ok(Self { stream: u32::from_le_bytes([s0, s1, s2, s3]), message })
    }

    /// Takes the first frame off a buffer. Returns `None` if the frame is not complete yet.
    ///
    /// # Errors
    /// If the buffer does not begin with a frame.
    pub(super) fn take(buffer: &mut Vec<u8>) -> io::Result<Option<Self>> {
        let Some(head) = buffer.first_chunk::<HEAD>().copied() else { return Ok(None) };
        let end = HEAD + Self::length(&head)?;
        if buffer.len() < end {
            return Ok(None);
        }
        let frame = Self::decode(&head, buffer[HEAD..end].to_vec());
        buffer.drain(..end);
        frame.map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_from_a_buffer_as_they_were_written() {
        let messages = [
            Message::Out(vec![1, 2]),
            Message::Err(Vec::new()),
            Message::Ended(Ended::Exit(-1)),
            Message::Ended(Ended::Signal(9)),
            Message::Cannot("no".into()),
            Message::Run(vec![0; 70_000]),
            Message::Connect(65_535),
            Message::Input(vec![7; MAX]),
            Message::InputEnds,
            Message::OutputEnds,
            Message::Taken(u32::MAX),
            Message::Gone,
            Message::Begun,
        ];
        let frames: Vec<Frame> = messages
            .into_iter()
            .zip(7..)
            .map(|(message, stream)| Frame { stream, message })
            .collect();
        let mut buffer = Vec::new();
        let mut read = Vec::new();
        for chunk in frames.iter().flat_map(Frame::encode).collect::<Vec<u8>>().chunks(1000) {
            buffer.extend(chunk);
            while let Some(frame) = Frame::take(&mut buffer).unwrap() {
                read.push(frame);
            }
        }
        assert!(read == frames && buffer.is_empty());
        assert!(Frame::take(&mut vec![99, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
        assert!(Frame::take(&mut vec![1, 0, 0, 0, 0, 255, 255, 255, 255]).is_err());
    }
}
