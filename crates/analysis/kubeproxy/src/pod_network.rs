//! The parts of a node that the pod network adds besides kube-proxy: rules, and links by which
//! kube-proxy may recognise pods.

use std::fmt::Write;

use uturn_model::network::{Network, NetworkMode, Plugin};
use uturn_model::proxy::LocalDetector;
use uturn_model::{Cluster, Family, IpNet, Node, Text};

use crate::host_ports;

/// The chain that decides whether a pod's packet is masqueraded.
const CHAIN: &str = "POD-MASQUERADE";

/// The chain that decides whether a packet to another node's pod is masqueraded if no pod sent it.
const TO_PODS: &str = "TO-POD-MASQUERADE";

/// The name of the pods' bridge, if the plugin does not define one.
const BRIDGE: &str = "cbr0";

/// The device that encapsulates packets to other nodes' pods.
pub const TUNNEL: &str = "tunnel";

/// The prefix of the interfaces of single pods without a bridge, if nothing defines it.
const POD_LINKS: &str = "pods";

/// Returns the interface of a node's pods: the bridge, or the prefix of the links of single pods.
pub fn link(cluster: &Cluster) -> Text {
    let by_plugin = match cluster.network.plugin.value {
        Plugin::Flannel => Some("cni0"),
        Plugin::KubeRouter => Some("kube-bridge"),
        Plugin::Calico | Plugin::Canal | Plugin::Terway => Some("cali"),
        Plugin::Cilium => Some("lxc"),
        Plugin::AwsVpcCni => Some("eni"),
        Plugin::AzureCni | Plugin::AzureCniOverlay => Some("azv"),
        Plugin::Kindnet | Plugin::Gke => Some("veth"),
        _ => None,
    };
    let mode = cluster.network.mode.value;
    let is_usual = cluster.network.plugin.value.usual_mode() == mode;
    let stated = match &cluster.proxy.detector.value {
        LocalDetector::BridgeInterface(name) if mode == NetworkMode::GlobalRouter => Some(&**name),
        LocalDetector::InterfaceNamePrefix(begins) if mode != NetworkMode::GlobalRouter => {
            Some(&**begins)
        }
        _ => None,
    };
    // kube-proxy's configuration has the real names of interfaces.
    let usual = if mode == NetworkMode::GlobalRouter { BRIDGE } else { POD_LINKS };
    by_plugin.filter(|_| is_usual).or(stated).unwrap_or(usual).into()
}

/// Returns all rules of the pod network on a node, for `iptables-restore --noflush`: masquerading,
/// and ports of the node that are forwarded to pods. Returns `None` if there are none.
pub fn rules(cluster: &Cluster, node: &Node, family: Family) -> Option<String> {
    let parts = [
        masquerade(&cluster.network, family),
        masquerade_to_pods(cluster, node, family),
        masquerade_into_tunnel(&cluster.network, family),
        host_ports::rules(cluster, node, family),
    ];
    let text: String = parts.into_iter().flatten().collect();
    (!text.is_empty()).then_some(text)
}

/// Returns the rules that masquerade packets of pods to destinations that cannot route to pods.
/// Returns `None` if nothing is masqueraded.
///
/// Plugins masquerade IPv6 only if configured to, which is not modelled.
fn masquerade(network: &Network, family: Family) -> Option<String> {
    let pods = masqueraded(network, family)?;
    let mut text = format!("*nat\n:{CHAIN} - [0:0]\n");
    for net in &pods {
        let _ = writeln!(text, "-A POSTROUTING -s {net} -j {CHAIN}");
    }
    let mut kept = of_family(&network.non_masquerade_cidrs.value, family);
    kept.sort_unstable();
    kept.dedup();
    for net in &kept {
        let _ = writeln!(text, "-A {CHAIN} -d {net} -j RETURN");
    }
    let _ = write!(text, "-A {CHAIN} -j MASQUERADE\nCOMMIT\n");
    Some(text)
}

/// Returns the rules of flannel and Weave for packets to other nodes' pods that no pod sent, such
/// as those that kube-proxy forwards with the client's address: they get the node's address, so
/// that the answer returns to this node. Returns `None` if the plugin has no such rules.
fn masquerade_to_pods(cluster: &Cluster, node: &Node, family: Family) -> Option<String> {
    let network = &cluster.network;
    if !network.masquerades_to_pods.value {
        return None;
    }
    let own = match network.plugin.value {
        Plugin::Flannel | Plugin::Canal => node.pod_cidrs.clone(),
        Plugin::Weave => {
            let pods = cluster.pods_on(&node.name).filter(|pod| !pod.spec.host_network);
            pods.flat_map(|pod| &pod.ips).copied().map(IpNet::from).collect()
        }
        _ => return None,
    };
    let pods = masqueraded(network, family)?;
    let mut text = format!("*nat\n:{TO_PODS} - [0:0]\n");
    for net in &pods {
        let _ = writeln!(text, "-A POSTROUTING -d {net} -j {TO_PODS}");
    }
    for net in &pods {
        let _ = writeln!(text, "-A {TO_PODS} -s {net} -j RETURN");
    }
    for net in of_family(&own, family) {
        let _ = writeln!(text, "-A {TO_PODS} -d {net} -j RETURN");
    }
    let _ = write!(text, "-A {TO_PODS} -j MASQUERADE\nCOMMIT\n");
    Some(text)
}

/// Returns Calico's rule for packets of the node itself that leave through its tunnel with an
/// address that is not the tunnel's: the answer would not return through the tunnel.
fn masquerade_into_tunnel(network: &Network, family: Family) -> Option<String> {
    let is_so = network.plugin.value == Plugin::Calico && network.is_encapsulated(family);
    is_so.then(|| {
        format!(
            "*nat\n-A POSTROUTING -o {TUNNEL} -m addrtype ! --src-type LOCAL --limit-iface-out \
             -m addrtype --src-type LOCAL -j MASQUERADE\nCOMMIT\n"
        )
    })
}

/// Returns the ranges of pods whose packets the plugin masquerades. Returns `None` if there are
/// none.
fn masqueraded(network: &Network, family: Family) -> Option<Vec<IpNet>> {
    let pods = of_family(&network.pod_cidrs.value, family);
    let is_so = network.masquerades.value && !pods.is_empty() && family == Family::V4;
    is_so.then_some(pods)
}

fn of_family(nets: &[IpNet], family: Family) -> Vec<IpNet> {
    nets.iter().copied().filter(|net| Family::of(net.addr()) == family).collect()
}

/// An encapsulation of packets between nodes, as the underlay sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrapping {
    /// The IP protocol's number.
    pub protocol: u8,
    /// The destination port of packets; 0 if the protocol has none.
    pub port: u16,
}

impl Wrapping {
    /// Returns whether packets are wrapped in UDP.
    pub fn is_udp(self) -> bool {
        self.protocol == UDP
    }
}

const UDP: u8 = 17;

const VXLAN: Wrapping = Wrapping { protocol: UDP, port: 4789 };

/// VXLAN with the port that the kernel used before one was assigned, and that several plugins still
/// use.
const OLD_VXLAN: Wrapping = Wrapping { protocol: UDP, port: 8472 };

const GENEVE: Wrapping = Wrapping { protocol: UDP, port: 6081 };

const IP_IN_IP: Wrapping = Wrapping { protocol: 4, port: 0 };

const WEAVE: Wrapping = Wrapping { protocol: UDP, port: 6784 };

/// Returns the encapsulations of a plugin for packets to other nodes' pods, the default first.
pub fn wrappings(plugin: Plugin) -> &'static [Wrapping] {
    match plugin {
        Plugin::Flannel | Plugin::Canal => &[OLD_VXLAN],
        Plugin::Cilium => &[OLD_VXLAN, GENEVE],
        Plugin::Calico => &[IP_IN_IP, VXLAN],
        Plugin::OvnKubernetes => &[GENEVE],
        Plugin::Antrea => &[GENEVE, VXLAN],
        Plugin::KubeRouter => &[IP_IN_IP],
        Plugin::Weave => &[WEAVE],
        _ => &[VXLAN, OLD_VXLAN, GENEVE, IP_IN_IP],
    }
}
