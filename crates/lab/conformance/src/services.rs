//! Random valid Services of every kind, each with its endpoints.

use uturn_dice::Dice;

use serde_json::{Value, json};

use crate::net;

const PROTOCOLS: [&str; 5] = ["TCP", "TCP", "TCP", "UDP", "SCTP"];
const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];

/// Returns the Service of this number (from 1 to 200) and its slices.
pub(crate) fn service(dice: &mut Dice, number: usize, dual: bool) -> Vec<Value> {
    let name = format!("s{number}");
    if dice.once_in(25) {
        return vec![json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"namespace": "shop", "name": name},
            "spec": {"type": "ExternalName", "externalName": "elsewhere.example.com"},
        })];
    }
    let families = families(dice, dual);
    let kind = *dice.pick(&["ClusterIP", "ClusterIP", "NodePort", "LoadBalancer", "LoadBalancer"]);
    // Services that share an address have different ports.
    let shares = dice.once_in(5);
    let ports = ports(dice, if shares { 1000 + number * 4 } else { 80 });
    let mut service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"namespace": "shop", "name": name},
        "spec": {
            "type": kind,
            "internalTrafficPolicy": if dice.once_in(4) { "Local" } else { "Cluster" },
        },
    });
    addresses(dice, &mut service, number, &families, shares);
    let spec = &mut service["spec"];
    let node_ports = kind == "NodePort" || (kind == "LoadBalancer" && !dice.once_in(5));
    if kind == "LoadBalancer" {
        spec["allocateLoadBalancerNodePorts"] = json!(node_ports);
    }
    spec["ports"] = (30000 + number * 4..)
        .zip(&ports)
        .map(|(node_port, Port { name, protocol, number })| {
            let mut port =
                json!({"name": name, "protocol": protocol, "port": number, "targetPort": 8080});
            if node_ports {
                port["nodePort"] = json!(node_port);
            }
            port
        })
        .collect();
    behaviour(dice, spec, number, kind);
    if kind == "LoadBalancer" {
        load_balancer(dice, &mut service, number, &families, shares);
    }
    if dice.once_in(15) {
        service["metadata"]["labels"] =
            json!({"service.kubernetes.io/service-proxy-name": "other"});
    }
    if dice.once_in(4) {
        let mode = *dice.pick(&["Auto", "auto", "Disabled"]);
        service["metadata"]["annotations"] = json!({"service.kubernetes.io/topology-mode": mode});
        // The API server accepts only one of the two.
        if let Some(spec) = service["spec"].as_object_mut() {
            spec.remove("trafficDistribution");
        }
    }
    let mut items = slices(dice, &name, &ports, &families);
    items.insert(0, service);
    items
}

/// A port of a Service.
struct Port {
    name: String,
    protocol: &'static str,
    number: usize,
}

fn ports(dice: &mut Dice, first: usize) -> Vec<Port> {
    // As for DNS: one port number, two protocols.
    if dice.once_in(6) {
        let port = |name: &str, protocol| Port { name: name.to_owned(), protocol, number: first };
        return vec![port("p0", "UDP"), port("p1", "TCP")];
    }
    let named = dice.below(3);
    let name = |nth| if named == 0 { String::new() } else { format!("p{nth}") };
    (0..named.max(1))
        .map(|nth| {
            let protocol = *dice.pick(&PROTOCOLS);
            Port { name: name(nth), protocol, number: first + nth }
        })
        .collect()
}

/// Draws the families of a Service: 0 is IPv4, 1 is IPv6.
fn families(dice: &mut Dice, dual: bool) -> Vec<usize> {
    match dice.below(4) {
        _ if !dual => vec![0],
        0 => vec![0],
        1 => vec![1],
        2 => vec![1, 0],
        _ => vec![0, 1],
    }
}

fn addresses(
    dice: &mut Dice,
    service: &mut Value,
    number: usize,
    families: &[usize],
    shares: bool,
) {
    let headless = service["spec"]["type"] == "ClusterIP" && dice.once_in(12);
    let spec = &mut service["spec"];
    let own = net::cluster_ip(number);
    let own: Vec<&str> = families.iter().map(|family| own[*family].as_str()).collect();
    spec["clusterIP"] = json!(if headless { "None" } else { own[0] });
    spec["clusterIPs"] = if headless { json!(["None"]) } else { json!(own) };
    spec["ipFamilies"] = families.iter().map(|family| FAMILIES[*family]).collect();
    let single = families.len() == 1;
    spec["ipFamilyPolicy"] = json!(if single { "SingleStack" } else { "RequireDualStack" });
    if !headless && dice.once_in(5) {
        // An address that a node has, or one that is only routed to it.
        let outer = if shares { net::node(2) } else { net::outer_ip(200 + number % 50) };
        spec["externalIPs"] = families.iter().map(|family| outer[*family].clone()).collect();
    }
}

fn behaviour(dice: &mut Dice, spec: &mut Value, number: usize, kind: &str) {
    let outer = kind != "ClusterIP" || spec.get("externalIPs").is_some();
    let local = outer && dice.once_in(2);
    if outer {
        spec["externalTrafficPolicy"] = json!(if local { "Local" } else { "Cluster" });
    }
    if kind == "LoadBalancer" && local {
        spec["healthCheckNodePort"] = json!(32000 + number);
    }
    if dice.once_in(5) {
        let seconds = *dice.pick(&[1, 600, 10800, 86400]);
        spec["sessionAffinity"] = json!("ClientIP");
        spec["sessionAffinityConfig"] = json!({"clientIP": {"timeoutSeconds": seconds}});
    }
    if dice.once_in(5) {
        let how = *dice.pick(&["PreferClose", "PreferSameZone", "PreferSameNode"]);
        spec["trafficDistribution"] = json!(how);
    }
}

fn load_balancer(
    dice: &mut Dice,
    service: &mut Value,
    number: usize,
    families: &[usize],
    shares: bool,
) {
    let ranges: [[&str; 3]; 2] = [
        ["198.51.100.0/24", "10.0.0.0/16", "0.0.0.0/0"],
        ["2001:db8:f0::/64", "fd00:aa::/64", "::/0"],
    ];
    if dice.once_in(4) {
        let mut all: Vec<&str> = families.iter().flat_map(|family| ranges[*family]).collect();
        dice.shuffle(&mut all);
        all.truncate(1 + dice.below(2));
        service["spec"]["loadBalancerSourceRanges"] = json!(all);
    }
    let mut ingress = Vec::new();
    // Some load balancers are the nodes themselves.
    let by_nodes = shares && dice.once_in(3);
    for nth in 0..if shares { 1 } else { dice.below(3) } {
        for family in families {
            let ip = match (shares, by_nodes) {
                (_, true) => &net::node(1)[*family],
                (true, false) => &net::outer_ip(199)[*family],
                (false, false) => &net::outer_ip(number * 2 + nth)[*family],
            };
            let mode = if dice.once_in(4) { "Proxy" } else { "VIP" };
            ingress.push(json!({"ip": ip, "ipMode": mode}));
        }
    }
    if dice.once_in(8) {
        ingress.push(json!({"hostname": "lb.example.com"}));
    }
    service["status"] = json!({"loadBalancer": {"ingress": ingress}});
}

fn slices(dice: &mut Dice, name: &str, ports: &[Port], families: &[usize]) -> Vec<Value> {
    let mut items = Vec::new();
    for family in families {
        let hints = dice.below(4);
        for nth in 0..=usize::from(dice.once_in(4)) {
            let some = |dice: &mut Dice| !dice.once_in(10);
            let mut listed = Vec::new();
            for (target, Port { name, protocol, .. }) in (8080 + 100 * nth..).zip(ports) {
                if some(dice) {
                    listed.push(json!({"name": name, "protocol": protocol, "port": target}));
                }
            }
            let endpoints: Vec<Value> = (0..dice.below(5))
                .map(|at| endpoint(dice, *family, 10 + nth * 5 + at, hints))
                .collect();
            items.push(json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                "metadata": {
                    "namespace": "shop",
                    "name": format!("{name}-{}-{nth}", FAMILIES[*family].to_lowercase()),
                    "labels": {"kubernetes.io/service-name": name},
                },
                "addressType": FAMILIES[*family],
                "ports": listed,
                "endpoints": endpoints,
            }));
        }
    }
    items
}

fn endpoint(dice: &mut Dice, family: usize, number: usize, hints: usize) -> Value {
    let node = u8::try_from(1 + dice.below(usize::from(net::NODES))).expect("few nodes");
    // Some pods use their node's own network.
    let host = dice.once_in(10);
    let address = if host { net::node(node) } else { net::pod(node, number) };
    let mut endpoint = json!({"addresses": [address[family]]});
    // A node's address without a node name is a known difference: kube-proxy treats the endpoint
    // as remote, uturn as local.
    if host || !dice.once_in(12) {
        endpoint["nodeName"] = json!(format!("n{node}"));
    }
    endpoint["conditions"] = match dice.below(10) {
        0 => json!({"ready": false, "serving": false, "terminating": false}),
        1 => json!({"ready": false, "serving": true, "terminating": true}),
        2 => json!({"ready": false, "serving": false, "terminating": true}),
        3 => json!({}),
        4 => json!({"ready": false}),
        _ => json!({"ready": true, "serving": true, "terminating": false}),
    };
    if hints >= 2 && !dice.once_in(20) {
        endpoint["hints"] = json!({"forZones": [{"name": format!("z{}", 1 + dice.below(2))}]});
    }
    if hints == 3 {
        endpoint["hints"]["forNodes"] = json!([{"name": format!("n{}", 1 + dice.below(3))}]);
    }
    endpoint
}
