//! Detects whether the other end of a connection is still there.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{SockRef, TcpKeepalive};

/// The silence of a connection after which the kernel probes whether the other end is still there.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);

/// The time from one such probe to the next.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// The number of probes without an answer after which the connection ends.
const KEEPALIVE_RETRIES: u32 = 4;

/// Lets the kernel end a connection whose other end disappeared without notice, after two minutes.
/// Connections that a listening socket accepts inherit the setting.
///
/// # Errors
/// When the socket is no TCP socket, or is closed.
pub(crate) fn set_keepalive(socket: &impl AsFd) -> io::Result<()> {
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_AFTER)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_RETRIES);
    SockRef::from(socket).set_tcp_keepalive(&keepalive)
}

/// The state of the other end of a connection, as the kernel knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// The other end may send and receive.
    There,
    /// The other end sends nothing more. Whether it still receives is not known.
    HasClosed,
    /// The other end has reset the connection, or does not answer any more.
    Gone,
}

impl Peer {
    /// Returns the state of a connection of which this side is open.
    pub(crate) fn of(socket: &impl AsFd) -> Self {
        let mut asked = [PollFd::new(socket, PollFlags::RDHUP)];
        // The call fails only if the kernel lacks memory; the next check then decides.
        let known = poll(&mut asked, Some(&Timespec::default()));
        let seen = asked[0].revents();
        match known {
            Ok(1..) if seen.intersects(PollFlags::HUP | PollFlags::ERR) => Self::Gone,
            Ok(1..) if seen.contains(PollFlags::RDHUP) => Self::HasClosed,
            _ => Self::There,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{Shutdown, TcpListener, TcpStream};

    use super::*;

    fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn a_close_and_a_reset_are_told_apart() {
        let (client, mut server) = connection();
        assert_eq!(Peer::of(&server), Peer::There);
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(server.read(&mut [0]).unwrap(), 0);
        assert_eq!(Peer::of(&server), Peer::HasClosed);
        SockRef::from(&client).set_linger(Some(Duration::ZERO)).unwrap();
        drop(client);
        assert_eq!(Peer::of(&server), Peer::Gone);

        let (client, server) = connection();
        SockRef::from(&client).set_linger(Some(Duration::ZERO)).unwrap();
        drop(client);
        assert_eq!(Peer::of(&server), Peer::Gone);
    }
}
