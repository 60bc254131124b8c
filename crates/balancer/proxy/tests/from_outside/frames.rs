//! HTTP/2 by hand, for clients that break its rules.

use std::io;
use std::net::TcpStream;

use crate::support::Wire;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

/// `SETTINGS_INITIAL_WINDOW_SIZE`.
const INITIAL_WINDOW: [u8; 2] = [0, 4];

/// The client's end of an HTTP/2 connection.
pub(crate) struct Http2(Wire<TcpStream>);

/// A frame that was received.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// The header block of `GET /` for the host `a`, with indexes of HPACK's static table.
pub(crate) fn get() -> Vec<u8> {
    const METHOD_GET: u8 = 0x82;
    const PATH_SLASH: u8 = 0x84;
    const SCHEME_HTTP: u8 = 0x86;
    const AUTHORITY: u8 = 0x01;
    vec![METHOD_GET, SCHEME_HTTP, PATH_SLASH, AUTHORITY, 1, b'a']
}

/// A header that no table keeps.
pub(crate) fn literal(name: &str, value: &str) -> Vec<u8> {
    assert!(name.len() < 127 && value.len() < 127);
    let mut bytes = vec![0, u8::try_from(name.len()).unwrap()];
    bytes.extend(name.bytes());
    bytes.push(u8::try_from(value.len()).unwrap());
    bytes.extend(value.bytes());
    bytes
}

impl Http2 {
    /// Begins a connection. `window` is how much of an answer the client takes unasked.
    pub(crate) fn begin(wire: Wire<TcpStream>, window: Option<u32>) -> Self {
        let mut connection = Self(wire);
        let mut settings = Vec::new();
        if let Some(window) = window {
            settings.extend(INITIAL_WINDOW);
            settings.extend(window.to_be_bytes());
        }
        connection.0.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        connection.0.send(frame(SETTINGS, 0, 0, &settings)).unwrap();
        connection
    }

    /// The server's end, after the preface.
    pub(crate) fn accepted(wire: Wire<TcpStream>) -> Self {
        Self(wire)
    }

    /// Another handle of the connection.
    pub(crate) fn clone_wire(&self) -> Wire<TcpStream> {
        Wire::new(self.0.stream().try_clone().unwrap())
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.0.send(bytes)
    }

    pub(crate) fn receive(&mut self) -> io::Result<Received> {
        let head = self.0.bytes(9)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let payload = self.0.bytes(length as usize)?;
        Ok(Received { kind: head[3], flags: head[4], stream, payload })
    }

    /// The next frame of a kind; the end of the connection is an error.
    pub(crate) fn receive_kind(&mut self, kind: u8) -> io::Result<Received> {
        loop {
            let received = self.receive()?;
            if received.kind == kind {
                return Ok(received);
            }
        }
    }

    /// Reads until the connection ends, however it does. Returns the error of the last `GOAWAY`.
    pub(crate) fn end(&mut self) -> Option<u32> {
        let mut reason = None;
        loop {
            match self.receive() {
                Ok(Received { kind: GOAWAY, payload, .. }) => {
                    reason =
                        Some(u32::from_be_bytes([payload[4], payload[5], payload[6], payload[7]]));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    panic!("nothing ended the connection");
                }
                Err(_) => return reason,
            }
        }
    }
}
