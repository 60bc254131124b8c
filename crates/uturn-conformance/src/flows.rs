//! Which packets to try: clients of every sort to every address that a Service has, and to
//! some that none has.

use uturn_model::{Cluster, Family, Protocol, Service};

use crate::dice::Dice;
use crate::net;
use crate::node::DEVICES;
use crate::wire::Probe;

/// A client and where it calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    /// What it is, for people.
    pub(crate) what: String,
    /// All but its source port.
    pub(crate) probe: Probe,
    /// Whether the Service remembers its clients.
    pub(crate) affinity: bool,
}

/// Where clients call.
#[derive(Clone, Debug)]
struct Target {
    what: String,
    ip: String,
    protocol: Protocol,
    port: u16,
    affinity: bool,
}

/// So many flows, chosen among all that a node can see.
pub(crate) fn choose(cluster: &Cluster, node: u8, count: usize, dice: &mut Dice) -> Vec<Flow> {
    let mut targets = targets(cluster, node);
    dice.shuffle(&mut targets);
    // Every target once before any a second time.
    let flows = (0..count).filter_map(|nth| {
        let mut target = targets.get(nth % targets.len().max(1))?.clone();
        if dice.once_in(12) {
            target.port = *dice.pick(&[81, 443, 8080, 29999, 10256]);
            target.what += ", another port";
        }
        Some(flow(cluster, node, &target, dice))
    });
    flows.collect()
}

fn targets(cluster: &Cluster, node: u8) -> Vec<Target> {
    let mut targets = Vec::new();
    // What is in "default" is the API server itself, on a link where nobody listens in.
    let ours = |service: &&Service| service.name.namespace.as_str() != "default";
    for service in cluster.services.values().filter(ours) {
        let affinity = service.affinity_seconds.is_some();
        let ingress = service.load_balancer.iter().filter_map(|one| one.ip);
        let kinds = [
            ("cluster IP", service.cluster_ips.clone()),
            ("external IP", service.external_ips.clone()),
            ("load balancer", ingress.collect()),
        ];
        for port in &service.ports {
            // SCTP packets would need a checksum that nothing here makes.
            let protocol = port.protocol;
            if protocol == Protocol::Sctp {
                continue;
            }
            for (kind, ips) in &kinds {
                let at = |ip: &std::net::IpAddr| Target {
                    what: format!("{kind} of {}", service.name),
                    ip: ip.to_string(),
                    protocol,
                    port: port.port.number(),
                    affinity,
                };
                targets.extend(ips.iter().map(at));
            }
            for number in port.node_port.iter().map(|port| port.number()) {
                let what = format!("node port of {}", service.name);
                targets.extend(own_addresses(node).map(|ip| Target {
                    what: what.clone(),
                    ip,
                    protocol,
                    port: number,
                    affinity,
                }));
            }
        }
        for number in service.health_check_node_port.iter().map(|port| port.number()) {
            let what = format!("health check port of {}", service.name);
            let at = |ip| Target {
                what: what.clone(),
                ip,
                protocol: Protocol::Tcp,
                port: number,
                affinity,
            };
            targets.extend(own_addresses(node).map(at));
        }
    }
    let elsewhere = [net::pod(1, 77), net::pod(2, 77), net::outside(8), net::cluster_ip(253)];
    targets.extend(elsewhere.into_iter().flatten().map(|ip| Target {
        what: "an address of no Service".into(),
        ip,
        protocol: Protocol::Udp,
        port: 53,
        affinity: false,
    }));
    targets
}

/// What a client may call the node itself by.
fn own_addresses(node: u8) -> impl Iterator<Item = String> {
    let loopback = ["127.0.0.1".to_owned(), "::1".to_owned()];
    net::node(node).into_iter().chain(net::pod(node, 1)).chain(loopback)
}

fn flow(cluster: &Cluster, node: u8, target: &Target, dice: &mut Dice) -> Flow {
    let family = usize::from(target.ip.contains(':'));
    let loopback = target.ip == "127.0.0.1" || target.ip == "::1";
    let other = 1 + (node - 1 + 1 + u8::from(dice.once_in(2))) % net::NODES;
    let [pods, world] = DEVICES;
    let (who, device, src) = match dice.below(6) {
        _ if loopback => ("the node itself", "", [String::new(), String::new()]),
        0 => ("the node itself", "", [String::new(), String::new()]),
        1 => ("a pod", pods, net::pod(node, 100 + dice.below(100))),
        2 => ("a pod of another node", world, net::pod(other, 100 + dice.below(100))),
        3 => ("another node", world, net::node(other)),
        4 => ("outside", world, net::outside(dice.below(200))),
        _ => match endpoint_here(cluster, node, family, dice) {
            Some(src) => ("a pod that is an endpoint", pods, [src.clone(), src]),
            None => ("a pod", pods, net::pod(node, 100 + dice.below(100))),
        },
    };
    let unspecified = ["0.0.0.0", "::"][family];
    let src = if device.is_empty() { unspecified.to_owned() } else { src[family].clone() };
    let probe = Probe {
        device: device.to_owned(),
        proto: target.protocol.to_string().to_lowercase(),
        src,
        sport: 0,
        dst: target.ip.clone(),
        dport: target.port,
    };
    Flow { what: format!("{who} to {}", target.what), probe, affinity: target.affinity }
}

/// Some endpoint that is a pod of this node.
fn endpoint_here(cluster: &Cluster, node: u8, family: usize, dice: &mut Dice) -> Option<String> {
    let range: uturn_model::IpNet = net::pods(node)[family].parse().ok()?;
    let wanted = [Family::V4, Family::V6][family];
    let slices = cluster.endpoints.values().flatten().filter(|slice| slice.family == wanted);
    let addresses = slices.flat_map(|slice| &slice.endpoints).map(|one| one.address);
    let here: Vec<_> = addresses.filter(|address| range.contains(address)).collect();
    (!here.is_empty()).then(|| dice.pick(&here).to_string())
}
