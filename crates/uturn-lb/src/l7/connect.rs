//! Connections to targets, with the client's own address where the profile keeps it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use uturn_model::IpNet;
use uturn_model::lb::Source;

use crate::profile::first_address;

/// The address that a replaced source gets: the range's first after the network's own. It
/// has to be bound where the load balancer runs.
pub fn replaced_source(range: IpNet) -> IpAddr {
    first_address(range)
}

/// How a connection to a target failed.
#[derive(Debug)]
pub(crate) enum NoTarget {
    Timeout,
    Refused(io::Error),
}

pub(crate) fn connect(
    target: SocketAddr,
    source: &Source,
    client: IpAddr,
    timeout: Duration,
) -> Result<Socket, NoTarget> {
    dial(target, source, client, timeout).map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => NoTarget::Timeout,
        _ => NoTarget::Refused(error),
    })
}

fn dial(
    target: SocketAddr,
    source: &Source,
    client: IpAddr,
    timeout: Duration,
) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(target), Type::STREAM, Some(Protocol::TCP))?;
    let from = match source {
        Source::Kept => {
            match target {
                SocketAddr::V4(_) => socket.set_ip_transparent_v4(true)?,
                SocketAddr::V6(_) => socket.set_ip_transparent_v6(true)?,
            }
            client
        }
        Source::Replaced(range) => replaced_source(*range),
    };
    socket.bind(&SocketAddr::new(from, 0).into())?;
    socket.connect_timeout(&target.into(), timeout)?;
    socket.set_tcp_nodelay(true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_gives_its_first_address() {
        for (range, address) in [
            ("100.127.0.0/16", "100.127.0.1"),
            ("10.0.0.7/32", "10.0.0.7"),
            ("fd00::/64", "fd00::1"),
            ("fd00::7/128", "fd00::7"),
        ] {
            let range: IpNet = range.parse().unwrap();
            assert_eq!(replaced_source(range), address.parse::<IpAddr>().unwrap(), "{range}");
        }
    }
}
