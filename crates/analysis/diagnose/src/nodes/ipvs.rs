//! The sets and virtual servers of IPVS mode as blocks.

use std::net::IpAddr;

use uturn_model::{Evidence, Family};
use uturn_netfilter::ipset::{Set, Sets};
use uturn_netfilter::ipvs::{RealServer, VirtualAddress, VirtualServer, VirtualServers};
use uturn_netfilter::{Interface, NodeState};

use super::blocks::{Block, Blocks, Line, Role};

/// The device to which kube-proxy binds the addresses of Services.
const DEVICE: &str = "kube-ipvs0";

/// The prefix of the names of virtual servers' blocks.
pub(super) const SERVER: &str = "virtual server ";

/// Returns whether each server states in seconds how long clients keep their real server. The
/// kernel's own list states it in ticks of unknown length.
pub(super) fn have_seconds(servers: &VirtualServers) -> bool {
    let mut persistences = servers.0.iter().filter_map(|server| server.persistence);
    persistences.all(|persistence| persistence.seconds.is_some())
}

/// Returns the sets and servers of a family. A real server that gets no new connections is left
/// out: kube-proxy keeps it until its connections have ended.
pub(super) fn blocks(
    sets: &Sets,
    servers: &VirtualServers,
    family: Family,
    has_seconds: bool,
) -> Blocks {
    let mut blocks = Blocks::new();
    let is_own = |set: &&Set| set.name.starts_with("KUBE-");
    let is_of_family = |set: &&Set| set.name.starts_with("KUBE-6-") == (family == Family::V6);
    for set in sets.0.iter().filter(is_own).filter(is_of_family) {
        let lines = set.entries.iter().map(|entry| {
            let text = entry.text.to_string();
            let what = format!("add {} {text}", set.name);
            let by = Evidence::Ipvs { server: what.into(), origin: set.origin.clone() };
            Line { role: dispatch(&text), text, service: None, by }
        });
        let block = Block { lines: lines.collect(), is_ordered: false };
        blocks.insert(format!("set {}", set.name), block);
    }
    for server in servers.0.iter().filter(|server| server.at.family() == family) {
        let mut lines = vec![of_server(server, has_seconds)];
        let open = server.servers.iter().filter(|real| real.weight > 0);
        lines.extend(open.map(|real| of_real(server, real)));
        blocks.insert(format!("{SERVER}{}", server.at), Block { lines, is_ordered: false });
    }
    blocks
}

fn of_server(server: &VirtualServer, has_seconds: bool) -> Line {
    let (address, port) = match server.at {
        VirtualAddress::Address { address, .. } => (Some(address.ip()), Some(address.port())),
        VirtualAddress::Mark { .. } => (None, None),
    };
    let mut plain = server.clone();
    if let Some(persistence) = plain.persistence.as_mut().filter(|_| !has_seconds) {
        persistence.seconds = None;
    }
    let (text, by) = (format!("-A {plain}"), server.by());
    Line { text, role: Role::Dispatch(address, port), service: None, by }
}

fn of_real(server: &VirtualServer, real: &RealServer) -> Line {
    let text = format!("-> {} {}", real.address, real.method.option());
    let by = Evidence::Ipvs {
        server: format!("{} {text}", server.at).into(),
        origin: real.origin.clone(),
    };
    Line { text, role: Role::Endpoint, service: None, by }
}

/// Parses an entry such as `172.16.1.1,tcp:80`, `30080` or `10.0.0.1,tcp:80,10.1.0.0/16`.
fn dispatch(entry: &str) -> Role {
    let mut parts = entry.split(',');
    let first = parts.next().unwrap_or(entry);
    let port = |text: &str| text.rsplit(':').next().and_then(|port| port.parse().ok());
    match first.parse::<IpAddr>() {
        Ok(ip) => Role::Dispatch(Some(ip), parts.next().and_then(port)),
        Err(_) => match port(first) {
            Some(port) => Role::Dispatch(None, Some(port)),
            None => Role::Other,
        },
    }
}

/// Returns the addresses of kube-proxy's device. Returns `None` if the node has no such device.
pub(super) fn bound(state: &NodeState, family: Family) -> Option<Vec<IpAddr>> {
    let device = state.interfaces.iter().find(|interface| &*interface.name == DEVICE)?;
    let of_family = |ip: &IpAddr| Family::of(*ip) == family && !is_of_link(ip);
    Some(device.addresses.iter().map(|(ip, _)| *ip).filter(of_family).collect())
}

/// Returns the addresses of the other interfaces that other machines can call.
pub(super) fn own_addresses(interfaces: &[Interface]) -> impl Iterator<Item = IpAddr> {
    let others = interfaces.iter().filter(|interface| !["lo", DEVICE].contains(&&*interface.name));
    let all = others.flat_map(|interface| &interface.addresses).map(|(ip, _)| *ip);
    all.filter(|ip| !is_of_link(ip))
}

fn is_of_link(ip: &IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

/// Returns the address and port of a virtual server. Returns `None` if it serves packets with a
/// mark.
pub(super) fn address(server: &VirtualServer) -> Option<(IpAddr, u16)> {
    match server.at {
        VirtualAddress::Address { address, .. } => Some((address.ip(), address.port())),
        VirtualAddress::Mark { .. } => None,
    }
}
