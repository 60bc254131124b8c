//! Access to the kernel's connection tracking over netlink: lists translated connections, and
//! deletes some.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, netlink, recv, send, socket};
use uturn_model::Protocol;

use super::Endpoint;

const NEW: u16 = 1 << 8;
const GET: u16 = 1 << 8 | 1;
const DELETE: u16 = 1 << 8 | 2;
const ERROR: u16 = 2;
const DONE: u16 = 3;

const REQUEST: u16 = 1;
const ACK: u16 = 4;
const DUMP: u16 = 0x300;

/// `nlmsghdr`.
const HEADER: usize = 16;
/// `nfgenmsg`.
const GENERIC: usize = 4;

const TUPLE_ORIGINAL: u16 = 1;
const TUPLE_REPLY: u16 = 2;
const PROTOCOL_INFO: u16 = 4;
const ID: u16 = 12;
const TUPLE_IP: u16 = 1;
const TUPLE_PROTOCOL: u16 = 2;
const V4_SOURCE: u16 = 1;
const V4_DESTINATION: u16 = 2;
const V6_SOURCE: u16 = 3;
const V6_DESTINATION: u16 = 4;
const NUMBER: u16 = 1;
const SOURCE_PORT: u16 = 2;
const DESTINATION_PORT: u16 = 3;
const INFO_TCP: u16 = 1;
const TCP_STATE: u16 = 1;

const TCP: u8 = 6;
const UDP: u8 = 17;
/// The last TCP state of an open connection. `TIME_WAIT` and `CLOSE` follow.
const LAST_ACK: u8 = 6;

/// The mask of an attribute's type, without its flags.
const TYPE: u16 = 0x3fff;
const NESTED: u16 = 0x8000;

/// A connection that was translated from a listener to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Connection {
    pub(super) endpoint: Endpoint,
    /// Whether it is a TCP connection that has not ended on both sides.
    pub(super) is_open: bool,
    /// The identity of the connection in requests: the address family, and attributes.
    family: u8,
    name: Vec<u8>,
}

/// A socket for requests about connections.
#[derive(Debug)]
pub(super) struct Conntrack {
    socket: OwnedFd,
}

/// One direction of a connection.
struct Tuple {
    source: SocketAddr,
    destination: SocketAddr,
    protocol: u8,
}

impl Conntrack {
    /// Opens a socket in the network namespace of this thread.
    ///
    /// # Errors
    /// When the kernel has no connection tracking.
    pub(super) fn open() -> io::Result<Self> {
        let socket = socket(AddressFamily::NETLINK, SocketType::RAW, Some(netlink::NETFILTER))?;
        Ok(Self { socket })
    }

    /// Returns all TCP and UDP connections.
    ///
    /// # Errors
    /// When the kernel does not list them.
    pub(super) fn connections(&mut self) -> io::Result<Vec<Connection>> {
        // The address family is not restricted.
        self.request(GET, REQUEST | DUMP, 0, &[])?;
        let mut connections = Vec::new();
        self.answers(|kind, body| {
            if kind == NEW {
                connections.extend(connection(body));
            }
        })?;
        Ok(connections)
    }

    /// Deletes a connection, so that its next packet begins a new one. A connection that is gone
    /// already is not an error.
    ///
    /// # Errors
    /// When the kernel does not delete it.
    pub(super) fn delete(&mut self, connection: &Connection) -> io::Result<()> {
        self.request(DELETE, REQUEST | ACK, connection.family, &connection.name)?;
        match self.answers(|_, _| ()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            answered => answered,
        }
    }

    fn request(&self, kind: u16, flags: u16, family: u8, attributes: &[u8]) -> io::Result<()> {
        let length = HEADER + GENERIC + attributes.len();
        let mut message = Vec::with_capacity(length);
        message.extend(u32::try_from(length).map_err(io::Error::other)?.to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(flags.to_ne_bytes());
        // The sequence number and the sender's port may be zero, as each request waits for its
        // answer.
        message.extend([0; 8]);
        message.extend([family, 0, 0, 0]);
        message.extend(attributes);
        send(&self.socket, &message, SendFlags::empty())?;
        Ok(())
    }

    /// Passes each message of an answer to `each`, until the answer ends.
    fn answers(&self, mut each: impl FnMut(u16, &[u8])) -> io::Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let (length, _) = recv(&self.socket, buffer.as_mut_slice(), RecvFlags::empty())?;
            let mut rest = &buffer[..length];
            while let Some((kind, body)) = next_message(&mut rest) {
                match kind {
                    DONE => return Ok(()),
                    ERROR => return acknowledged(body),
                    _ => each(kind, body),
                }
            }
        }
    }
}

/// Takes the next message, and returns its type and body.
fn next_message<'a>(rest: &mut &'a [u8]) -> Option<(u16, &'a [u8])> {
    let length = u32::from_ne_bytes(*rest.first_chunk()?) as usize;
    let kind = u16::from_ne_bytes(*rest.get(4..)?.first_chunk()?);
    let body = rest.get(HEADER..length)?;
    *rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some((kind, body))
}

/// Reads an acknowledgement: zero, or the negative number of an error.
fn acknowledged(body: &[u8]) -> io::Result<()> {
    match body.first_chunk().map(|number| i32::from_ne_bytes(*number)) {
        Some(0) => Ok(()),
        Some(number) => Err(io::Error::from_raw_os_error(number.saturating_neg())),
        None => Err(io::Error::other("an acknowledgement without a number")),
    }
}

/// Reads a connection. Returns `None` if it is neither TCP nor UDP.
fn connection(body: &[u8]) -> Option<Connection> {
    let family = *body.first()?;
    let attributes = body.get(GENERIC..)?;
    let original = tuple(find(attributes, TUPLE_ORIGINAL)?)?;
    let reply = tuple(find(attributes, TUPLE_REPLY)?)?;
    let transport = match original.protocol {
        TCP => Protocol::Tcp,
        UDP => Protocol::Udp,
        _ => return None,
    };
    let state = find(attributes, PROTOCOL_INFO)
        .and_then(|info| find(info, INFO_TCP))
        .and_then(|tcp| find(tcp, TCP_STATE)?.first().copied());
    let mut name = Vec::new();
    add(&mut name, TUPLE_ORIGINAL | NESTED, find(attributes, TUPLE_ORIGINAL)?);
    add(&mut name, ID, find(attributes, ID)?);
    Some(Connection {
        endpoint: Endpoint { listener: original.destination, transport, target: reply.source },
        is_open: state.is_some_and(|state| (1..=LAST_ACK).contains(&state)),
        family,
        name,
    })
}

fn tuple(attributes: &[u8]) -> Option<Tuple> {
    let addresses = find(attributes, TUPLE_IP)?;
    let protocol = find(attributes, TUPLE_PROTOCOL)?;
    let address = |v4, v6| match find(addresses, v4) {
        Some(bytes) => Some(IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        None => Some(IpAddr::from(<[u8; 16]>::try_from(find(addresses, v6)?).ok()?)),
    };
    let port = |kind| Some(u16::from_be_bytes(*find(protocol, kind)?.first_chunk()?));
    Some(Tuple {
        source: SocketAddr::new(address(V4_SOURCE, V6_SOURCE)?, port(SOURCE_PORT)?),
        destination: SocketAddr::new(
            address(V4_DESTINATION, V6_DESTINATION)?,
            port(DESTINATION_PORT)?,
        ),
        protocol: *find(protocol, NUMBER)?.first()?,
    })
}

/// Returns the value of the first attribute of this type.
fn find(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16::from_ne_bytes(*attributes.first_chunk()?));
        let kind = u16::from_ne_bytes(*attributes.get(2..)?.first_chunk()?);
        let value = attributes.get(4..length)?;
        if kind & TYPE == wanted {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

fn add(attributes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    attributes.extend(length.to_ne_bytes());
    attributes.extend(kind.to_ne_bytes());
    attributes.extend(value);
    attributes.resize(attributes.len().next_multiple_of(4), 0);
}
