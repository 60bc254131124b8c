//! Opens connections to targets, for clients and for health checks.

use std::net::SocketAddr;

use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpStream;

use crate::local_error::SocketError;

/// Returns a non-blocking TCP socket for a connection to a target.
///
/// # Errors
/// When this machine cannot open a socket.
pub(crate) fn socket(target: SocketAddr) -> Result<Socket, SocketError> {
    let kind = Type::STREAM.nonblocking();
    Socket::new(Domain::for_address(target), kind, Some(Protocol::TCP))
        .map_err(SocketError::at_once)
}

/// Connects a socket to a target.
///
/// # Errors
/// When this machine or the target refuses the connection; the error says which of the two.
pub(crate) async fn connect(socket: Socket, target: SocketAddr) -> Result<TcpStream, SocketError> {
    if let Err(error) = socket.connect(&target.into())
        && Errno::from_io_error(&error) != Some(Errno::INPROGRESS)
    {
        return Err(SocketError::at_once(error));
    }
    let stream = TcpStream::from_std(socket.into()).map_err(SocketError::at_once)?;
    stream.writable().await?;
    match stream.take_error()? {
        None => Ok(stream),
        Some(error) => Err(error.into()),
    }
}
