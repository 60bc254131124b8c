//! Opens a connection to a target, with the client's own address where the profile keeps it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::IpBindAddressNoPort;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use uturn_lb::source::replaced_source;
use uturn_model::lb::{Listener, Source};

use crate::capability::needs;
use crate::error::StartError;

/// How a connection to a target failed.
#[derive(Debug)]
pub(crate) enum ConnectError {
    /// Nothing answered in time.
    Timeout,
    /// The target, a router or this machine's kernel refused it.
    Refused(io::Error),
}

/// Connects to a target. `client` is the address that targets see where the source is kept.
///
/// # Errors
/// When the target does not answer within `limit`, and when it is refused.
pub(crate) async fn connect(
    target: SocketAddr,
    source: &Source,
    client: IpAddr,
    limit: Duration,
) -> Result<TcpStream, ConnectError> {
    let socket = bound_socket(target, source, client).map_err(ConnectError::Refused)?;
    match timeout(limit, socket.connect(target)).await {
        Err(_) => Err(ConnectError::Timeout),
        Ok(Err(error)) if error.kind() == io::ErrorKind::TimedOut => Err(ConnectError::Timeout),
        Ok(Err(error)) => Err(ConnectError::Refused(error)),
        Ok(Ok(stream)) => {
            stream.set_nodelay(true).map_err(ConnectError::Refused)?;
            Ok(stream)
        }
    }
}

/// Fails if connections to a listener's targets cannot keep their clients' addresses, and should.
///
/// # Errors
/// When the capability for it is missing.
pub(crate) fn check_source(address: SocketAddr, listener: &Listener) -> Result<(), StartError> {
    if listener.profile.source != Source::Kept {
        return Ok(());
    }
    let mut targets = listener.rules.iter().flat_map(|rule| &rule.targets);
    let Some(target) = targets.next().map(|target| target.address) else { return Ok(()) };
    let kept = Socket::new(Domain::for_address(target), Type::STREAM, Some(Protocol::TCP))
        .and_then(|socket| keep_source(&socket, target));
    kept.map_err(|source| StartError {
        doing: format!("keep the addresses of the clients of {address}"),
        source: needs(source, "this needs the capability CAP_NET_ADMIN, or a source to replace it"),
    })
}

/// Lets a socket have an address that is not this machine's.
fn keep_source(socket: &Socket, target: SocketAddr) -> io::Result<()> {
    match target {
        SocketAddr::V4(_) => socket.set_ip_transparent_v4(true),
        SocketAddr::V6(_) => socket.set_ip_transparent_v6(true),
    }
}

fn bound_socket(target: SocketAddr, source: &Source, client: IpAddr) -> io::Result<TcpSocket> {
    let socket = Socket::new(Domain::for_address(target), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    let from = match source {
        Source::Kept => {
            keep_source(&socket, target)?;
            client
        }
        Source::Replaced(range) => replaced_source(*range),
    };
    // The kernel picks the port when it knows the target, so that one port serves for as many
    // connections as there are targets.
    setsockopt(&socket, IpBindAddressNoPort, &true)?;
    socket.bind(&SocketAddr::new(from, 0).into())?;
    Ok(TcpSocket::from_std_stream(socket.into()))
}
