//! Configures links, addresses, routes and neighbours through netlink, one request and its
//! acknowledgement at a time.

mod policy;

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};

use ipnet::IpNet;
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressHeader, AddressMessage, AddressScope,
};
use netlink_packet_route::link::{
    InfoBridgePort, InfoData, InfoKind, InfoPortData, InfoPortKind, InfoVeth, InfoVxlan,
    LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourHeader, NeighbourMessage,
    NeighbourState,
};
use netlink_packet_route::route::{
    RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

pub(crate) use policy::{Masked, Selector};

/// The fabric's link that discards packets.
pub(crate) const HOLE: &str = "hole";

/// A hardware address.
pub(crate) type Mac = [u8; 6];

/// The number of an interface. The loopback's is always 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Index(u32);

impl Index {
    pub(crate) const LOOPBACK: Self = Self(1);

    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

/// One end of a pair of links.
pub(crate) struct End<'a> {
    pub(crate) name: &'a str,
    pub(crate) mac: Mac,
}

/// A device that encapsulates frames in UDP and sends them from one address to others.
pub(crate) struct Vxlan<'a> {
    pub(crate) name: &'a str,
    pub(crate) mac: Mac,
    /// The VXLAN network identifier.
    pub(crate) id: u32,
    pub(crate) port: u16,
    /// The source address of encapsulated packets; below the link that has it.
    pub(crate) from: IpAddr,
    pub(crate) over: Index,
}

/// The next hop of a route.
#[derive(Clone, Copy)]
pub(crate) enum Via {
    /// Directly out of an interface.
    Link(Index),
    /// To an on-link router behind an interface.
    Router(IpAddr, Index),
}

/// A connection to the kernel, in the namespace of the thread that opened it.
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    pub(crate) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Creates a pair of links: one end here, the other in another namespace. Both are down.
    pub(crate) fn add_pair(
        &mut self,
        here: &End<'_>,
        there: &End<'_>,
        other: &impl AsFd,
    ) -> io::Result<()> {
        let end = |end: &End<'_>| {
            let mut message = LinkMessage::default();
            message.attributes.push(LinkAttribute::IfName(end.name.into()));
            message.attributes.push(LinkAttribute::Address(end.mac.to_vec()));
            message
        };
        let mut peer = end(there);
        peer.attributes.push(LinkAttribute::NetNsFd(other.as_fd().as_raw_fd()));
        let mut message = end(here);
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        self.create(RouteNetlinkMessage::NewLink(message))
    }

    /// Creates a bridge that is up.
    pub(crate) fn add_bridge(&mut self, name: &str, mac: Mac) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        message.attributes.push(LinkAttribute::IfName(name.into()));
        message.attributes.push(LinkAttribute::Address(mac.to_vec()));
        message.attributes.push(LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Bridge)]));
        self.create(RouteNetlinkMessage::NewLink(message))
    }

    /// Creates a VXLAN device without learning, down. [`add_peer`](Self::add_peer) adds its
    /// forwarding entries.
    pub(crate) fn add_vxlan(&mut self, device: &Vxlan<'_>) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(device.name.into()));
        message.attributes.push(LinkAttribute::Address(device.mac.to_vec()));
        let about = vec![
            InfoVxlan::Id(device.id),
            InfoVxlan::Port(device.port),
            InfoVxlan::Link(device.over.0),
            InfoVxlan::Learning(false),
            match device.from {
                IpAddr::V4(ip) => InfoVxlan::Local(ip),
                IpAddr::V6(ip) => InfoVxlan::Local6(ip),
            },
        ];
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Vxlan),
            LinkInfo::Data(InfoData::Vxlan(about)),
        ]));
        self.create(RouteNetlinkMessage::NewLink(message))
    }

    /// Adds a forwarding entry to a VXLAN device: the address that frames for this hardware
    /// address are sent to.
    pub(crate) fn add_peer(&mut self, vxlan: Index, mac: Mac, at: IpAddr) -> io::Result<()> {
        let mut message = neighbour(vxlan, at, mac);
        message.header.family = AddressFamily::Bridge;
        message.header.flags = NeighbourFlags::Own;
        self.create(RouteNetlinkMessage::NewNeighbour(message))
    }

    /// Sets the MTU of a link.
    pub(crate) fn set_mtu(&mut self, link: Index, mtu: u32) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = link.0;
        message.attributes.push(LinkAttribute::Mtu(mtu));
        self.change(RouteNetlinkMessage::SetLink(message))
    }

    /// Creates a dummy device that stays down and only holds addresses. If the kernel has no
    /// dummy devices, a bridge without ports serves the same purpose.
    pub(crate) fn add_dummy(&mut self, name: &str) -> io::Result<()> {
        let mut made = Ok(());
        for kind in [InfoKind::Dummy, InfoKind::Bridge] {
            let mut message = LinkMessage::default();
            message.attributes.push(LinkAttribute::IfName(name.into()));
            message.attributes.push(LinkAttribute::LinkInfo(vec![LinkInfo::Kind(kind)]));
            made = self.create(RouteNetlinkMessage::NewLink(message));
            if !made.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::Unsupported) {
                break;
            }
        }
        made
    }

    /// Creates a link that silently discards packets, without neighbour resolution or ICMP
    /// errors.
    ///
    /// A blackhole route would not do: it makes local connects fail with an error.
    pub(crate) fn add_discarding_link(&mut self) -> io::Result<Index> {
        self.add_dummy(HOLE)?;
        let link = self.index(HOLE)?;
        let mut message = LinkMessage::default();
        message.header.index = link.0;
        message.header.flags = LinkFlags::Up | LinkFlags::Noarp;
        message.header.change_mask = LinkFlags::Up | LinkFlags::Noarp;
        self.change(RouteNetlinkMessage::SetLink(message))?;
        Ok(link)
    }

    /// Makes a link a port of a bridge. In hairpin mode a frame may leave by the port by which it
    /// came, which pods need that call a Service and are picked themselves.
    pub(crate) fn add_port(&mut self, bridge: Index, port: Index, hairpin: bool) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = port.0;
        message.attributes.push(LinkAttribute::Controller(bridge.0));
        self.change(RouteNetlinkMessage::SetLink(message))?;
        let mut message = LinkMessage::default();
        message.header.index = port.0;
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::PortKind(InfoPortKind::Bridge),
            LinkInfo::PortData(InfoPortData::BridgePort(vec![InfoBridgePort::HairpinMode(
                hairpin,
            )])),
        ]));
        self.change(RouteNetlinkMessage::NewLink(message))
    }

    pub(crate) fn up(&mut self, link: Index) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = link.0;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        self.change(RouteNetlinkMessage::SetLink(message))
    }

    /// Renames a link that is down.
    pub(crate) fn rename(&mut self, link: Index, name: &str) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = link.0;
        message.attributes.push(LinkAttribute::IfName(name.into()));
        self.change(RouteNetlinkMessage::SetLink(message))
    }

    pub(crate) fn index(&mut self, name: &str) -> io::Result<Index> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.into()));
        match self.ask(RouteNetlinkMessage::GetLink(message), NLM_F_REQUEST)? {
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) => {
                Ok(Index(link.header.index))
            }
            other => Err(io::Error::other(format!("unexpected answer {other:?}"))),
        }
    }

    pub(crate) fn add_address(&mut self, link: Index, address: IpNet) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header = AddressHeader {
            family: family(address.addr()),
            prefix_len: address.prefix_len(),
            scope: AddressScope::Universe,
            index: link.0,
            ..AddressHeader::default()
        };
        message.attributes.push(AddressAttribute::Local(address.addr()));
        message.attributes.push(AddressAttribute::Address(address.addr()));
        if address.addr().is_ipv6() {
            // Duplicate address detection is skipped, as the address is unique.
            message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
        }
        self.create(RouteNetlinkMessage::NewAddress(message))
    }

    pub(crate) fn add_route(&mut self, to: IpNet, via: Via) -> io::Result<()> {
        self.add_route_from(None, to, via)
    }

    /// Adds a route with a preferred source address for packets of this namespace.
    pub(crate) fn add_route_from(
        &mut self,
        from: Option<IpAddr>,
        to: IpNet,
        via: Via,
    ) -> io::Result<()> {
        self.route(u32::from(RouteHeader::RT_TABLE_MAIN), from, to, via)
    }

    /// Adds a route to a table.
    pub(crate) fn add_route_in(&mut self, table: u32, to: IpNet, via: Via) -> io::Result<()> {
        self.route(table, None, to, via)
    }

    fn route(&mut self, table: u32, from: Option<IpAddr>, to: IpNet, via: Via) -> io::Result<()> {
        let mut header = route_header(to);
        header.table = short(table);
        header.scope = match via {
            Via::Link(_) => RouteScope::Link,
            Via::Router(..) => RouteScope::Universe,
        };
        let mut message = RouteMessage::default();
        message.attributes.push(RouteAttribute::Table(table));
        message.attributes.push(RouteAttribute::Destination(to.network().into()));
        message.attributes.extend(from.map(|ip| RouteAttribute::PrefSource(ip.into())));
        match via {
            Via::Link(link) => message.attributes.push(RouteAttribute::Oif(link.0)),
            Via::Router(router, link) => {
                header.flags = RouteFlags::Onlink;
                message.attributes.push(RouteAttribute::Gateway(router.into()));
                message.attributes.push(RouteAttribute::Oif(link.0));
            }
        }
        message.header = header;
        self.create(RouteNetlinkMessage::NewRoute(message))
    }

    /// Adds a permanent neighbour entry.
    pub(crate) fn add_neighbour(&mut self, at: Index, ip: IpAddr, mac: Mac) -> io::Result<()> {
        self.create(RouteNetlinkMessage::NewNeighbour(neighbour(at, ip, mac)))
    }

    fn create(&mut self, message: RouteNetlinkMessage) -> io::Result<()> {
        self.ask(message, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL).map(drop)
    }

    fn change(&mut self, message: RouteNetlinkMessage) -> io::Result<()> {
        self.ask(message, NLM_F_REQUEST | NLM_F_ACK).map(drop)
    }

    fn ask(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> io::Result<NetlinkPayload<RouteNetlinkMessage>> {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = flags;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let (bytes, _) = self.socket.recv_from_full()?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
        match answer.payload {
            NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
            payload => Ok(payload),
        }
    }
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

fn neighbour(at: Index, ip: IpAddr, mac: Mac) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header = NeighbourHeader {
        family: family(ip),
        ifindex: at.0,
        state: NeighbourState::Permanent,
        ..NeighbourHeader::default()
    };
    message.attributes.push(NeighbourAttribute::Destination(match ip {
        IpAddr::V4(ip) => NeighbourAddress::Inet(ip),
        IpAddr::V6(ip) => NeighbourAddress::Inet6(ip),
    }));
    message.attributes.push(NeighbourAttribute::LinkLayerAddress(mac.to_vec()));
    message
}

/// Returns the header's 8-bit table number, or 0 for a larger one, which goes into an attribute.
fn short(table: u32) -> u8 {
    u8::try_from(table).unwrap_or_default()
}

fn route_header(to: IpNet) -> RouteHeader {
    RouteHeader {
        address_family: family(to.addr()),
        destination_prefix_length: to.prefix_len(),
        table: RouteHeader::RT_TABLE_MAIN,
        protocol: RouteProtocol::Static,
        kind: RouteType::Unicast,
        ..RouteHeader::default()
    }
}
