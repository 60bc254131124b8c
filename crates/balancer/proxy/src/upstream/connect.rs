//! Opens a connection to a target, with the client's own address if the profile keeps the source.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::IpBindAddressNoPort;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpStream;
use tokio::time::timeout;
use uturn_lb::source::replaced_source;
use uturn_model::lb::{Listener, Source};

use crate::capability::needs;
use crate::descriptors::{Descriptors, Purpose};
use crate::dial;
use crate::error::StartError;
use crate::local_error::{Cause, SocketError};

/// The reason why a connection to a target failed.
#[derive(Debug)]
pub(crate) enum ConnectError {
    /// Nothing answered in time.
    Timeout,
    /// The target or a router refused the connection.
    Refused(io::Error),
    /// This machine could not open the connection. That says nothing about the target.
    Local(Cause, io::Error),
}

impl From<SocketError> for ConnectError {
    fn from(error: SocketError) -> Self {
        let SocketError { cause, source } = error;
        match cause {
            Some(cause) => Self::Local(cause, source),
            None if source.kind() == io::ErrorKind::TimedOut => Self::Timeout,
            None => Self::Refused(source),
        }
    }
}

/// Connects to a target. `client` is the address that the target sees if the source is kept.
///
/// # Errors
/// When the target does not answer within `limit`, when it refuses, and when this machine cannot
/// connect.
pub(crate) async fn connect(
    target: SocketAddr,
    source: &Source,
    client: IpAddr,
    limit: Duration,
    descriptors: Descriptors,
) -> Result<TcpStream, ConnectError> {
    let socket = dial::socket(target)?;
    if !descriptors.allow(&socket, Purpose::Target) {
        return Err(SocketError::no_descriptor().into());
    }
    bind(&socket, target, source, client).map_err(SocketError::at_once)?;
    let stream = timeout(limit, dial::connect(socket, target));
    let stream = stream.await.map_err(|_| ConnectError::Timeout)??;
    stream.set_nodelay(true).map_err(SocketError::from)?;
    Ok(stream)
}

/// Fails if connections to a listener's targets have to keep the clients' addresses, but cannot.
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

/// Lets a socket have an address that does not belong to this machine.
fn keep_source(socket: &Socket, target: SocketAddr) -> io::Result<()> {
    match target {
        SocketAddr::V4(_) => socket.set_ip_transparent_v4(true),
        SocketAddr::V6(_) => socket.set_ip_transparent_v6(true),
    }
}

/// Binds a socket to the address that the target is to see.
fn bind(socket: &Socket, target: SocketAddr, source: &Source, client: IpAddr) -> io::Result<()> {
    let from = match source {
        Source::Kept => {
            keep_source(socket, target)?;
            client
        }
        Source::Replaced(range) => replaced_source(*range),
    };
    // The kernel picks the port when it knows the target, so that one port serves for as many
    // connections as there are targets.
    setsockopt(socket, IpBindAddressNoPort, &true)?;
    socket.bind(&SocketAddr::new(from, 0).into())
}
