//! A packet socket in a namespace, which receives every frame that arrives or leaves by any link.

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::net::netdevice::index_to_name;
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use socket2::{Domain, Protocol, Socket, Type};

use super::frame_metadata;
use crate::linux::kernel::namespace::Namespace;

/// `ETH_P_ALL`, in the order of the wire.
const EVERYTHING: u16 = 3_u16.to_be();

/// The receive buffer of a socket, in bytes.
const BUFFER: usize = 8 << 20;

/// A frame at a place.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// The index of the namespace in [`places`](super::places).
    pub(crate) place: usize,
    pub(crate) link: String,
    pub(crate) leaves: bool,
    /// The time since 1970.
    pub(crate) at: Duration,
    pub(crate) bytes: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Tap {
    place: usize,
    socket: Socket,
    links: HashMap<u32, String>,
}

impl Tap {
    pub(super) fn open(place: usize, space: &Namespace) -> io::Result<Self> {
        let socket = space.run(|| {
            let protocol = Protocol::from(i32::from(EVERYTHING));
            Socket::new(Domain::PACKET, Type::RAW, Some(protocol))
        })?;
        socket.set_nonblocking(true)?;
        set_socket_recv_buffer_size_force(&socket, BUFFER)?;
        // This fails as there is no frame yet, but makes the kernel take the times of frames.
        let _ = frame_metadata::stamp(&socket);
        Ok(Self { place, socket, links: HashMap::new() })
    }

    /// Returns the next frame, if there is one.
    pub(super) fn next(&mut self, room: &mut [MaybeUninit<u8>]) -> io::Result<Option<Frame>> {
        let (length, from) = match self.socket.recv_from(room) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        };
        let at = frame_metadata::stamp(&self.socket)?;
        let (index, leaves) = frame_metadata::link_of(&from)
            .ok_or_else(|| io::Error::other("a frame came without the link it came by"))?;
        let bytes = frame_metadata::written(room, length).to_vec();
        let link = match self.links.get(&index) {
            Some(name) => name.clone(),
            None => {
                let name = index_to_name(&self.socket, index)?;
                self.links.insert(index, name.clone());
                name
            }
        };
        Ok(Some(Frame { place: self.place, link, leaves, at, bytes }))
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
