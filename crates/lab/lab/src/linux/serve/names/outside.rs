//! A DNS server for names outside the cluster. It answers for names that the Facts state, and
//! NXDOMAIN for all others.

use std::io::{self, PipeReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, PoisonError, RwLock};

use rustix::event::{PollFd, PollFlags, poll};
use socket2::{Domain, Socket, Type};
use uturn_dns::{Question, Rcode, Reply, wire};
use uturn_model::{Cluster, Family, Text};

use crate::linux::kernel::namespace::Namespace;
use crate::linux::kernel::netlink::{Index, Netlink};
use crate::linux::run::worker::Worker;

/// Returns the server's address, from a range reserved for documentation.
pub(crate) fn address(cluster: &Cluster) -> IpAddr {
    for_documents(cluster, 53)
}

/// Returns an address from a range reserved for documentation, of a family that the nodes have.
pub(super) fn for_documents(cluster: &Cluster, last: u8) -> IpAddr {
    if cluster.nodes.values().any(|node| node.address(Family::V4).is_some()) {
        Ipv4Addr::new(192, 0, 2, last).into()
    } else {
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last.into()).into()
    }
}

/// The running server. It stops when this is dropped.
#[derive(Debug)]
pub(crate) struct Outside {
    _worker: Worker,
    names: Arc<Names>,
}

/// The known names and their addresses.
type Names = RwLock<Vec<(Text, IpAddr)>>;

impl Outside {
    /// Starts the server in the fabric.
    pub(crate) fn start(fabric: &Namespace, cluster: &Cluster) -> io::Result<Self> {
        let at = SocketAddr::new(address(cluster), 53);
        let names = Arc::new(Names::new(known(cluster)));
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
        let known = Arc::clone(&names);
        let serve = move |end: PipeReader| serve(&socket, &end, &known);
        Ok(Self { _worker: Worker::start("names", serve)?, names })
    }

    /// Replaces the known names.
    pub(crate) fn set(&self, names: Vec<(Text, IpAddr)>) {
        *self.names.write().unwrap_or_else(PoisonError::into_inner) = names;
    }
}

/// Returns the stated names, and those of load balancers that are not stated.
fn known(cluster: &Cluster) -> Vec<(Text, IpAddr)> {
    let mut all = cluster.dns.outside.clone();
    let is_stated = |host: &Text| all.iter().any(|(name, _)| name.eq_ignore_ascii_case(host));
    let balancers = cluster.dns.balancers.iter().filter(|(host, _)| !is_stated(host));
    let balancers: Vec<(Text, IpAddr)> = balancers
        .flat_map(|(host, named)| named.iter().map(|named| (host.clone(), named.address)))
        .collect();
    all.extend(balancers);
    all
}

fn serve(socket: &UdpSocket, end: &PipeReader, names: &Names) {
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
            let query = &bytes[..count];
            let response = wire::decode_query(query).and_then(|(_, question)| {
                let names = names.read().unwrap_or_else(PoisonError::into_inner);
                wire::encode_response(query, &answer(&question, &names))
            });
            if let Some(response) = response {
                // A client that is gone gets no answer.
                let _ = socket.send_to(&response, peer);
            }
        }
    }
}

fn answer(question: &Question, names: &[(Text, IpAddr)]) -> Reply {
    let asked = question.name.trim_end_matches('.');
    let is_asked = |name: &str| name.trim_end_matches('.').eq_ignore_ascii_case(asked);
    let all: Vec<IpAddr> =
        names.iter().filter(|(name, _)| is_asked(name)).map(|(_, ip)| *ip).collect();
    if all.is_empty() { Reply::code(Rcode::NxDomain) } else { Reply::addresses(question, all) }
}
