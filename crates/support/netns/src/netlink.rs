//! The framing of netlink: requests, the kernel's messages, and their attributes.
//!
//! Numbers are in native byte order, except where a protocol defines otherwise.

use std::io;
use std::iter;

use netlink_packet_core::{
    NLA_F_NESTED, NLA_TYPE_MASK, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR, NetlinkBuffer,
};
pub use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP};

/// The length of `nlmsghdr`.
const HEADER: usize = 16;

/// The length of the header of a protocol's own: of `nfgenmsg` and `genlmsghdr`.
const OWN_HEADER: usize = 4;

/// Returns a request with a header of the protocol's own before the attributes.
pub fn request(
    kind: u16,
    flags: u16,
    sequence: u32,
    own_header: [u8; OWN_HEADER],
    attributes: &Attributes,
) -> Vec<u8> {
    let mut bytes = [&[0; HEADER], &own_header[..], &attributes.0].concat();
    let length = bytes.len() as u32;
    let mut message = NetlinkBuffer::new(&mut bytes);
    message.set_length(length);
    message.set_message_type(kind);
    message.set_flags(NLM_F_REQUEST | flags);
    message.set_sequence_number(sequence);
    bytes
}

/// A message from the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The type of the message.
    pub kind: u16,
    /// The sequence number of the request that the message answers.
    pub sequence: u32,
    body: &'a [u8],
}

impl<'a> Message<'a> {
    /// Returns the messages in a packet. A malformed one is an error, and the last.
    pub fn all(mut bytes: &'a [u8]) -> impl Iterator<Item = io::Result<Self>> {
        let cut = |_| io::Error::new(io::ErrorKind::InvalidData, "a netlink message is cut");
        iter::from_fn(move || {
            if bytes.is_empty() {
                return None;
            }
            let message = NetlinkBuffer::new_checked(bytes).map_err(cut).map(|message| {
                bytes = bytes.get(aligned(message.length() as usize)..).unwrap_or_default();
                Self {
                    kind: message.message_type(),
                    sequence: message.sequence_number(),
                    body: message.payload(),
                }
            });
            if message.is_err() {
                bytes = &[];
            }
            Some(message)
        })
    }

    /// Returns how the answer ends, if this message ends it.
    pub fn end(&self) -> Option<io::Result<()>> {
        if !matches!(self.kind, NLMSG_ERROR | NLMSG_DONE) {
            return None;
        }
        Some(match read_u32(self.body).map(u32::cast_signed) {
            Some(0) => Ok(()),
            None if self.kind == NLMSG_DONE => Ok(()),
            Some(code) => Err(io::Error::from_raw_os_error(code.saturating_neg())),
            None => Err(io::Error::other("an acknowledgement without a number")),
        })
    }

    /// Returns the address family that the header of netfilter's own states.
    pub fn family(&self) -> u8 {
        self.body.first().copied().unwrap_or_default()
    }

    /// Returns the attributes after the header of the protocol's own.
    pub fn attributes(&self) -> &'a [u8] {
        self.body.get(OWN_HEADER..).unwrap_or_default()
    }
}

/// Attributes as they are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes(Vec<u8>);

impl Attributes {
    /// Adds an attribute with these bytes as its value.
    #[must_use]
    pub fn bytes(mut self, kind: u16, value: &[u8]) -> Self {
        self.0.extend(((4 + value.len()) as u16).to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(aligned(self.0.len()), 0);
        self
    }

    /// Adds a number of 32 bits.
    #[must_use]
    pub fn number(self, kind: u16, value: u32) -> Self {
        self.bytes(kind, &value.to_ne_bytes())
    }

    /// Adds a number of 16 bits.
    #[must_use]
    pub fn short(self, kind: u16, value: u16) -> Self {
        self.bytes(kind, &value.to_ne_bytes())
    }

    /// Adds a port, in network byte order.
    #[must_use]
    pub fn port(self, kind: u16, value: u16) -> Self {
        self.bytes(kind, &value.to_be_bytes())
    }

    /// Adds a text with a terminating zero.
    #[must_use]
    pub fn text(self, kind: u16, value: &str) -> Self {
        self.bytes(kind, &[value.as_bytes(), &[0]].concat())
    }

    /// Adds an attribute that consists of attributes.
    #[must_use]
    pub fn nested(self, kind: u16, value: &Self) -> Self {
        self.nested_bytes(kind, &value.0)
    }

    /// Adds an attribute that consists of attributes, as they were received.
    #[must_use]
    pub fn nested_bytes(self, kind: u16, value: &[u8]) -> Self {
        self.bytes(kind | NLA_F_NESTED, value)
    }

    /// Returns the attributes as they are sent.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Returns the value of the first attribute of this type. Malformed attributes, and what follows
/// them, are not read.
pub fn find(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(read_u16(attributes)?);
        let found = read_u16(attributes.get(2..)?)? & NLA_TYPE_MASK;
        let value = attributes.get(4..length)?;
        if found == kind {
            return Some(value);
        }
        attributes = attributes.get(aligned(length)..)?;
    }
}

/// Reads a number of 16 bits.
pub fn read_u16(bytes: &[u8]) -> Option<u16> {
    bytes.first_chunk().copied().map(u16::from_ne_bytes)
}

/// Reads a number of 32 bits.
pub fn read_u32(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().copied().map(u32::from_ne_bytes)
}

/// Reads a port, which is in network byte order.
pub fn read_port(bytes: &[u8]) -> Option<u16> {
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
        let all = all.as_bytes();
        assert_eq!(find(all, 3).and_then(read_u16), Some(2));
        let nested = find(all, 4).unwrap();
        assert_eq!(find(nested, 1), Some(&b"rr\0"[..]));
        assert_eq!(find(nested, 2).and_then(read_port), Some(80));
        assert_eq!(find(all, 5).and_then(read_u32), Some(7));
        assert_eq!(find(all, 6), None);
        assert_eq!(find(&[8, 0, 1, 0, 1], 1), None, "cut");
    }

    #[test]
    fn requests_are_read_back() {
        let attributes = Attributes::default().number(1, 2);
        let bytes = request(0x101, NLM_F_ACK, 7, [2, 0, 0, 0], &attributes);
        let messages: Vec<_> = Message::all(&bytes).map(Result::unwrap).collect();
        let [message] = &messages[..] else { panic!("{messages:?}") };
        assert_eq!((message.kind, message.sequence, message.family()), (0x101, 7, 2));
        assert_eq!(message.attributes(), attributes.as_bytes());
        assert!(message.end().is_none());
        for length in 1..bytes.len() {
            assert!(Message::all(&bytes[..length]).next().unwrap().is_err());
        }
    }

    #[test]
    fn what_the_kernel_refuses_is_an_error() {
        let end = |kind: u16, code: &[u8]| {
            let message = Message { kind, sequence: 7, body: code };
            message.end().unwrap()
        };
        assert!(end(NLMSG_ERROR, &0i32.to_ne_bytes()).is_ok());
        assert!(end(NLMSG_DONE, &[]).is_ok());
        let error = end(NLMSG_ERROR, &(-17i32).to_ne_bytes()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert!(end(NLMSG_ERROR, &[]).is_err());
    }
}
