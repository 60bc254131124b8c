//! Random flows: from any client to anything that can be called.

use uturn_dice::Dice;

use serde_json::{Value, json};

use super::Cluster;
use super::services::{Called, Ingress, Service};

/// A destination to call, and the protocol.
struct Aim {
    to: String,
    is_udp: bool,
    /// The only client that may call it, if there is one.
    from: Option<String>,
}

impl Aim {
    fn of_any(to: String, is_udp: bool) -> Self {
        Self { to, is_udp, from: None }
    }
}

/// Returns a handful of flows.
pub(super) fn random(dice: &mut Dice, cluster: &Cluster, called: &Called) -> Vec<Value> {
    let mut flows: Vec<Value> = Vec::new();
    for _ in 0..dice.between(2, 5) {
        let aim = aim(dice, cluster, called);
        let any = client(dice, cluster);
        let mut flow = json!({ "from": aim.from.unwrap_or(any), "to": aim.to });
        if aim.is_udp {
            flow["protocol"] = "udp".into();
        }
        if !flows.contains(&flow) {
            flows.push(flow);
        }
    }
    flows
}

fn client(dice: &mut Dice, cluster: &Cluster) -> String {
    let clients = cluster.clients();
    match dice.below(8) {
        0 => dice.choose(&["outside", "outside", "outside/198.51.100.77"]).into(),
        1 => format!("node/{}", cluster.nodes[dice.below(cluster.nodes.len())].name),
        2 => format!("pod/shop/{}", cluster.pods[dice.below(cluster.pods.len())].name),
        _ => format!("pod/shop/{}", clients[dice.below(clients.len())].name),
    }
}

fn aim(dice: &mut Dice, cluster: &Cluster, called: &Called) -> Aim {
    let backends = cluster.backends();
    match dice.below(10) {
        0 if !backends.is_empty() => {
            let pod = backends[dice.below(backends.len())];
            let (kind, port) = pod.ports[dice.below(pod.ports.len())];
            let to = if dice.once_in(2) {
                format!("pod/shop/{}:{port}", pod.name)
            } else {
                format!("{}:{port}", pod.address)
            };
            Aim::of_any(to, kind == "dns")
        }
        1..=4 if !called.ingresses.is_empty() => {
            let at = dice.below(called.ingresses.len());
            of_ingress(dice, &called.ingresses[at])
        }
        5 if !cluster.vips.is_empty() => {
            // There may or may not be a listener.
            let vip = &cluster.vips[dice.below(cluster.vips.len())];
            let port = [80, 443, 8080, 81][dice.below(4)];
            let to = format!("{}://{}:{port}/", dice.choose(&["http", "https"]), vip.address);
            Aim::of_any(to, false)
        }
        _ => {
            let at = dice.below(called.services.len());
            of_service(dice, cluster, &called.services[at])
        }
    }
}

fn of_ingress(dice: &mut Dice, ingress: &Ingress) -> Aim {
    let (host, path) = &ingress.rules[dice.below(ingress.rules.len())];
    let in_clear = !ingress.is_tls || ingress.is_both && !dice.once_in(3);
    let scheme = if in_clear { "http" } else { "https" };
    let to = match (dice.below(4), host) {
        (0, Some(host)) => format!("ingress/shop/{}/{host}{path}", ingress.name),
        (0, None) => format!("ingress/shop/{}", ingress.name),
        (1, _) => format!("{scheme}://{}{path}", ingress.vip),
        (2, Some(host)) => format!("{scheme}://{host}{}/deeper", path.trim_end_matches('/')),
        (_, Some(host)) => format!("{scheme}://{host}{path}"),
        (_, None) => format!("{scheme}://{}{path}", ingress.vip),
    };
    Aim::of_any(to, false)
}

fn of_service(dice: &mut Dice, cluster: &Cluster, service: &Service) -> Aim {
    let port = &service.ports[dice.below(service.ports.len())];
    let is_udp = port.is_udp();
    let mut addresses = vec![format!("{}:{}", service.cluster_ip, port.number)];
    addresses.extend(service.external_ip.iter().map(|ip| format!("{ip}:{}", port.number)));
    if let Some(vip) = &service.vip {
        addresses.extend(std::iter::repeat_n(format!("{vip}:{}", port.number), 3));
    }
    if let Some(host) = &service.host {
        addresses.extend(std::iter::repeat_n(format!("{host}:{}", port.number), 3));
    }
    if let Some(node_port) = port.node_port {
        let node = &cluster.nodes[dice.below(cluster.nodes.len())];
        if dice.once_in(8) {
            // Only a program of the node itself can call its loopback address.
            let from = Some(format!("node/{}", node.name));
            return Aim { to: format!("127.0.0.1:{node_port}"), is_udp, from };
        }
        addresses.push(format!("{}:{node_port}", node.address));
    }
    let address = &addresses[dice.below(addresses.len())];
    let to = match dice.below(6) {
        0 => format!("svc/shop/{}:{}", service.name, port.name),
        1 if !is_udp => format!("https://{address}/"),
        2 | 3 if !is_udp => format!("http://{address}/"),
        _ => address.clone(),
    };
    Aim::of_any(to, is_udp)
}
