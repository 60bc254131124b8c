//! Which process of a network namespace has the table.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// A socket's name, which one process of a network namespace can have at a time.
const NAME: &str = "uturn-lb/layer-4";

/// Says that the table of this network namespace is this process's, until it is dropped or the
/// process ends.
#[derive(Debug)]
pub(super) struct Claim {
    _socket: UnixDatagram,
}

impl Claim {
    /// Claims the table of the network namespace of this thread.
    ///
    /// # Errors
    /// When another process has it.
    pub(super) fn new() -> io::Result<Self> {
        let address = SocketAddr::from_abstract_name(NAME)?;
        let socket = UnixDatagram::bind_addr(&address).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => io::Error::new(
                error.kind(),
                "another load balancer has TCP and UDP listeners in this network namespace",
            ),
            _ => error,
        })?;
        Ok(Self { _socket: socket })
    }
}
