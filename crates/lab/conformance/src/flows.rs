//! Chooses the packets to try: from every kind of client to every address of a Service, and to
//! some other addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use uturn_dice::Dice;
use uturn_model::{Cluster, Family, Protocol, Service};

use crate::net;
use crate::wire::Probe;

/// The devices of a node that packets enter by: the pods' bridge, and the uplink.
pub(crate) const DEVICES: [&str; 2] = ["cbr0", "eth0"];

/// A client and its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    client: &'static str,
    target: Target,
    /// The packet, except for its source port.
    pub(crate) probe: Probe,
    /// Whether the Service has session affinity.
    pub(crate) affinity: bool,
}

impl Flow {
    /// Returns a description for messages.
    pub(crate) fn what(&self) -> String {
        let Target { kind, of, .. } = &self.target;
        format!("{} to {kind}{of}", self.client)
    }

    /// Returns the labels under which the flow is counted.
    pub(crate) fn labels(&self) -> [(&'static str, &'static str); 4] {
        let protocol = match self.probe.proto {
            Protocol::Tcp => "TCP",
            Protocol::Udp => "UDP",
            Protocol::Sctp => "SCTP",
        };
        let family = match self.probe.family() {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        };
        let target = ("flows to", self.target.kind);
        [("flows from", self.client), target, ("flows by", protocol), ("flows over", family)]
    }
}

/// The destination of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Target {
    kind: &'static str,
    /// ` of ` and the Service, or nothing.
    of: String,
    ip: IpAddr,
    protocol: Protocol,
    port: u16,
    affinity: bool,
}

/// Chooses `count` flows out of all that a node can see.
pub(crate) fn choose(cluster: &Cluster, node: u8, count: usize, dice: &mut Dice) -> Vec<Flow> {
    let mut targets = targets(cluster, node);
    dice.shuffle(&mut targets);
    // Every target is used once before any is used a second time.
    let flows = (0..count).filter_map(|nth| {
        let mut target = targets.get(nth % targets.len().max(1))?.clone();
        if dice.once_in(12) {
            target.port = *dice.pick(&[81, 443, 8080, 29999, 10256]);
            target.kind = "another port";
        } else if dice.once_in(20) {
            target.protocol = *dice.pick(&[Protocol::Tcp, Protocol::Udp, Protocol::Sctp]);
            target.kind = "perhaps another protocol";
        }
        Some(flow(cluster, node, target, dice))
    });
    flows.collect()
}

fn targets(cluster: &Cluster, node: u8) -> Vec<Target> {
    let mut targets = Vec::new();
    // The namespace "default" has the API server's Service, whose link is not observed.
    let ours = |service: &&Service| service.name.namespace.as_str() != "default";
    for service in cluster.services.values().filter(ours) {
        let of = format!(" of {}", service.name);
        let affinity = service.affinity_seconds.is_some();
        let mut add = |kind, ips: &[IpAddr], protocol, port: u16| {
            targets.extend(ips.iter().map(|ip| Target {
                kind,
                of: of.clone(),
                ip: *ip,
                protocol,
                port,
                affinity,
            }));
        };
        let ingress: Vec<IpAddr> =
            service.load_balancer.iter().filter_map(|ingress| ingress.ip).collect();
        for port in &service.ports {
            let (protocol, number) = (port.protocol, port.port.number());
            add("a cluster IP", &service.cluster_ips, protocol, number);
            add("an external IP", &service.external_ips, protocol, number);
            add("a load balancer", &ingress, protocol, number);
            for number in port.node_port.iter().map(|port| port.number()) {
                add("a node port", &own_addresses(node), protocol, number);
            }
        }
        for number in service.health_check_node_port.iter().map(|port| port.number()) {
            add("a health check port", &own_addresses(node), Protocol::Tcp, number);
        }
    }
    let elsewhere = [net::pod(1, 77), net::pod(2, 77), net::outside(8), net::cluster_ip(253)];
    for protocol in [Protocol::Tcp, Protocol::Udp, Protocol::Sctp] {
        targets.extend(elsewhere.iter().flatten().map(|ip| Target {
            kind: "an address of no Service",
            of: String::new(),
            ip: parsed(ip),
            protocol,
            port: 53,
            affinity: false,
        }));
    }
    targets
}

/// Returns the addresses of the node itself.
fn own_addresses(node: u8) -> [IpAddr; 6] {
    let [v4, v6] = net::node(node);
    let [bridge4, bridge6] = net::pod(node, 1);
    let texts = [&v4, &v6, &bridge4, &bridge6].map(|text| parsed(text));
    let [v4, v6, bridge4, bridge6] = texts;
    [v4, v6, bridge4, bridge6, Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
}

fn parsed(text: &str) -> IpAddr {
    text.parse().expect("crate::net writes addresses")
}

fn flow(cluster: &Cluster, node: u8, target: Target, dice: &mut Dice) -> Flow {
    let family = usize::from(target.ip.is_ipv6());
    let other = 1 + (node - 1 + 1 + u8::from(dice.once_in(2))) % net::NODES;
    let [pods, uplink] = DEVICES;
    let (client, device, src) = match dice.below(8) {
        _ if target.ip.is_loopback() => ("the node itself", "", None),
        0 => ("the node itself", "", None),
        1 => ("a pod", pods, Some(net::pod(node, 100 + dice.below(100)))),
        2 => ("a pod of another node", uplink, Some(net::pod(other, 100 + dice.below(100)))),
        3 => ("another node", uplink, Some(net::node(other))),
        4 => ("outside", uplink, Some(net::outside(dice.below(200)))),
        // Hairpin traffic of a load balancer that keeps source addresses.
        5 => ("a pod by way of outside", uplink, Some(net::pod(node, 100 + dice.below(100)))),
        6 if dice.once_in(3) => ("the node by way of outside", uplink, Some(net::node(node))),
        _ => match endpoint_here(cluster, node, family, dice) {
            Some(src) => ("a pod that is an endpoint", pods, Some([src.clone(), src])),
            None => ("a pod", pods, Some(net::pod(node, 100 + dice.below(100)))),
        },
    };
    let unspecified: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    let probe = Probe {
        device: device.to_owned(),
        proto: target.protocol,
        src: src.map_or(unspecified[family], |src| parsed(&src[family])),
        sport: 0,
        dst: target.ip,
        dport: target.port,
    };
    let affinity = target.affinity;
    Flow { client, target, probe, affinity }
}

/// Returns some endpoint that is a pod of this node.
fn endpoint_here(cluster: &Cluster, node: u8, family: usize, dice: &mut Dice) -> Option<String> {
    let range: uturn_model::IpNet = net::pods(node)[family].parse().ok()?;
    let wanted = [Family::V4, Family::V6][family];
    let slices = cluster.endpoints.values().flatten().filter(|slice| slice.family == wanted);
    let addresses = slices.flat_map(|slice| &slice.endpoints).map(|endpoint| endpoint.address);
    let here: Vec<_> = addresses.filter(|address| range.contains(address)).collect();
    (!here.is_empty()).then(|| dice.pick(&here).to_string())
}
