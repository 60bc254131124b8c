//! The surroundings of a node: sends packets to any of its interfaces or from a local process,
//! and captures them where they leave or are delivered.
//!
//! Nothing waits for the clock. The kernel processes a frame from a TAP device completely before
//! the write returns. Packets over the loopback interface wait in a queue of this processor (the
//! thread is pinned to it), which all namespaces share: once a marker sent afterwards over
//! another loopback interface arrives, the queue has been processed.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use socket2::{Domain, Protocol, Socket, Type};
use uturn_model::route::Leg;
use uturn_netfilter::Packet;

use crate::bytes::{Captured, Mine, Relation, whole};
use crate::device;

/// An interface of the node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Device {
    /// Its name in rules.
    pub(crate) name: &'static str,
    /// The TAP device: itself, or a port of a bridge.
    pub(crate) tap: &'static str,
    /// The last byte of its hardware address, and of its neighbour's.
    pub(crate) number: u8,
}

/// The node's interfaces.
pub(crate) const DEVICES: [Device; 4] = [
    Device { name: "eth0", tap: "eth0", number: 1 },
    Device { name: "eth1", tap: "eth1", number: 2 },
    Device { name: "cbr0", tap: "cbr0", number: 3 },
    Device { name: "br0", tap: "p0", number: 4 },
];

/// The TCP and UDP ports on which local processes listen.
pub(crate) const PORTS: [u16; 7] = [53, 80, 443, 5000, 8080, 15001, 30000];

/// An observation about a packet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Seen {
    Out {
        device: &'static str,
        leg: Leg,
    },
    Local {
        leg: Leg,
    },
    /// A reset reached the sender, with these addresses.
    Reset {
        leg: Leg,
    },
    /// An ICMP error reached the sender: its type and code, and the address that it came from.
    Error {
        kind: u8,
        code: u8,
        src: IpAddr,
    },
    /// The sender got an error at once.
    SendError(SendError),
    /// Nothing.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SendError {
    NotPermitted,
    Unroutable,
}

/// The observed end of a packet, and that of the kernel's reply to it.
#[derive(Clone, Debug)]
pub(crate) struct Fate {
    pub(crate) packet: Seen,
    pub(crate) answer: Seen,
}

#[derive(Debug)]
pub(crate) struct Wire {
    taps: Vec<(Device, File)>,
    raws: Vec<Socket>,
    marker: UdpSocket,
    listeners: Vec<Socket>,
    buffer: Vec<u8>,
}

impl Wire {
    /// Moves to a new namespace and creates the node's interfaces, which are still down.
    pub(crate) fn new() -> io::Result<Self> {
        stay_on_one_processor()?;
        let marker = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        marker.connect(marker.local_addr()?)?;
        // A safeguard only: markers are not lost.
        marker.set_read_timeout(Some(Duration::from_secs(600)))?;
        device::leave_network()?;
        let taps = DEVICES.iter().map(|device| Ok((*device, device::tap(device.tap)?)));
        let taps = taps.collect::<io::Result<_>>()?;
        Ok(Self { taps, raws: Vec::new(), marker, listeners: Vec::new(), buffer: vec![0; 65536] })
    }

    /// Starts the listeners; the interfaces must be up.
    pub(crate) fn listen(&mut self) -> io::Result<()> {
        for protocol in [1, 6, 17, 132] {
            let raw = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(protocol)))?;
            raw.set_nonblocking(true)?;
            self.raws.push(raw);
        }
        for (port, kind) in
            PORTS.into_iter().flat_map(|port| [(port, Type::STREAM), (port, Type::DGRAM)])
        {
            let listener = Socket::new(Domain::IPV4, kind, None)?;
            // TPROXY only delivers to transparent sockets.
            listener.set_ip_transparent_v4(true)?;
            listener.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)).into())?;
            if kind == Type::STREAM {
                listener.listen(4096)?;
            }
            self.listeners.push(listener);
        }
        Ok(())
    }

    /// Sends a packet to the node through an interface.
    pub(crate) fn arrive(&mut self, device: &str, packet: &Packet, mine: Mine) -> io::Result<Fate> {
        self.collect(mine, &mut Vec::new())?;
        let at = self.taps.iter_mut().find(|(known, _)| known.name == device);
        let (device, tap) = at.unwrap_or_else(|| panic!("no interface {device:?}"));
        let mut frame = vec![2, 0, 0, 0, 0, device.number, 2, 0, 0, 0, 1, device.number, 8, 0];
        frame.extend(whole(packet, mine));
        tap.write_all(&frame)?;
        self.fate(mine, None)
    }

    /// Sends a packet from a local process.
    pub(crate) fn send(&mut self, packet: &Packet, mine: Mine) -> io::Result<Fate> {
        self.collect(mine, &mut Vec::new())?;
        let error = match send_raw(packet, mine) {
            Ok(()) => None,
            Err(why)
                if why.kind() == ErrorKind::PermissionDenied && why.raw_os_error() == Some(1) =>
            {
                Some(SendError::NotPermitted)
            }
            // No route, an unreachable or prohibit route, or an invalid source.
            Err(why) if matches!(why.raw_os_error(), Some(13 | 22 | 101 | 113)) => {
                Some(SendError::Unroutable)
            }
            Err(why) => return Err(why),
        };
        self.fate(mine, error)
    }

    fn fate(&mut self, mine: Mine, error: Option<SendError>) -> io::Result<Fate> {
        let mut seen = Vec::new();
        // A packet over lo may cause another one over lo.
        for _ in 0..3 {
            self.marker.send(b"marker")?;
            self.marker.recv(&mut [0; 16])?;
            self.collect(mine, &mut seen)?;
        }
        let first = |wanted: fn(&Relation) -> bool| {
            seen.iter().find(|(relation, _)| wanted(relation)).map(|(_, seen)| seen.clone())
        };
        // Where the packet arrived takes precedence over what came back.
        let itself = first(|relation| *relation == Relation::Itself);
        let back = || first(|relation| matches!(relation, Relation::Reset | Relation::Error(..)));
        Ok(Fate {
            packet: itself.or_else(back).or(error.map(Seen::SendError)).unwrap_or(Seen::Nothing),
            answer: first(|relation| *relation == Relation::Answer).unwrap_or(Seen::Nothing),
        })
    }

    /// Reads all captured packets.
    fn collect(&mut self, mine: Mine, into: &mut Vec<(Relation, Seen)>) -> io::Result<()> {
        for (device, tap) in &mut self.taps {
            while let Some(length) = there(tap.read(&mut self.buffer))? {
                let frame = &self.buffer[..length];
                if let (Some([8, 0]), Some(rest)) = (frame.get(12..14), frame.get(14..)) {
                    into.extend(known(mine, rest, |leg| Seen::Out { device: device.name, leg }));
                }
            }
        }
        for raw in &mut self.raws {
            while let Some(length) = there(raw.read(&mut self.buffer))? {
                into.extend(known(mine, &self.buffer[..length], |leg| Seen::Local { leg }));
            }
        }
        Ok(())
    }
}

fn known(mine: Mine, bytes: &[u8], place: impl Fn(Leg) -> Seen) -> Option<(Relation, Seen)> {
    let captured = Captured::read(bytes)?;
    let relation = mine.relation(&captured)?;
    let (src_port, dst_port) = captured.ports();
    let leg = Leg {
        src: SocketAddr::new(captured.src.into(), src_port),
        dst: SocketAddr::new(captured.dst.into(), dst_port),
    };
    let seen = match relation {
        Relation::Itself | Relation::Answer => place(leg),
        Relation::Reset => Seen::Reset { leg },
        Relation::Error(kind, code) => Seen::Error { kind, code, src: captured.src.into() },
    };
    Some((relation, seen))
}

fn there(read: io::Result<usize>) -> io::Result<Option<usize>> {
    match read {
        Ok(length) => Ok(Some(length)),
        Err(why) if why.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(why) => Err(why),
    }
}

fn send_raw(packet: &Packet, mine: Mine) -> io::Result<()> {
    let to = |ip: IpAddr, port| SocketAddr::new(ip, port);
    let protocol = Protocol::from(i32::from(packet.protocol().0));
    let socket = Socket::new(Domain::IPV4, Type::RAW, Some(protocol))?;
    socket.set_mark(packet.mark)?;
    socket.set_broadcast(true)?;
    let src = if packet.src.is_unspecified() {
        // The checksum needs the source that the kernel will select.
        let asked = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
        asked.set_mark(packet.mark)?;
        asked.set_broadcast(true)?;
        match asked.connect(&to(packet.dst, 1).into()) {
            Ok(()) => asked.local_addr()?.as_socket().map_or(packet.src, |own| own.ip()),
            // It would be the destination itself, which a connected socket may not have if it is
            // local only by a policy rule; or there is no route.
            Err(_) => packet.dst,
        }
    } else {
        let own = to(packet.src, 0).into();
        if socket.bind(&own).is_err() {
            // For addresses that are local only by a route, as for a proxy.
            socket.set_ip_transparent_v4(true)?;
            socket.bind(&own)?;
        }
        packet.src
    };
    socket.send_to(&mine.body(packet, src), &to(packet.dst, 0).into()).map(|_| ())
}

fn stay_on_one_processor() -> io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let mut cpus = CpuSet::new();
    let mine = (0..CpuSet::MAX_CPU).find(|cpu| allowed.is_set(*cpu));
    cpus.set(mine.unwrap_or(0));
    Ok(sched_setaffinity(None, &cpus)?)
}
