//! ICMP echo requests.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;

use super::ask;
use crate::capability::needs;
use crate::local_error::SocketError;

/// Opens a socket for echo requests from an address.
///
/// # Errors
/// When the address does not belong to this machine, or the privilege for raw sockets is missing.
pub(super) fn socket(source: IpAddr) -> io::Result<Socket> {
    let protocol = if source.is_ipv4() { Protocol::ICMPV4 } else { Protocol::ICMPV6 };
    let at = SocketAddr::new(source, 0);
    let socket = Socket::new(Domain::for_address(at), Type::RAW, Some(protocol))
        .map_err(|error| needs(error, "echo requests need the capability CAP_NET_RAW"))?;
    socket.set_nonblocking(true)?;
    socket.bind(&at.into())?;
    Ok(socket)
}

/// Sends an echo request and waits for its answer.
///
/// # Errors
/// When the request cannot be sent, or an error reports that it cannot be delivered.
pub(super) async fn echo(source: IpAddr, target: IpAddr) -> Result<(), SocketError> {
    /// The number of the next request. Requests of this process have different numbers, so that
    /// each gets its own answer.
    static NUMBER: AtomicU16 = AtomicU16::new(0);
    let socket = socket(source).map_err(SocketError::at_once)?;
    socket.connect(&SocketAddr::new(target, 0).into()).map_err(SocketError::at_once)?;
    let process = (std::process::id() as u16).to_be_bytes();
    let number = NUMBER.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    let (request, answer) = match target {
        IpAddr::V4(_) => (8, 0),
        IpAddr::V6(_) => (128, 129),
    };
    let id = [process[0], process[1], number[0], number[1]];
    let mut packet = [request, 0, 0, 0, id[0], id[1], id[2], id[3]];
    // For IPv6, the kernel computes the checksum.
    if target.is_ipv4() {
        [packet[2], packet[3]] = checksum(&packet).to_be_bytes();
    }
    // The runtime has only UDP sockets for datagrams, which send and receive ICMP as well.
    let socket = UdpSocket::from_std(socket.into()).map_err(SocketError::at_once)?;
    ask::send(&socket, &packet).await?;
    let mut received = [0; 256];
    loop {
        let count = socket.recv(&mut received).await?;
        // A raw IPv4 socket receives the packet's header too.
        let header = if target.is_ipv4() { usize::from(received[0] & 0x0f) * 4 } else { 0 };
        let reply = received[..count].get(header..).unwrap_or_default();
        if reply.first() == Some(&answer) && reply.get(4..8) == Some(&id[..]) {
            return Ok(());
        }
    }
}

/// Returns the internet checksum of an even number of bytes.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_the_internets() {
        // RFC 1071, section 3.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(checksum(&bytes), !0xddf2);
    }
}
