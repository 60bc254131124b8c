//! Generic netlink: resolves a family by name, sends requests and returns the answers as bytes.
//!
//! Numbers are in native byte order, except where a family defines otherwise.

use std::io;

use netlink_sys::protocols::NETLINK_GENERIC;
use netlink_sys::{Socket, SocketAddr};

const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_ACK: u16 = 0x4;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;

/// The controller, which resolves all other families.
const CONTROLLER: Family = Family { id: 16, version: 1 };
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

const NLA_F_NESTED: u16 = 1 << 15;
const NLA_TYPE_MASK: u16 = 0x3fff;

/// The length of the netlink header and the generic netlink header.
const HEADERS: usize = 16 + 4;

/// A family of messages, with its number in this kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Family {
    id: u16,
    version: u8,
}

/// A connection to the kernel, in the namespace of the thread that opened it.
pub(crate) struct Generic {
    socket: Socket,
    sequence: u32,
}

impl Generic {
    pub(crate) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_GENERIC)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Resolves a family by name.
    pub(crate) fn family(&mut self, name: &str, version: u8) -> io::Result<Family> {
        let asked = Attributes::default().text(CTRL_ATTR_FAMILY_NAME, name);
        let answers = self.ask(CONTROLLER, CTRL_CMD_GETFAMILY, NLM_F_ACK, &asked)?;
        let id = answers.iter().find_map(|answer| {
            read_u16(
                Attribute::all(answer)
                    .find(|attribute| attribute.kind == CTRL_ATTR_FAMILY_ID)?
                    .value,
            )
        });
        let id = id.ok_or_else(|| io::Error::other(format!("netlink names no family {name}")))?;
        Ok(Family { id, version })
    }

    /// Sends a command and waits for its acknowledgement.
    pub(crate) fn change(
        &mut self,
        family: Family,
        command: u8,
        what: &Attributes,
    ) -> io::Result<()> {
        self.ask(family, command, NLM_F_ACK, what).map(drop)
    }

    /// Dumps all objects. Returns the attributes of each answer.
    pub(crate) fn list(
        &mut self,
        family: Family,
        command: u8,
        of: &Attributes,
    ) -> io::Result<Vec<Vec<u8>>> {
        self.ask(family, command, NLM_F_DUMP, of)
    }

    fn ask(
        &mut self,
        family: Family,
        command: u8,
        flags: u16,
        what: &Attributes,
    ) -> io::Result<Vec<Vec<u8>>> {
        self.sequence += 1;
        let length = (HEADERS + what.0.len()) as u32;
        let mut message = Vec::with_capacity(length as usize);
        message.extend(length.to_ne_bytes());
        message.extend(family.id.to_ne_bytes());
        message.extend((NLM_F_REQUEST | flags).to_ne_bytes());
        message.extend(self.sequence.to_ne_bytes());
        message.extend(0u32.to_ne_bytes());
        message.extend([command, family.version, 0, 0]);
        message.extend(&what.0);
        self.socket.send(&message, 0)?;
        let mut answers = Vec::new();
        loop {
            let (bytes, _) = self.socket.recv_from_full()?;
            if read_answers(&bytes, self.sequence, &mut answers)? {
                return Ok(answers);
            }
        }
    }
}

/// Appends the answers in one packet to `into`. Returns whether they were the last.
fn read_answers(mut bytes: &[u8], sequence: u32, into: &mut Vec<Vec<u8>>) -> io::Result<bool> {
    let cut = || io::Error::new(io::ErrorKind::InvalidData, "a netlink message is cut");
    while !bytes.is_empty() {
        let length = read_u32(bytes).ok_or_else(cut)? as usize;
        let message = bytes.get(..length).filter(|_| length >= 16).ok_or_else(cut)?;
        bytes = bytes.get(aligned(length)..).unwrap_or_default();
        let kind = message.get(4..).and_then(read_u16).ok_or_else(cut)?;
        let answers = message.get(8..).and_then(read_u32).ok_or_else(cut)?;
        if answers != sequence {
            continue;
        }
        match kind {
            NLMSG_ERROR | NLMSG_DONE => {
                let code = message.get(16..).and_then(read_u32).unwrap_or(0).cast_signed();
                return match code {
                    0 => Ok(true),
                    code => Err(io::Error::from_raw_os_error(-code)),
                };
            }
            _ => into.push(message.get(HEADERS..).ok_or_else(cut)?.to_vec()),
        }
    }
    Ok(false)
}

/// Attributes as they are sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attributes(Vec<u8>);

impl Attributes {
    pub(crate) fn bytes(mut self, kind: u16, value: &[u8]) -> Self {
        self.0.extend(((4 + value.len()) as u16).to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(aligned(self.0.len()), 0);
        self
    }

    pub(crate) fn number(self, kind: u16, value: u32) -> Self {
        self.bytes(kind, &value.to_ne_bytes())
    }

    pub(crate) fn short(self, kind: u16, value: u16) -> Self {
        self.bytes(kind, &value.to_ne_bytes())
    }

    /// Adds a port, in network byte order.
    pub(crate) fn port(self, kind: u16, value: u16) -> Self {
        self.bytes(kind, &value.to_be_bytes())
    }

    /// Adds a text with a terminating zero.
    pub(crate) fn text(self, kind: u16, value: &str) -> Self {
        self.bytes(kind, &[value.as_bytes(), &[0]].concat())
    }

    pub(crate) fn nested(self, kind: u16, value: &Self) -> Self {
        self.bytes(kind | NLA_F_NESTED, &value.0)
    }

    #[cfg(test)]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// An attribute as it was received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attribute<'a> {
    pub(crate) kind: u16,
    pub(crate) value: &'a [u8],
}

impl<'a> Attribute<'a> {
    /// Returns the attributes in a sequence of bytes. Stops at the first malformed one.
    pub(crate) fn all(mut bytes: &'a [u8]) -> impl Iterator<Item = Self> {
        std::iter::from_fn(move || {
            let length = usize::from(read_u16(bytes)?);
            let kind = read_u16(bytes.get(2..)?)? & NLA_TYPE_MASK;
            let value = bytes.get(4..length)?;
            bytes = bytes.get(aligned(length)..).unwrap_or_default();
            Some(Self { kind, value })
        })
    }
}

pub(crate) fn read_u16(bytes: &[u8]) -> Option<u16> {
    bytes.first_chunk().copied().map(u16::from_ne_bytes)
}

pub(crate) fn read_u32(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().copied().map(u32::from_ne_bytes)
}

pub(crate) fn read_port(bytes: &[u8]) -> Option<u16> {
    bytes.first_chunk().copied().map(u16::from_be_bytes)
}

fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_back() {
        let inner = Attributes::default().text(1, "rr").port(2, 80);
        let all = Attributes::default().short(3, 2).nested(4, &inner).number(5, 7);
        let read: Vec<_> =
            Attribute::all(&all.0).map(|attribute| (attribute.kind, attribute.value)).collect();
        assert_eq!(read.iter().map(|attribute| attribute.0).collect::<Vec<_>>(), [3, 4, 5]);
        assert_eq!(read_u16(read[0].1), Some(2));
        let nested: Vec<_> =
            Attribute::all(read[1].1).map(|attribute| (attribute.kind, attribute.value)).collect();
        assert_eq!(nested[0], (1, &b"rr\0"[..]));
        assert_eq!(read_port(nested[1].1), Some(80));
        assert_eq!(read_u32(read[2].1), Some(7));
        assert_eq!(Attribute::all(&[8, 0, 1, 0, 1]).count(), 0, "cut");
    }

    #[test]
    fn what_the_kernel_refuses_is_an_error() {
        let message = |kind: u16, code: i32| {
            let mut bytes = vec![20, 0, 0, 0];
            bytes.extend(kind.to_ne_bytes());
            bytes.extend([0, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
            bytes.extend(code.to_ne_bytes());
            bytes
        };
        let mut answers = Vec::new();
        assert!(read_answers(&message(NLMSG_ERROR, 0), 7, &mut answers).unwrap());
        let error = read_answers(&message(NLMSG_ERROR, -17), 7, &mut answers).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert!(!read_answers(&message(NLMSG_ERROR, -17), 8, &mut answers).unwrap());
        assert!(read_answers(&[1, 2, 3], 7, &mut answers).is_err());
    }
}
