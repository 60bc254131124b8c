//! The world's DNS as far as the cluster's Facts state it: who asks for another name is told
//! that there is none.

use std::io::{self, PipeReader, PipeWriter};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};
use socket2::{Domain, Socket, Type};
use uturn_model::{Cluster, Family, Text};

use super::message::{Answer, NO_ERROR, NO_SUCH_NAME, Question};
use crate::linux::namespace::Namespace;
use crate::linux::netlink::{Index, Netlink};

/// Where nodes ask: an address that is for documents only.
pub(super) fn address(cluster: &Cluster) -> IpAddr {
    for_documents(cluster, 53)
}

/// One of the addresses that are for documents only, of a family that the nodes have.
pub(super) fn for_documents(cluster: &Cluster, last: u8) -> IpAddr {
    match cluster.nodes.values().any(|node| node.address(Family::V4).is_some()) {
        true => Ipv4Addr::new(192, 0, 2, last).into(),
        false => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last.into()).into(),
    }
}

/// The server; stops when this is dropped.
#[derive(Debug)]
pub(super) struct Outside {
    life: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl Outside {
    /// Starts it in the fabric.
    pub(super) fn start(fabric: &Namespace, cluster: &Cluster) -> io::Result<Self> {
        let at = SocketAddr::new(address(cluster), 53);
        let names = cluster.dns.outside.clone();
        let socket = fabric.run(|| {
            Netlink::open()?.add_address(Index::LOOPBACK, at.ip().into())?;
            let socket = Socket::new(Domain::for_address(at), Type::DGRAM, None)?;
            // Another server may serve every other address.
            socket.set_reuse_address(true)?;
            socket.set_reuse_port(true)?;
            socket.set_nonblocking(true)?;
            socket.bind(&at.into())?;
            Ok(UdpSocket::from(socket))
        })?;
        let (end, life) = io::pipe()?;
        let serve = move || serve(&socket, &end, &names);
        let thread = thread::Builder::new().name("names".into()).spawn(serve)?;
        Ok(Self { life: Some(life), thread: Some(thread) })
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        drop(self.life.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(socket: &UdpSocket, end: &PipeReader, names: &[(Text, IpAddr)]) {
    loop {
        let mut waiting = [PollFd::new(end, PollFlags::IN), PollFd::new(socket, PollFlags::IN)];
        if poll(&mut waiting, None).is_err() {
            continue;
        }
        if !waiting[0].revents().is_empty() {
            return;
        }
        let mut bytes = [0; 4096];
        while let Ok((count, peer)) = socket.recv_from(&mut bytes) {
            if let Some((question, part)) = Question::read(&bytes[..count]) {
                // A failed answer is like no answer.
                let _ = socket.send_to(&answer(&question, names).to_bytes(part), peer);
            }
        }
    }
}

fn answer(question: &Question, names: &[(Text, IpAddr)]) -> Answer {
    let is_asked = |name: &str| name.trim_end_matches('.').eq_ignore_ascii_case(&question.name);
    let all: Vec<IpAddr> =
        names.iter().filter(|(name, _)| is_asked(name)).map(|(_, ip)| *ip).collect();
    let code = if all.is_empty() { NO_SUCH_NAME } else { NO_ERROR };
    let addresses = all.into_iter().filter(|ip| question.family == Some(Family::of(*ip))).collect();
    Answer { number: question.number, code, addresses }
}
