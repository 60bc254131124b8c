//! The rules of a node that forward ports of its own to pods (`hostPort`), as the CNI plugin
//! portmap writes them: translation of calls to the node's own addresses, and masquerading of
//! packets that a pod sends to itself that way.
//!
//! If another kind of plugin forwards these ports, or none does, the real rules differ; the rules
//! of a capture override these.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

use uturn_model::network::NetworkMode;
use uturn_model::{Cluster, Family, IpNet, Node, Pod, Port, Protocol};

use crate::pod_network;

const DNAT: &str = "CNI-HOSTPORT-DNAT";
const MASQUERADE: &str = "CNI-HOSTPORT-MASQ";
const SET_MARK: &str = "CNI-HOSTPORT-SETMARK";
/// The mark of packets to masquerade.
const MARK: &str = "0x2000/0x2000";

/// A port of a node that is forwarded to a pod.
struct Forwarded {
    protocol: Protocol,
    port: Port,
    host_ip: Option<IpAddr>,
    to: SocketAddr,
}

/// Returns the ports that nodes of a cluster forward, each with its pod.
pub fn all(cluster: &Cluster) -> impl Iterator<Item = (Port, &Pod)> {
    let pods = cluster.pods.values().filter(|pod| pod.is_alive() && !pod.spec.host_network);
    pods.flat_map(|pod| pod.spec.ports().filter_map(move |port| Some((port.host_port?, pod))))
}

/// Returns the rules for `iptables-restore --noflush`. Returns `None` if no port of the node is
/// forwarded to a pod.
pub fn rules(cluster: &Cluster, node: &Node, family: Family) -> Option<String> {
    // Programs that serve Services in place of kube-proxy mostly forward these ports themselves.
    if cluster.proxy.replaced_by().is_some() || cluster.network.host_ports_off.is_some() {
        return None;
    }
    let pods = cluster.pods_on(&node.name).filter(|pod| pod.is_alive() && !pod.spec.host_network);
    let all: Vec<Forwarded> = pods.flat_map(|pod| forwarded(pod, family)).collect();
    if all.is_empty() {
        return None;
    }
    let mut text = format!("*nat\n:{DNAT} - [0:0]\n:{MASQUERADE} - [0:0]\n:{SET_MARK} - [0:0]\n");
    for number in 0..all.len() {
        let _ = writeln!(text, ":CNI-DN-{number} - [0:0]");
    }
    for hook in ["PREROUTING", "OUTPUT"] {
        let _ = writeln!(text, "-A {hook} -m addrtype --dst-type LOCAL -j {DNAT}");
    }
    let _ = writeln!(text, "-A POSTROUTING -j {MASQUERADE}");
    let _ = writeln!(text, "-A {MASQUERADE} -m mark --mark {MARK} -j MASQUERADE");
    let _ = writeln!(text, "-A {SET_MARK} -j MARK --set-xmark {MARK}");
    for (number, Forwarded { protocol, port, host_ip, to }) in all.iter().enumerate() {
        let chain = format!("CNI-DN-{number}");
        let at = host_ip.map_or_else(String::new, |ip| format!("-d {} ", IpNet::from(ip)));
        let protocol = protocol.lower();
        let calls = format!("{at}-p {protocol} -m {protocol} --dport {port}");
        let near = subnet(cluster, node, to.ip());
        let _ = writeln!(text, "-A {DNAT} {calls} -j {chain}");
        let _ = writeln!(text, "-A {chain} -s {near} {calls} -j {SET_MARK}");
        if family == Family::V4 {
            let _ = writeln!(text, "-A {chain} -s 127.0.0.1/32 {calls} -j {SET_MARK}");
        }
        let _ = writeln!(text, "-A {chain} {calls} -j DNAT --to-destination {to}");
    }
    text.push_str("COMMIT\n");
    Some(text)
}

/// Returns the kernel setting with which calls to 127.0.0.1 may leave for a pod. Returns `None` if
/// no port of the node is forwarded to one.
pub fn sysctl(cluster: &Cluster, node: &Node) -> Option<(String, String)> {
    rules(cluster, node, Family::V4)?;
    // With a bridge there is one link to the pods, otherwise one for each pod.
    let device = match cluster.network.mode.value {
        NetworkMode::GlobalRouter => pod_network::link(cluster),
        NetworkMode::Routed | NetworkMode::VpcCni => "all".into(),
    };
    Some((format!("net.ipv4.conf.{device}.route_localnet"), "1".to_owned()))
}

/// Returns the ports of a pod that its node forwards.
fn forwarded(pod: &Pod, family: Family) -> Vec<Forwarded> {
    let Some(address) = pod.address(family) else { return Vec::new() };
    let ports =
        pod.spec.ports().filter(|port| port.host_ip.is_none_or(|ip| Family::of(ip) == family));
    ports
        .filter_map(|port| {
            Some(Forwarded {
                protocol: port.protocol,
                port: port.host_port?,
                // The unspecified address stands for every address.
                host_ip: port.host_ip.filter(|ip| !ip.is_unspecified()),
                to: SocketAddr::new(address, port.port.number()),
            })
        })
        .collect()
}

/// Returns the range of a pod's address at its interface: with a bridge, the node's range,
/// otherwise the address itself.
fn subnet(cluster: &Cluster, node: &Node, address: IpAddr) -> IpNet {
    let is_bridge = cluster.network.mode.value == NetworkMode::GlobalRouter;
    let mut ranges = node.pod_cidrs.iter().filter(|_| is_bridge);
    ranges.find(|net| net.contains(&address)).copied().unwrap_or_else(|| address.into())
}
