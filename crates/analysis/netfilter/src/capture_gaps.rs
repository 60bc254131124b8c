//! The gaps of a capture, and the assumptions that a walk makes instead.

use std::collections::BTreeSet;
use std::net::IpAddr;

use uturn_model::capture::{Capture, CaptureFile};
use uturn_model::{Assumption, DerivedFrom, Family, IpNet, Origin, Text};

use crate::state::{Interface, NodeState, RouteEntry, RouteKind, TABLE_LOCAL};

/// Stands for an interface whose name is unknown.
pub(crate) const UNKNOWN_INTERFACE: &str = "?";

/// Prefixes of interface names that belong to bridges, tunnels and containers: a default route is
/// not assumed through them.
const INNER: [&str; 22] = [
    "lo",
    "docker",
    "br-",
    "cni",
    "cbr",
    "cali",
    "flannel",
    "veth",
    "virbr",
    "kube-",
    "nodelocaldns",
    "vxlan",
    "tun",
    "dummy",
    "lxc",
    "lxdbr",
    "cilium",
    "ovn",
    "weave",
    "tailscale",
    "podman",
    "wg",
];

/// A part of the node's state that a capture lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CaptureGap {
    /// The rules of a family.
    Rules(Family),
    /// Whether packets of a family are forwarded.
    Forwarding(Family),
    /// The reverse path filter (`rp_filter`).
    ReversePath,
    /// The addresses of the interfaces.
    Addresses,
    /// The routes.
    Routes,
    /// The policy routing rules.
    Policy,
    /// The contents of the IP sets that rules name.
    Sets,
    /// The IPVS virtual servers.
    Virtual,
}

impl CaptureGap {
    /// Returns everything that a capture lacks.
    pub fn all_of(capture: &Capture, state: &NodeState) -> BTreeSet<Self> {
        let lacks = |file| !capture.files.contains_key(&file);
        let files = [
            (CaptureFile::Addresses, Self::Addresses),
            (CaptureFile::Routes, Self::Routes),
            (CaptureFile::Rules, Self::Policy),
            (CaptureFile::Ipset, Self::Sets),
            (CaptureFile::Ipvs, Self::Virtual),
        ];
        let mut gaps: BTreeSet<Self> =
            files.into_iter().filter(|(file, _)| lacks(*file)).map(|(_, gap)| gap).collect();
        for family in Family::BOTH {
            if !capture.has_rules(family) {
                gaps.insert(Self::Rules(family));
            }
            if !state.sysctls.states_forwarding(family) {
                gaps.insert(Self::Forwarding(family));
            }
        }
        if !state.sysctls.states_rp_filter() {
            gaps.insert(Self::ReversePath);
        }
        gaps
    }

    /// The assumption that a walk makes in its place.
    pub fn assumption(self) -> Assumption {
        let (about, taken, because, settle) = match self {
            Self::Rules(family) => {
                let file = match family {
                    Family::V4 => CaptureFile::Iptables,
                    Family::V6 => CaptureFile::Ip6tables,
                };
                return Assumption {
                    subject: format!("rules for {}", named(family)).into(),
                    assumed: "none".into(),
                    because: format!(
                        "the capture has neither {} nor {}",
                        file.file_name(),
                        CaptureFile::Nft.file_name()
                    )
                    .into(),
                    settle: "capture them too".into(),
                };
            }
            Self::Forwarding(family) => {
                let switch = match family {
                    Family::V4 => "net.ipv4.ip_forward",
                    Family::V6 => "net.ipv6.conf.all.forwarding",
                };
                return Assumption {
                    subject: format!("forwarding of {}", named(family)).into(),
                    assumed: "on".into(),
                    because: format!(
                        "the capture does not say {switch}, and nodes and hosts of containers forward"
                    )
                    .into(),
                    settle: "capture sysctl -a as sysctl".into(),
                };
            }
            Self::ReversePath => (
                "checks of the source (rp_filter)",
                "off or loose",
                "the capture does not say net.ipv4.conf.*.rp_filter, and a strict check would drop \
                 this packet",
                "capture sysctl -a as sysctl",
            ),
            Self::Addresses => (
                "addresses of the node",
                "those that its routes name",
                "the capture has no addr",
                "capture ip addr as addr",
            ),
            Self::Routes => (
                "routes",
                "those that addresses bring with them, and a default route through the first \
                 interface that leads outside",
                "the capture has no route",
                "capture ip route show table all as route",
            ),
            Self::Policy => (
                "rules that pick tables of routes",
                "the usual three: local, main, default",
                "the capture has no rule",
                "capture ip rule as rule",
            ),
            Self::Sets => (
                "sets that rules name",
                "each as if it held what is asked for, and as if not",
                "the capture has no ipset.save",
                "capture ipset save as ipset.save",
            ),
            Self::Virtual => (
                "virtual servers of IPVS",
                "none",
                "the capture has no ipvs.save",
                "capture ipvsadm -Sn as ipvs.save",
            ),
        };
        Assumption {
            subject: about.into(),
            assumed: taken.into(),
            because: because.into(),
            settle: settle.into(),
        }
    }
}

fn named(family: Family) -> &'static str {
    match family {
        Family::V4 => "IPv4",
        Family::V6 => "IPv6",
    }
}

impl NodeState {
    /// Fills in what a capture lacks: addresses from routes, or routes from addresses. Records
    /// each gap in [`NodeState::gaps`]; a walk reports the assumptions that affect it.
    pub fn fill_capture_gaps(&mut self, capture: &Capture) {
        self.gaps = CaptureGap::all_of(capture, self);
        let lacks = |gap| self.gaps.contains(&gap);
        match (lacks(CaptureGap::Addresses), lacks(CaptureGap::Routes)) {
            (true, true) => self.routes.extend(default_routes(UNKNOWN_INTERFACE)),
            (true, false) => self.interfaces = interfaces_from_routes(&self.routes),
            (false, true) => {
                self.routes = routes_from_addresses(&self.interfaces);
                let outer = self.interfaces.iter().find(|interface| leads_outside(interface));
                self.routes.extend(default_routes(
                    outer.map_or(UNKNOWN_INTERFACE, |interface| &interface.name),
                ));
            }
            (false, false) => {}
        }
        if !self.interfaces.iter().any(|interface| &*interface.name == "lo") {
            let addresses = vec![("127.0.0.1", 8), ("::1", 128)];
            let parse = |(ip, length): (&str, u8)| (ip.parse().expect("a constant"), length);
            let addresses = addresses.into_iter().map(parse).collect();
            self.interfaces.insert(0, Interface { name: "lo".into(), addresses, up: true });
        }
    }
}

fn leads_outside(interface: &Interface) -> bool {
    let is_global = |(ip, _): &(IpAddr, u8)| match ip {
        IpAddr::V4(ip) => !ip.is_loopback() && !ip.is_link_local(),
        IpAddr::V6(ip) => !ip.is_loopback() && !ip.is_unicast_link_local(),
    };
    interface.up
        && interface.addresses.iter().any(is_global)
        && !INNER.iter().any(|start| interface.name.starts_with(start))
}

/// Default routes of both families.
fn default_routes(device: &str) -> impl Iterator<Item = RouteEntry> + '_ {
    ["0.0.0.0/0", "::/0"].into_iter().map(move |all| {
        let all: IpNet = all.parse().expect("a constant");
        RouteEntry::unicast(all, None, device, Origin::SUPPOSED)
    })
}

/// The connected route of each interface address.
fn routes_from_addresses(interfaces: &[Interface]) -> Vec<RouteEntry> {
    let mut routes = Vec::new();
    for interface in interfaces.iter().filter(|interface| interface.up) {
        for (ip, length) in &interface.addresses {
            let Ok(net) = IpNet::new(*ip, *length) else { continue };
            if *length == net.max_prefix_len() || ip.is_loopback() {
                continue;
            }
            let (net, name) = (net.trunc(), interface.name.clone());
            let mut route =
                RouteEntry::unicast(net, None, name, Origin::Derived(DerivedFrom::Addresses));
            route.src = Some(*ip);
            routes.push(route);
        }
    }
    routes
}

/// The interfaces with the addresses found in the table `local` or as the source of a route.
fn interfaces_from_routes(routes: &[RouteEntry]) -> Vec<Interface> {
    let mut interfaces: Vec<Interface> = Vec::new();
    let mut add = |name: &Text, address: Option<(IpAddr, u8)>| {
        let at =
            interfaces.iter().position(|interface| interface.name == *name).unwrap_or_else(|| {
                interfaces.push(Interface { name: name.clone(), addresses: Vec::new(), up: true });
                interfaces.len() - 1
            });
        let own = &mut interfaces[at].addresses;
        if let Some((ip, length)) = address
            && !own.iter().any(|(known, _)| *known == ip)
        {
            own.push((ip, length));
        }
    };
    let net_of = |ip: IpAddr| {
        let brings = |route: &&RouteEntry| {
            route.src == Some(ip) && route.via.is_none() && route.dst.prefix_len() > 0
        };
        let length = routes.iter().find(brings).map(|route| route.dst.prefix_len());
        length.unwrap_or(Family::of(ip).bits())
    };
    let knows_local = routes.iter().any(|route| {
        route.table == TABLE_LOCAL
            && route.kind == RouteKind::Local
            && !route.dst.addr().is_loopback()
    });
    for route in routes {
        let Some(name) = &route.dev else { continue };
        let single = route.dst.prefix_len() == route.dst.max_prefix_len();
        let own = match (route.kind, knows_local) {
            (RouteKind::Local, _) if route.dst.addr().is_loopback() => {
                let ip = route.src.unwrap_or(route.dst.addr());
                (single || !ip.is_ipv4()).then_some((ip, route.dst.max_prefix_len()))
            }
            (RouteKind::Local, _) if single => Some((route.dst.addr(), net_of(route.dst.addr()))),
            (RouteKind::Unicast, false) => route.src.map(|ip| (ip, net_of(ip))),
            _ => None,
        };
        add(name, own);
    }
    interfaces
}
