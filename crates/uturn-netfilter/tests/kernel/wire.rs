//! All that is around one node: packets are put in at any of its interfaces, or sent by a
//! process of it, and met where they leave or are handed over.
//!
//! Nothing is waited for by the clock. The kernel takes a frame from a TAP device all the
//! way before the write returns. What goes over the loopback interface waits in one queue
//! of this processor (the thread stays on it), which all namespaces share: once a marker
//! that was sent after it over another loopback interface is there, it is done.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use socket2::{Domain, Protocol, Socket, Type};
use uturn_model::route::Leg;
use uturn_netfilter::Packet;

use crate::bytes::{Captured, Kin, Mine, whole};
use crate::device;

/// An interface of the node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Device {
    /// As rules call it.
    pub(crate) name: &'static str,
    /// The TAP device: itself, or a port of a bridge.
    pub(crate) tap: &'static str,
    /// Ends its hardware address, and that of its neighbour.
    pub(crate) number: u8,
}

/// The node's interfaces.
pub(crate) const DEVICES: [Device; 4] = [
    Device { name: "eth0", tap: "eth0", number: 1 },
    Device { name: "eth1", tap: "eth1", number: 2 },
    Device { name: "cbr0", tap: "cbr0", number: 3 },
    Device { name: "br0", tap: "p0", number: 4 },
];

/// Where processes of the node listen, TCP and UDP.
pub(crate) const PORTS: [u16; 7] = [53, 80, 443, 5000, 8080, 15001, 30000];

/// One thing that became of a packet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Seen {
    Out {
        device: &'static str,
        leg: Leg,
    },
    Local {
        leg: Leg,
    },
    Reset,
    Error(u8, u8),
    /// The sender was told so.
    Told(Told),
    /// Nothing.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Told {
    NotPermitted,
    Unroutable,
}

/// What became of a packet, and of the answer that the node's kernel gave to it.
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
    /// Leaves the network for a namespace with the node's interfaces in it, not yet up.
    pub(crate) fn new() -> io::Result<Self> {
        stay_on_one_processor()?;
        let marker = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        marker.connect(marker.local_addr()?)?;
        // Only against waiting for ever: a marker is never lost.
        marker.set_read_timeout(Some(Duration::from_secs(20)))?;
        device::leave_network()?;
        let taps = DEVICES.iter().map(|one| Ok((*one, device::tap(one.tap)?)));
        let taps = taps.collect::<io::Result<_>>()?;
        Ok(Self { taps, raws: Vec::new(), marker, listeners: Vec::new(), buffer: vec![0; 65536] })
    }

    /// Once the interfaces are up: listens to what the node's processes are handed.
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
            // TPROXY hands packets to no other.
            listener.set_ip_transparent_v4(true)?;
            listener.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)).into())?;
            if kind == Type::STREAM {
                listener.listen(4096)?;
            }
            self.listeners.push(listener);
        }
        Ok(())
    }

    /// A packet comes in through an interface.
    pub(crate) fn arrive(&mut self, device: &str, packet: &Packet, mine: Mine) -> io::Result<Fate> {
        self.collect(mine, &mut Vec::new())?;
        let at = self.taps.iter_mut().find(|(one, _)| one.name == device);
        let (one, tap) = at.unwrap_or_else(|| panic!("no interface {device:?}"));
        let mut frame = vec![2, 0, 0, 0, 0, one.number, 2, 0, 0, 0, 1, one.number, 8, 0];
        frame.extend(whole(packet, mine));
        tap.write_all(&frame)?;
        self.fate(mine, None)
    }

    /// A process of the node sends a packet.
    pub(crate) fn send(&mut self, packet: &Packet, mine: Mine) -> io::Result<Fate> {
        self.collect(mine, &mut Vec::new())?;
        let told = match send_raw(packet, mine) {
            Ok(()) => None,
            Err(why)
                if why.kind() == ErrorKind::PermissionDenied && why.raw_os_error() == Some(1) =>
            {
                Some(Told::NotPermitted)
            }
            // No route, one that says no, or a source that is none.
            Err(why) if matches!(why.raw_os_error(), Some(13 | 22 | 101 | 113)) => {
                Some(Told::Unroutable)
            }
            Err(why) => return Err(why),
        };
        self.fate(mine, told)
    }

    fn fate(&mut self, mine: Mine, told: Option<Told>) -> io::Result<Fate> {
        let mut seen = Vec::new();
        // What goes over lo may cause more that goes over lo.
        for _ in 0..3 {
            self.marker.send(b"marker")?;
            self.marker.recv(&mut [0; 16])?;
            self.collect(mine, &mut seen)?;
        }
        let first = |wanted: fn(&Kin) -> bool| {
            seen.iter().find(|(kin, _)| wanted(kin)).map(|(_, seen)| seen.clone())
        };
        // Where it came to counts before what came back.
        let itself = first(|kin| *kin == Kin::Itself);
        let back = || first(|kin| matches!(kin, Kin::Reset | Kin::Error(..)));
        Ok(Fate {
            packet: itself.or_else(back).or(told.map(Seen::Told)).unwrap_or(Seen::Nothing),
            answer: first(|kin| *kin == Kin::Answer).unwrap_or(Seen::Nothing),
        })
    }

    /// Reads all that is there.
    fn collect(&mut self, mine: Mine, into: &mut Vec<(Kin, Seen)>) -> io::Result<()> {
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

fn known(mine: Mine, bytes: &[u8], place: impl Fn(Leg) -> Seen) -> Option<(Kin, Seen)> {
    let captured = Captured::read(bytes)?;
    let kin = mine.kin(&captured)?;
    let (src_port, dst_port) = captured.ports();
    let leg = Leg {
        src: SocketAddr::new(captured.src.into(), src_port),
        dst: SocketAddr::new(captured.dst.into(), dst_port),
    };
    let seen = match kin {
        Kin::Itself | Kin::Answer => place(leg),
        Kin::Reset => Seen::Reset,
        Kin::Error(kind, code) => Seen::Error(kind, code),
    };
    Some((kin, seen))
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
        // The checksum needs the source that the kernel will choose.
        let asked = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
        asked.set_mark(packet.mark)?;
        asked.set_broadcast(true)?;
        match asked.connect(&to(packet.dst, 1).into()) {
            Ok(()) => asked.local_addr()?.as_socket().map_or(packet.src, |own| own.ip()),
            // It would be the destination itself, which a connected socket may not have
            // where only a policy rule makes it the node's; or there is no way.
            Err(_) => packet.dst,
        }
    } else {
        let own = to(packet.src, 0).into();
        if socket.bind(&own).is_err() {
            // What only a route makes its own, as a proxy does.
            socket.set_ip_transparent_v4(true)?;
            socket.bind(&own)?;
        }
        packet.src
    };
    socket.send_to(&mine.body(packet, src), &to(packet.dst, 0).into()).map(|_| ())
}

fn stay_on_one_processor() -> io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let mut one = CpuSet::new();
    let mine = (0..CpuSet::MAX_CPU).find(|cpu| allowed.is_set(*cpu));
    one.set(mine.unwrap_or(0));
    Ok(sched_setaffinity(None, &one)?)
}
