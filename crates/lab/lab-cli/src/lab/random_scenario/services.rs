//! Services and Ingresses, and the load balancers that they request.

use uturn_dice::Dice;

use serde_json::{Value, json};
use uturn_clouds::cloud::{CloudEntry, Setting, SettingOf, StatusShape};

use super::cloud;
use super::{Cluster, Vip};

/// The objects that flows can call.
pub(super) struct Called {
    pub(super) services: Vec<Service>,
    pub(super) ingresses: Vec<Ingress>,
}

pub(super) struct Service {
    pub(super) name: String,
    pub(super) cluster_ip: String,
    pub(super) ports: Vec<Port>,
    pub(super) external_ip: Option<String>,
    /// The address of the Service's load balancer.
    pub(super) vip: Option<String>,
    /// The name of the Service's load balancer.
    pub(super) host: Option<String>,
}

pub(super) struct Port {
    pub(super) name: &'static str,
    pub(super) number: u16,
    pub(super) node_port: Option<u16>,
}

impl Port {
    pub(super) fn is_udp(&self) -> bool {
        self.name == "dns"
    }
}

pub(super) struct Ingress {
    pub(super) name: String,
    pub(super) vip: String,
    pub(super) is_tls: bool,
    /// Whether there is also a listener without TLS.
    pub(super) is_both: bool,
    /// The hosts and paths of the rules. A rule without a host matches every host.
    pub(super) rules: Vec<(Option<String>, String)>,
}

/// Adds Services and Ingresses to a cluster.
pub(super) fn random(dice: &mut Dice, cluster: &mut Cluster) -> Called {
    let mut called = Called { services: Vec::new(), ingresses: Vec::new() };
    for number in 1..=dice.between(1, 3) {
        called.services.push(service(dice, cluster, number));
    }
    // Products describe only load balancers of Services.
    let ingresses = if cluster.cloud.model.is_some() { dice.below(3) } else { 0 };
    for number in 1..=ingresses {
        called.ingresses.push(ingress(dice, cluster, &called.services, number));
    }
    called
}

fn service(dice: &mut Dice, cluster: &mut Cluster, number: usize) -> Service {
    let name = format!("svc-{number}");
    let kind = dice.choose(&["ClusterIP", "NodePort", "LoadBalancer", "LoadBalancer"]);
    let has_node_ports = kind != "ClusterIP";
    let node_port = |at: usize| has_node_ports.then_some(30_080 + (number * 10 + at) as u16);
    let mut ports = Vec::new();
    if !dice.once_in(6) {
        let number = [80, 80, 8080, 443][dice.below(4)];
        ports.push(Port { name: "http", number, node_port: node_port(0) });
    }
    if ports.is_empty() || dice.once_in(4) {
        ports.push(Port { name: "dns", number: 53, node_port: node_port(1) });
    }
    let cluster_ip = format!("172.16.0.{}", 10 + number);
    let mut spec = json!({
        "type": kind,
        "clusterIP": cluster_ip,
        "ports": ports.iter().map(|port| port_of(dice, port)).collect::<Vec<_>>(),
        "selector": { "app": dice.choose(&["web", "web", "api", "api", "nobody"]) },
    });
    let mut annotations = json!({});
    let mut status = Value::Null;
    let (mut vip, mut host) = (None, None);
    if kind == "LoadBalancer" {
        // A status of another shape would come from another controller.
        let writes = cluster.cloud.writes;
        let names_only = writes == StatusShape::Names;
        let has_name = cluster.cloud.model.is_none() && (names_only || dice.once_in(3));
        host = has_name.then(|| format!("{name}.lb.example.com"));
        let is_alone =
            host.is_some() && (names_only || writes == StatusShape::Any && !dice.once_in(3));
        // If only a name is known, nothing may be stated: then addresses stand for the name, one
        // for each zone.
        let is_stated = !(is_alone && dice.once_in(2));
        let numbers: Vec<u16> = ports.iter().map(|port| port.number).collect();
        let on_nodes = nodes_of_status(dice, cluster, &numbers);
        if let Some(address) = on_nodes.first() {
            vip = Some(address.clone());
        } else if is_stated {
            let at = vip_for(dice, cluster, &numbers);
            vip = Some(cluster.vips[at].address.clone());
        }
        let mut entry = json!({});
        if let Some(address) = vip.as_ref().filter(|_| !is_alone) {
            entry["ip"] = address.clone().into();
            if dice.once_in(6) {
                entry["ipMode"] = "Proxy".into();
            }
        }
        if let Some(host) = &host {
            entry["hostname"] = host.clone().into();
            cluster.hosts.extend(vip.iter().map(|address| (host.clone(), address.clone())));
        }
        let mut entries = vec![entry];
        entries.extend(on_nodes.iter().skip(1).map(|address| json!({ "ip": address })));
        status = json!({ "loadBalancer": { "ingress": entries } });
        if cluster.cloud.model.is_some() {
            annotate(dice, &mut annotations, &name, cluster, &ports);
        } else {
            let class;
            (annotations, class) = cloud::ask_for_product(dice, cluster.cloud);
            if let Some(class) = class {
                spec["loadBalancerClass"] = class.into();
            }
        }
        if dice.once_in(6) {
            let ranges = ["10.0.0.0/16", "10.1.0.0/16", "198.51.100.0/24", "10.0.0.11/32"];
            spec["loadBalancerSourceRanges"] = json!([dice.choose(&ranges)]);
        }
    }
    if dice.once_in(8) {
        spec["internalTrafficPolicy"] = "Local".into();
    }
    if dice.once_in(8) {
        spec["sessionAffinity"] = "ClientIP".into();
    }
    if dice.once_in(10) {
        spec["publishNotReadyAddresses"] = true.into();
    }
    let external_ip = dice.once_in(5).then(|| {
        if dice.once_in(2) {
            let at = dice.below(cluster.nodes.len());
            let node = &mut cluster.nodes[at];
            node.claim(ports.iter().map(|port| port.number)).then(|| node.address.clone())
        } else {
            None
        }
    });
    let external_ip = external_ip.map(|of_node| of_node.unwrap_or(format!("10.0.9.{number}")));
    if let Some(ip) = &external_ip {
        spec["externalIPs"] = json!([ip]);
    }
    if (has_node_ports || external_ip.is_some()) && dice.once_in(3) {
        spec["externalTrafficPolicy"] = "Local".into();
    }
    let mut manifest = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": name, "namespace": "shop", "annotations": annotations },
        "spec": spec,
    });
    if status.is_object() {
        manifest["status"] = status;
    }
    cluster.objects.push(manifest);
    Service { name, cluster_ip, ports, external_ip, vip, host }
}

/// Returns the nodes that the status of a Service lists if its load balancer consists of pods on
/// nodes: all nodes or some. Now and then none, as if another controller had left the status empty.
fn nodes_of_status(dice: &mut Dice, cluster: &mut Cluster, ports: &[u16]) -> Vec<String> {
    let is_on_nodes = cluster.cloud.products.iter().any(|product| product.is_on_nodes());
    if !is_on_nodes || dice.once_in(6) {
        return Vec::new();
    }
    let is_partial = dice.once_in(3);
    let nodes = cluster.nodes.iter_mut().filter(|_| !is_partial || dice.once_in(2));
    let listed =
        nodes.filter_map(|node| node.claim(ports.iter().copied()).then(|| node.address.clone()));
    listed.collect()
}

fn port_of(dice: &mut Dice, port: &Port) -> Value {
    let target = match dice.below(8) {
        0 => json!(9999),
        1 => json!("nothing"),
        2 | 3 if port.is_udp() => json!(5353),
        2 | 3 => json!(8080),
        _ => json!(port.name),
    };
    let mut made = json!({
        "name": port.name,
        "protocol": if port.is_udp() { "UDP" } else { "TCP" },
        "port": port.number,
        "targetPort": target,
    });
    if let Some(node_port) = port.node_port {
        made["nodePort"] = node_port.into();
    }
    made
}

/// Sets random annotations of a Service with a load balancer.
fn annotate(
    dice: &mut Dice,
    annotations: &mut Value,
    name: &str,
    cluster: &mut Cluster,
    ports: &[Port],
) {
    let (cloud, of) = (cluster.cloud, SettingOf::Service);
    if dice.once_in(4) {
        cloud::annotate(cloud, annotations, of, Setting::AddressBinding, "true");
    }
    if dice.once_in(5) {
        cloud::annotate(cloud, annotations, of, Setting::PodTargets, "true");
    }
    if dice.once_in(6) {
        cloud::annotate(cloud, annotations, of, Setting::NodesWithPods, "true");
    }
    if dice.once_in(8) {
        cloud::annotate(cloud, annotations, of, Setting::NodeLabels, "pool=edge");
    }
    let first = ports[0].number;
    if !ports[0].is_udp() && dice.once_in(6) {
        let protocol = dice.choose(&["TCP_SSL", "HTTP", "HTTPS"]);
        let protocols = json!({ first.to_string(): { "protocol": [protocol], "tls": "shop-tls" } });
        cloud::annotate(cloud, annotations, of, Setting::Protocols, protocols.to_string());
    } else if dice.once_in(6) {
        cloud::annotate(cloud, annotations, of, Setting::Overrides, format!("{name}-lb"));
        let listeners: Vec<Value> = ports
            .iter()
            .map(|port| {
                let mut entry = json!({
                    "protocol": if port.is_udp() { "UDP" } else { "TCP" },
                    "port": port.number,
                });
                set_check(dice, &mut entry);
                entry
            })
            .collect();
        cluster.objects.extend(cloud::overrides(cloud, name, &json!({ "l4Listeners": listeners })));
    }
}

fn ingress(dice: &mut Dice, cluster: &mut Cluster, services: &[Service], number: usize) -> Ingress {
    let name = format!("ing-{number}");
    let is_tls = dice.once_in(3);
    let port = if is_tls { 443 } else { 80 };
    let is_both = is_tls && !dice.once_in(3);
    let ports: &[u16] = if is_both { &[443, 80] } else { &[port] };
    let at = vip_for(dice, cluster, ports);
    let vip = cluster.vips[at].address.clone();
    let (mut rules, mut spec_rules) = (Vec::new(), Vec::new());
    for rule in 1..=dice.between(1, 2) {
        let host = (rule > 1 || dice.once_in(2)).then(|| format!("h{rule}.{name}.example.com"));
        if let Some(host) = &host {
            cluster.hosts.push((host.clone(), vip.clone()));
        }
        let mut paths = Vec::new();
        for place in 0..dice.between(1, 2) {
            let path = ["/", "/api"][place];
            let service = &services[dice.below(services.len())];
            let port = &service.ports[dice.below(service.ports.len())];
            paths.push(json!({
                "path": path,
                "pathType": dice.choose(&["Prefix", "Prefix", "Exact"]),
                "backend": { "service": { "name": service.name, "port": { "number": port.number } } },
            }));
            rules.push((host.clone(), path.to_owned()));
        }
        let mut rule = json!({ "http": { "paths": paths } });
        if let Some(host) = host {
            rule["host"] = host.into();
        }
        spec_rules.push(rule);
    }
    let of = SettingOf::Ingress;
    let mut annotations =
        if is_both { beside(dice, cluster.cloud, &spec_rules) } else { json!({}) };
    if dice.once_in(5) {
        cloud::annotate(cluster.cloud, &mut annotations, of, Setting::PodTargets, "true");
    }
    if dice.once_in(3) {
        cloud::annotate(
            cluster.cloud,
            &mut annotations,
            of,
            Setting::Overrides,
            format!("{name}-lb"),
        );
        let mut listener = json!({
            "protocol": if is_tls { "HTTPS" } else { "HTTP" },
            "port": port,
            "keepaliveEnable": u8::from(!dice.once_in(4)),
        });
        set_check(dice, &mut listener);
        cluster.objects.extend(cloud::overrides(
            cluster.cloud,
            &name,
            &json!({ "l7Listeners": [listener] }),
        ));
    }
    let mut spec = json!({ "rules": spec_rules });
    if is_tls {
        spec["tls"] = json!([{ "secretName": "shop-tls" }]);
    }
    cluster.objects.push(json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": { "name": name, "namespace": "shop", "annotations": annotations },
        "spec": spec,
        "status": { "loadBalancer": { "ingress": [{ "ip": vip }] } },
    }));
    Ingress { name, vip, is_tls, is_both, rules }
}

/// Gives an Ingress with TLS a plain listener too, with redirects or with some of the rules.
fn beside(dice: &mut Dice, cloud: &CloudEntry, rules: &[Value]) -> Value {
    let mut annotations = json!({});
    let mut set = |setting, value: String| {
        cloud::annotate(cloud, &mut annotations, SettingOf::Ingress, setting, value);
    };
    match dice.below(4) {
        0 | 1 => {
            set(Setting::Redirects, "true".to_owned());
            set(Setting::RedirectToHttps, "true".to_owned());
        }
        2 => set(Setting::BothProtocols, "true".to_owned()),
        _ => {
            let (mut clear, mut sealed) = (Vec::new(), Vec::new());
            for rule in rules {
                for path in rule["http"]["paths"].as_array().into_iter().flatten() {
                    let service = &path["backend"]["service"];
                    let mut entry = json!({
                        "path": path["path"],
                        "backend": {
                            "serviceName": service["name"],
                            "servicePort": service["port"]["number"].to_string(),
                        },
                    });
                    if rule.get("host").is_some() {
                        entry["host"] = rule["host"].clone();
                    }
                    match dice.below(4) {
                        0 => clear.push(entry),
                        1 => sealed.push(entry),
                        2 => {
                            clear.push(entry.clone());
                            sealed.push(entry);
                        }
                        _ => {}
                    }
                }
            }
            set(Setting::MixedProtocols, "true".to_owned());
            set(Setting::HttpRules, json!(clear).to_string());
            set(Setting::HttpsRules, json!(sealed).to_string());
        }
    }
    annotations
}

fn set_check(dice: &mut Dice, listener: &mut Value) {
    match dice.below(4) {
        0 => listener["healthCheck"] = json!({ "enable": false }),
        1 => listener["healthCheck"] = json!({ "enable": true, "sourceIpType": 0 }),
        2 => listener["healthCheck"] = json!({ "enable": true, "sourceIpType": 1 }),
        _ => {}
    }
    if dice.once_in(4) {
        listener["scheduler"] = dice.choose(&["WRR", "LEAST_CONN", "IP_HASH"]).into();
    }
}

/// Returns the index of an address on which these ports are free: a new address, or one to share.
fn vip_for(dice: &mut Dice, cluster: &mut Cluster, ports: &[u16]) -> usize {
    let is_free = |vip: &Vip| !vip.ports.iter().any(|port| ports.contains(port));
    let shared = dice.once_in(3).then(|| cluster.vips.iter().position(is_free)).flatten();
    let at = shared.unwrap_or_else(|| {
        let last = 100 + cluster.vips.len();
        let address =
            if dice.once_in(3) { format!("203.0.113.{last}") } else { format!("10.0.0.{last}") };
        cluster.vips.push(Vip { address, ports: Vec::new() });
        cluster.vips.len() - 1
    });
    cluster.vips[at].ports.extend(ports);
    at
}
