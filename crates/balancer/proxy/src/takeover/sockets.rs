//! Passes listening sockets from one process to another.

use std::collections::HashMap;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The number of sockets that are sent at a time. The kernel accepts up to 253.
const AT_A_TIME: usize = 64;

/// The listening sockets of the previous process, by their addresses.
#[derive(Debug, Default)]
pub(crate) struct Inherited(HashMap<SocketAddr, Vec<TcpListener>>);

impl Inherited {
    pub(super) fn new(sockets: Vec<OwnedFd>) -> io::Result<Self> {
        let mut by_address: HashMap<_, Vec<_>> = HashMap::new();
        for socket in sockets {
            let socket = TcpListener::from(socket);
            by_address.entry(socket.local_addr()?).or_default().push(socket);
        }
        Ok(Self(by_address))
    }

    /// Returns duplicates of the sockets that listen at an address.
    pub(crate) fn at(&self, address: SocketAddr) -> io::Result<Vec<TcpListener>> {
        self.0.get(&address).into_iter().flatten().map(TcpListener::try_clone).collect()
    }
}

/// Sends duplicates of sockets: first their number, then each group with a byte that carries the
/// group.
pub(super) fn send(mut stream: &UnixStream, sockets: &[OwnedFd]) -> io::Result<()> {
    let count = u32::try_from(sockets.len()).map_err(io::Error::other)?;
    stream.write_all(&count.to_be_bytes())?;
    for group in sockets.chunks(AT_A_TIME) {
        let group: Vec<BorrowedFd<'_>> = group.iter().map(AsFd::as_fd).collect();
        let mut room = [MaybeUninit::uninit(); cmsg_space!(ScmRights(AT_A_TIME))];
        let mut carried = SendAncillaryBuffer::new(&mut room);
        // There is room for a group.
        carried.push(SendAncillaryMessage::ScmRights(&group));
        sendmsg(stream, &[IoSlice::new(&[0])], &mut carried, SendFlags::NOSIGNAL)?;
    }
    Ok(())
}

/// Receives sockets that [`send`] sent.
pub(super) fn receive(mut stream: &UnixStream) -> io::Result<Vec<OwnedFd>> {
    let mut count = [0; 4];
    stream.read_exact(&mut count)?;
    let count = u32::from_be_bytes(count) as usize;
    let mut sockets = Vec::new();
    while sockets.len() < count {
        let mut room = [MaybeUninit::uninit(); cmsg_space!(ScmRights(AT_A_TIME))];
        let mut carried = RecvAncillaryBuffer::new(&mut room);
        let mut byte = [0];
        let buffer = &mut [IoSliceMut::new(&mut byte)];
        let received = recvmsg(stream, buffer, &mut carried, RecvFlags::CMSG_CLOEXEC)?;
        if received.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for message in carried.drain() {
            if let RecvAncillaryMessage::ScmRights(group) = message {
                sockets.extend(group);
            }
        }
        // Sockets that exceed the process's limit are lost.
        if received.flags.contains(ReturnFlags::CTRUNC) {
            return Err(io::Error::other("this process may not have so many open files"));
        }
    }
    Ok(sockets)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn many_sockets_arrive_with_their_addresses() {
        let listeners: Vec<_> =
            (0..3 * AT_A_TIME + 1).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let addresses: Vec<_> = listeners.iter().map(|it| it.local_addr().unwrap()).collect();
        let (here, there) = UnixStream::pair().unwrap();
        let sender = thread::spawn(move || {
            let sockets: Vec<_> = listeners.into_iter().map(OwnedFd::from).collect();
            send(&there, &sockets).unwrap();
        });
        let inherited = Inherited::new(receive(&here).unwrap()).unwrap();
        // The first process has closed its own; the addresses are still listened at.
        sender.join().unwrap();
        assert_eq!(inherited.0.len(), addresses.len());
        for address in addresses {
            assert_eq!(inherited.at(address).unwrap().len(), 1);
            std::net::TcpStream::connect(address).unwrap();
        }
    }

    #[test]
    fn a_process_that_ends_half_way_is_an_error() {
        let (here, mut there) = UnixStream::pair().unwrap();
        there.write_all(&2u32.to_be_bytes()).unwrap();
        drop(there);
        assert_eq!(receive(&here).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
