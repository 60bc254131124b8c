//! Access to the kernel's connection tracking over netlink: lists translated connections, and
//! deletes some.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, netlink, recv, send, socket};
use uturn_model::Protocol;
use uturn_netns::conntrack::{DELETE, GET, NEW, ORIGINAL, REPLY, TCP, Tuple, UDP};
use uturn_netns::netlink::{Attributes, Message, NLM_F_ACK, NLM_F_DUMP, find, request};

use super::Endpoint;

const PROTOCOL_INFO: u16 = 4;
const ID: u16 = 12;
const INFO_TCP: u16 = 1;
const TCP_STATE: u16 = 1;

/// The last TCP state of an open connection. `TIME_WAIT` and `CLOSE` follow.
const LAST_ACK: u8 = 6;

/// A connection that was translated from a listener to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Connection {
    pub(super) endpoint: Endpoint,
    /// Whether it is a TCP connection that has not ended on both sides.
    pub(super) is_open: bool,
    /// The identity of the connection in requests: the address family, and attributes.
    family: u8,
    name: Attributes,
}

/// A socket for requests about connections.
#[derive(Debug)]
pub(super) struct Conntrack {
    socket: OwnedFd,
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
        self.request(GET, NLM_F_DUMP, 0, &Attributes::default())?;
        let mut connections = Vec::new();
        self.answers(|message| {
            if message.kind == NEW {
                connections.extend(connection(message));
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
        self.request(DELETE, NLM_F_ACK, connection.family, &connection.name)?;
        match self.answers(|_| ()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            answered => answered,
        }
    }

    fn request(&self, kind: u16, flags: u16, family: u8, named: &Attributes) -> io::Result<()> {
        // The sequence number may be zero, as each request waits for its answer.
        let message = request(kind, flags, 0, [family, 0, 0, 0], named);
        send(&self.socket, &message, SendFlags::empty())?;
        Ok(())
    }

    /// Passes each message of an answer to `each`, until the answer ends.
    fn answers(&self, mut each: impl FnMut(&Message<'_>)) -> io::Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let (length, _) = recv(&self.socket, buffer.as_mut_slice(), RecvFlags::empty())?;
            for message in Message::all(&buffer[..length]).map_while(Result::ok) {
                match message.end() {
                    Some(end) => return end,
                    None => each(&message),
                }
            }
        }
    }
}

/// Reads a connection. Returns `None` if it is neither TCP nor UDP.
fn connection(message: &Message<'_>) -> Option<Connection> {
    let attributes = message.attributes();
    let named = find(attributes, ORIGINAL)?;
    let original = Tuple::read(named)?;
    let reply = Tuple::read(find(attributes, REPLY)?)?;
    let transport = match original.protocol {
        TCP => Protocol::Tcp,
        UDP => Protocol::Udp,
        _ => return None,
    };
    let state = find(attributes, PROTOCOL_INFO)
        .and_then(|info| find(info, INFO_TCP))
        .and_then(|tcp| find(tcp, TCP_STATE)?.first().copied());
    Some(Connection {
        endpoint: Endpoint { listener: original.destination, transport, target: reply.source },
        is_open: state.is_some_and(|state| (1..=LAST_ACK).contains(&state)),
        family: message.family(),
        name: Attributes::default().nested_bytes(ORIGINAL, named).bytes(ID, find(attributes, ID)?),
    })
}
