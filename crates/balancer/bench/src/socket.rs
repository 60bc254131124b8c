//! Opens connections from a given address.

use std::io;
use std::net::{IpAddr, SocketAddr};

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::IpBindAddressNoPort;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpSocket, TcpStream};

/// Opens a connection. A `window` limits the unread bytes that the kernel keeps to about that many.
///
/// # Errors
/// When the server does not accept the connection.
pub(crate) async fn connect(
    from: Option<IpAddr>,
    to: SocketAddr,
    window: Option<usize>,
) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    if let Some(window) = window {
        socket.set_recv_buffer_size(window)?;
    }
    if let Some(from) = from {
        // The port is picked when the server's address is known, so that there are enough ports.
        setsockopt(&socket, IpBindAddressNoPort, &true)?;
        socket.bind(&SocketAddr::new(from, 0).into())?;
    }
    let stream = TcpSocket::from_std_stream(socket.into()).connect(to).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
