//! Sockets on which netfilter reports events.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_NETFILTER;

/// `ENOBUFS`.
const LOST: i32 = 105;

/// The reports of a group of netfilter's.
pub(crate) struct Reports {
    socket: Socket,
}

impl Reports {
    /// Collects the reports of a group, in the namespace of this thread, from now on. `buffer` is
    /// the size of the receive buffer in bytes, if the usual one is too small.
    pub(crate) fn open(group: u32, buffer: Option<usize>) -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_NETFILTER)?;
        socket.bind_auto()?;
        if let Some(size) = buffer {
            socket.set_rx_buf_sz(size)?;
        }
        socket.add_membership(group)?;
        socket.set_non_blocking(true)?;
        Ok(Self { socket })
    }

    /// Passes the reports since the last call to `each`, as sequences of messages.
    pub(crate) fn take(&self, mut each: impl FnMut(&[u8])) -> io::Result<()> {
        loop {
            match self.socket.recv_from_full() {
                Ok((bytes, _)) => each(&bytes),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The buffer overflowed: some reports were lost, the others are valid.
                Err(error) if error.raw_os_error() == Some(LOST) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl AsFd for Reports {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
