//! Random scenarios: small clusters with a little of everything, and flows in them.
//!
//! A scenario is generated as the document that a user would write, so that a failing one is a
//! file that any user can run. It only depends on a seed and a number.

mod cloud;
mod facts;
mod flows;
mod network;
mod services;

use serde_json::{Value, json};
use uturn_clouds::cloud::CloudEntry;
use uturn_dice::Dice;
use uturn_model::ProxyMode;

use network::Network;

/// A scenario.
pub(super) struct Drawn {
    /// The name of the scenario, which contains its seed and number.
    pub(super) name: String,
    /// The document.
    pub(super) document: Value,
}

/// Generates the scenario of this number.
pub(super) fn scenario(seed: u64, number: u64, modes: &[ProxyMode]) -> Drawn {
    let mut dice = Dice::of_case(seed, number);
    let name = format!("fuzz-{seed}-{number}");
    let mut cluster = Cluster::random(&mut dice, modes);
    let services = services::random(&mut dice, &mut cluster);
    let facts = facts::random(&mut dice, &cluster);
    let flows = flows::random(&mut dice, &cluster, &services);
    let document = json!({
        "apiVersion": "uturn.dev/v1alpha1",
        "kind": "Scenario",
        "metadata": { "name": name },
        "spec": {
            "shows": format!("Number {number} that chance drew from seed {seed}."),
            "nodes": [cluster.nodes.len()],
            "shape": {
                "network": cluster.network.mode,
                "backends": "none",
                "clients": "none",
            },
            "facts": facts,
            "objects": cluster.objects,
            "flows": flows,
        },
    });
    Drawn { name, document }
}

/// A cluster under construction.
struct Cluster {
    cloud: &'static CloudEntry,
    mode: ProxyMode,
    network: Network,
    nodes: Vec<Node>,
    pods: Vec<Pod>,
    vips: Vec<Vip>,
    /// Names outside the cluster, with their addresses.
    hosts: Vec<(String, String)>,
    /// Manifests.
    objects: Vec<Value>,
}

struct Node {
    name: String,
    address: String,
    /// The ports of Services that have this address as one of theirs. If two Services had the same
    /// port, kube-proxy would leave it to chance which of them gets a call.
    claimed: Vec<u16>,
}

impl Node {
    /// Claims ports for a Service, unless another Service has one of them.
    fn claim(&mut self, ports: impl Iterator<Item = u16> + Clone) -> bool {
        let is_free = !ports.clone().any(|port| self.claimed.contains(&port));
        if is_free {
            self.claimed.extend(ports);
        }
        is_free
    }
}

struct Pod {
    name: String,
    address: String,
    /// The ports that the pod declares. Clients have none.
    ports: Vec<(&'static str, u16)>,
}

/// An address of load balancers, and the ports in use.
struct Vip {
    address: String,
    ports: Vec<u16>,
}

impl Cluster {
    fn random(dice: &mut Dice, modes: &[ProxyMode]) -> Self {
        let mut cluster = Self {
            cloud: cloud::random(dice),
            mode: modes[dice.below(modes.len())],
            network: Network::random(dice),
            nodes: Vec::new(),
            pods: Vec::new(),
            vips: Vec::new(),
            hosts: Vec::new(),
            objects: Vec::new(),
        };
        for number in 1..=dice.between(1, 4) {
            cluster.node(dice, number);
        }
        if dice.once_in(4) {
            cluster.node_port_addresses(dice);
        }
        for app in ["web", "api"] {
            for number in 1..=dice.between(0, 3) {
                cluster.backend(dice, app, number);
            }
        }
        for number in 1..=dice.between(1, 2) {
            cluster.client(dice, number);
        }
        cluster
    }

    /// Adds a node. The shape creates the nodes; those with labels are written as manifests.
    fn node(&mut self, dice: &mut Dice, number: usize) {
        let (name, address) = (format!("n{number}"), format!("10.0.0.{}", 10 + number));
        let mut labels = match dice.below(8) {
            0 => json!({ "node.kubernetes.io/exclude-from-external-load-balancers": "true" }),
            1 => json!({ "pool": "edge" }),
            _ => Value::Null,
        };
        if self.cloud.model.is_none() && !dice.once_in(3) {
            labels["topology.kubernetes.io/zone"] = dice.choose(&["zone-a", "zone-b"]).into();
        }
        if labels.is_object() {
            let mut node = json!({
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": { "name": name, "labels": labels },
                "status": { "addresses": [{ "type": "InternalIP", "address": address }] },
            });
            if self.network.mode != "vpc-cni" {
                node["spec"] = json!({ "podCIDR": format!("10.1.{number}.0/24") });
            }
            self.objects.push(node);
        }
        self.nodes.push(Node { name, address, claimed: Vec::new() });
    }

    /// Adds a configuration of kube-proxy that opens node ports at some addresses of nodes only.
    fn node_port_addresses(&mut self, dice: &mut Dice) {
        let ranges = ["10.0.0.0/16", "10.0.0.11/32", "127.0.0.0/8", "192.0.2.0/24", "0.0.0.0/0"];
        let (first, second) = (dice.choose(&ranges), dice.choose(&ranges));
        let ranges = if first == second { vec![first] } else { vec![first, second] };
        let config = json!({
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "nodePortAddresses": ranges,
        });
        self.objects.push(json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": "kube-proxy", "namespace": "kube-system" },
            "data": { "config.conf": config.to_string() },
        }));
    }

    fn backend(&mut self, dice: &mut Dice, app: &str, number: usize) {
        let is_ready = !dice.once_in(6);
        let wants_host = dice.once_in(6);
        // Pods on the host network need different ports on a node.
        let (http, dns) = match (wants_host, app) {
            (true, "web") => (9000 + number as u16, 5400 + number as u16),
            (true, _) => (9010 + number as u16, 5410 + number as u16),
            (false, _) => (8080, 5353),
        };
        let ports = vec![("http", http), ("dns", dns)];
        self.pod(dice, app, number, ports, is_ready, wants_host);
    }

    fn client(&mut self, dice: &mut Dice, number: usize) {
        let wants_host = dice.once_in(6);
        self.pod(dice, "client", number, Vec::new(), true, wants_host);
    }

    fn pod(
        &mut self,
        dice: &mut Dice,
        app: &str,
        number: usize,
        ports: Vec<(&'static str, u16)>,
        is_ready: bool,
        is_host: bool,
    ) {
        let node = dice.below(self.nodes.len());
        let address = if is_host {
            self.nodes[node].address.clone()
        } else {
            self.network.address(dice, node + 1, 20 + self.pods.len())
        };
        let declared: Vec<Value> = ports
            .iter()
            .map(|(name, port)| {
                let protocol = if *name == "dns" { "UDP" } else { "TCP" };
                json!({ "name": name, "containerPort": port, "protocol": protocol })
            })
            .collect();
        let name = format!("{app}-{number}");
        let mut pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": { "name": name, "namespace": "shop", "labels": { "app": app } },
            "spec": {
                "nodeName": self.nodes[node].name,
                "containers": [{ "name": app, "image": app, "ports": declared }],
            },
            "status": {
                "phase": "Running",
                "podIPs": [{ "ip": address }],
                "conditions": [
                    { "type": "Ready", "status": if is_ready { "True" } else { "False" } },
                ],
            },
        });
        if is_host {
            pod["spec"]["hostNetwork"] = true.into();
        }
        self.objects.push(pod);
        self.pods.push(Pod { name, address, ports });
    }

    /// Returns the pods that are servers.
    fn backends(&self) -> Vec<&Pod> {
        self.pods.iter().filter(|pod| !pod.ports.is_empty()).collect()
    }

    fn clients(&self) -> Vec<&Pod> {
        self.pods.iter().filter(|pod| pod.ports.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use uturn_report::yaml;
    use uturn_snapshot::Source;
    use uturn_snapshot::scenario::read_all;

    use super::*;
    use crate::lab::engine;

    const ALL: [ProxyMode; 3] = [ProxyMode::Iptables, ProxyMode::Nftables, ProxyMode::Ipvs];

    #[test]
    fn a_seed_and_a_number_decide_everything() {
        let text = |seed, number| yaml::document(&scenario(seed, number, &ALL).document);
        assert_eq!(text(7, 3), text(7, 3));
        assert_ne!(text(7, 3), text(7, 4));
        assert_ne!(text(7, 3), text(8, 3));
    }

    #[test]
    fn everything_drawn_can_be_read_and_predicted() {
        let mut words = BTreeSet::new();
        for number in 0..300 {
            let generated = scenario(1, number, &ALL);
            let text = yaml::document(&generated.document);
            words.extend(text.split_whitespace().map(String::from));
            let source = Source { name: "drawn.yaml".into(), text: text.as_str().into() };
            let read = read_all(vec![source]).unwrap_or_else(|why| {
                let why: Vec<String> = why.iter().map(ToString::to_string).collect();
                panic!("{}\n{text}", why.join("\n"))
            });
            let [case] = &read[0].cases[..] else { panic!("one size, one mode") };
            assert!(!case.flows.is_empty());
            let engine = engine(&case.cluster).unwrap_or_else(|why| panic!("{why:?}\n{text}"));
            for flow in &case.flows {
                engine.verdict(&flow.flow).unwrap_or_else(|why| panic!("{why}\n{text}"));
            }
        }
        for word in [
            "vpc-cni",
            "routed",
            "tunnel",
            "masquerade:",
            "Local",
            "hostNetwork:",
            "externalIPs:",
            "sessionAffinity:",
            "Proxy",
            "loadBalancerSourceRanges:",
            "UDP",
            "unprogrammed:",
            "podRoutes:",
            "forwarding:",
            "bridgeRules:",
            "publicBandwidth:",
            "rpFilter:",
            "keepaliveEnable:",
            "Exact",
            "tls:",
            "reserved",
            "topology.kubernetes.io/zone:",
            "hostname:",
            "kubeProxyName:",
            "127.0.0.1:",
        ] {
            assert!(words.iter().any(|own| own.contains(word)), "no scenario has {word}");
        }
        let described = |entry: &&CloudEntry| entry.model.is_some() || !entry.products.is_empty();
        for entry in uturn_clouds::cloud::ALL.into_iter().filter(described) {
            assert!(words.contains(entry.cloud.word()), "no scenario is in {}", entry.cloud.name());
        }
    }
}
