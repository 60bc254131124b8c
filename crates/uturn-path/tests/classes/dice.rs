//! Random clusters, small and mean: whatever may make two pods or two nodes unlike each
//! other happens now and then.

use std::fmt::Write as _;

/// xorshift64*.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.roll() % limit as u64) as usize
    }

    /// One time in so many.
    fn once_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

struct Service {
    name: String,
    ports: usize,
}

/// A cluster as manifests.
pub(crate) fn cluster(dice: &mut Dice) -> String {
    let nodes = 1 + dice.below(6);
    let mode = dice.one_of(&["iptables", "iptables", "nftables", "ipvs", "ipvs"]);
    let (version, variant) = match mode {
        "ipvs" => dice.one_of(&[
            ("v1.30.0", "upstream"),
            ("v1.22.5-tke.12", "tke"),
            ("v1.30.0-tke.5", "tke"),
        ]),
        _ => (dice.one_of(&["v1.34.4", "v1.31.2"]), "upstream"),
    };
    let services = 1 + dice.below(4);
    let mut text = facts(dice, nodes, services, mode, version, variant);
    for node in 1..=nodes {
        let zone = dice.one_of(&["a", "a", "b"]);
        let excluded = if dice.once_in(12) {
            ", node.kubernetes.io/exclude-from-external-load-balancers: \"\""
        } else {
            ""
        };
        let pool = dice.one_of(&["web", "web", "batch"]);
        let _ = writeln!(
            text,
            "---
apiVersion: v1
kind: Node
metadata:
  name: n{node}
  labels: {{topology.kubernetes.io/zone: {zone}, pool: {pool}{excluded}}}
spec: {{podCIDR: 10.1.{node}.0/24}}
status: {{addresses: [{{type: InternalIP, address: 10.0.0.{}}}]}}",
            10 + node
        );
        for client in 0..dice.below(3) {
            let host = dice.once_in(3);
            pod(&mut text, &format!("client-{node}-{client}"), node, 100 + client, host, &[]);
        }
    }
    let mut made = Vec::new();
    for number in 0..services {
        made.push(service(dice, &mut text, number, nodes));
    }
    for number in 0..dice.below(3) {
        ingress(dice, &mut text, number, &made);
    }
    text
}

fn facts(
    dice: &mut Dice,
    nodes: usize,
    services: usize,
    mode: &str,
    version: &str,
    variant: &str,
) -> String {
    let mut own = Vec::new();
    let (rare_rp, rare_groups) = (dice.once_in(3), dice.once_in(3));
    let usual_rp = dice.below(3);
    let rare = dice.once_in(3);
    for node in 1..=nodes {
        let rp_filter = if rare_rp { dice.below(3) } else { usual_rp };
        let mut said = vec![format!("rpFilter: {rp_filter}")];
        if rare_groups && dice.once_in(2) {
            said.push("securityGroups: [sg]".to_owned());
        }
        if rare && dice.once_in(4) {
            said.push(format!("unprogrammed: [shop/s{}]", dice.below(services)));
        }
        if rare && dice.once_in(8) {
            said.push("forwarding: false".to_owned());
        }
        if rare && dice.once_in(8) {
            said.push("podRoutes: false".to_owned());
        }
        if rare && dice.once_in(8) {
            said.push("publicBandwidth: false".to_owned());
        }
        if rare && dice.once_in(10) {
            let who = 10 + 1 + dice.below(nodes);
            said.push(format!(
                "iptables: \"*filter\\n-A FORWARD -s 10.0.0.{who} -j DROP\\n-A INPUT -s 10.1.{}.0/24 -p tcp -j REJECT\\nCOMMIT\\n\"",
                1 + dice.below(nodes)
            ));
        }
        own.push(format!("    n{node}: {{{}}}", said.join(", ")));
    }
    let mut listeners = Vec::new();
    for ip in [100, 101, 102, 103] {
        if dice.once_in(3) {
            let snat = dice.once_in(2);
            let scheduler = dice.one_of(&["", "", "", ", scheduler: IP_HASH"]);
            let groups = if dice.once_in(4) { "securityGroups: [sg], " } else { "" };
            listeners.push(format!(
                "{{vip: 10.0.0.{ip}, {groups}listeners: [{{port: 80, snat: {snat}{scheduler}}}]}}"
            ));
        }
    }
    let groups = format!(
        "  securityGroups:
    sg:
      inbound:
      - {{action: accept, protocol: tcp, ports: {}, peer: {}}}
      - {{action: accept, protocol: udp, ports: all, peer: all}}",
        dice.one_of(&["30000-32767", "all", "8080", "80"]),
        dice.one_of(&["all", "10.0.0.0/16", "10.1.1.0/24", "10.1.0.0/16", "10.0.0.12/32"]),
    );
    format!(
        "apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  provider: tke
  kubeProxy: {{mode: {mode}, version: {version}, variant: {variant}}}
  network: {{mode: {}, podCIDRs: [10.1.0.0/16], vpcCIDRs: [10.0.0.0/16], serviceCIDRs: [172.16.0.0/16]}}
  loadBalancers: [{}]
{groups}
  nodes:
{}
",
        dice.one_of(&["global-router", "global-router", "vpc-cni"]),
        listeners.join(", "),
        own.join("\n")
    )
}

fn pod(text: &mut String, name: &str, node: usize, host: usize, in_host: bool, ports: &[u16]) {
    let ports: Vec<String> =
        ports.iter().map(|port| format!("{{containerPort: {port}}}")).collect();
    let ip = match in_host {
        true => format!("10.0.0.{}", 10 + node),
        false => format!("10.1.{node}.{host}"),
    };
    let _ = writeln!(
        text,
        "---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: shop}}
spec: {{nodeName: n{node}, hostNetwork: {in_host}, containers: [{{name: c, image: c, ports: [{}]}}]}}
status: {{phase: Running, podIP: {ip}, conditions: [{{type: Ready, status: \"True\"}}]}}",
        ports.join(", ")
    );
}

fn service(dice: &mut Dice, text: &mut String, number: usize, nodes: usize) -> Service {
    let name = format!("s{number}");
    let kind = dice.one_of(&["ClusterIP", "NodePort", "LoadBalancer", "LoadBalancer"]);
    let policy = dice.one_of(&["Cluster", "Cluster", "Local"]);
    let internal = dice.one_of(&["Cluster", "Cluster", "Cluster", "Local"]);
    let port = dice.one_of(&[80, 80, 8080]);
    // Now and then the pods listen elsewhere.
    let target = dice.one_of(&[8080, 8080, 8080, 8081]);
    let protocol = dice.one_of(&["TCP", "TCP", "TCP", "UDP"]);
    let mut notes = Vec::new();
    if dice.once_in(2) {
        notes
            .push("service.kubernetes.io/qcloud-loadbalancer-internal-subnetid: subnet".to_owned());
    }
    if dice.once_in(4) {
        notes.push("service.cloud.tencent.com/direct-access: \"true\"".to_owned());
    }
    if dice.once_in(4) {
        notes.push("service.cloud.tencent.com/prevent-loopback: \"true\"".to_owned());
    }
    if dice.once_in(5) {
        notes.push("service.kubernetes.io/local-svc-only-bind-node-with-pod: \"true\"".to_owned());
    }
    if dice.once_in(6) {
        notes.push("service.kubernetes.io/qcloud-loadbalancer-backends-label: pool=web".to_owned());
    }
    let hints = dice.once_in(6);
    if hints {
        notes.push("service.kubernetes.io/topology-mode: Auto".to_owned());
    }
    // Two Services may share an address; a node's port is mostly one's own.
    let vip = dice.one_of(&["10.0.0.101", "10.0.0.102", "10.0.0.103", "203.0.113.7"]);
    let mode = dice.one_of(&["VIP", "VIP", "Proxy"]);
    let node_port = if dice.once_in(15) { 30080 } else { 30081 + number };
    let mut spec = vec![
        format!("type: {kind}"),
        format!("clusterIP: 172.16.0.{}", 10 + number),
        format!("internalTrafficPolicy: {internal}"),
    ];
    let outside = kind != "ClusterIP";
    let external = dice.once_in(6).then(|| dice.one_of(&["10.0.0.200", "10.0.0.101", "10.0.0.12"]));
    if outside || external.is_some() {
        spec.push(format!("externalTrafficPolicy: {policy}"));
    }
    if let Some(ip) = external {
        spec.push(format!("externalIPs: [{ip}]"));
    }
    if kind == "LoadBalancer" && dice.once_in(5) {
        let range = dice.one_of(&["10.1.1.0/24", "10.0.0.0/24", "10.1.0.0/16"]);
        spec.push(format!("loadBalancerSourceRanges: [{range}]"));
    }
    if dice.once_in(8) {
        spec.push("sessionAffinity: ClientIP".to_owned());
    }
    let node_port = if outside { format!(", nodePort: {node_port}") } else { String::new() };
    spec.push(format!(
        "ports: [{{name: p, port: {port}, protocol: {protocol}, targetPort: {target}{node_port}}}]"
    ));
    let status = match kind {
        "LoadBalancer" => {
            format!("\nstatus: {{loadBalancer: {{ingress: [{{ip: {vip}, ipMode: {mode}}}]}}}}")
        }
        _ => String::new(),
    };
    let _ = writeln!(
        text,
        "---
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: shop, annotations: {{{}}}}}
spec: {{{}}}{status}",
        notes.join(", "),
        spec.join(", ")
    );
    endpoints(dice, text, number, nodes, (target, protocol), hints);
    Service { name, ports: port }
}

fn endpoints(
    dice: &mut Dice,
    text: &mut String,
    number: usize,
    nodes: usize,
    (target, protocol): (u16, &str),
    hints: bool,
) {
    let mut lines = Vec::new();
    let in_host = dice.once_in(8);
    let many = dice.below(2 * nodes + 2);
    let mut taken = vec![0; nodes + 1];
    for endpoint in 0..many {
        let node = 1 + dice.below(nodes);
        if in_host && taken[node] > 0 {
            continue;
        }
        let host = 10 + 10 * number + taken[node];
        taken[node] += 1;
        let name = format!("s{number}-{endpoint}");
        let listens = if dice.once_in(12) { vec![9] } else { vec![8080] };
        let is_there = !dice.once_in(20);
        if is_there {
            pod(text, &name, node, host, in_host, &listens);
        }
        let ip = match in_host {
            true => format!("10.0.0.{}", 10 + node),
            false if dice.once_in(40) => "10.9.9.9".to_owned(),
            false => format!("10.1.{node}.{host}"),
        };
        let (ready, serving, terminating) = dice.one_of(&[
            (true, true, false),
            (true, true, false),
            (true, true, false),
            (true, true, false),
            (false, false, false),
            (false, true, true),
        ]);
        let written = match dice.below(25) {
            0 => String::new(),
            1 => format!(", nodeName: n{}", 1 + dice.below(nodes)),
            _ => format!(", nodeName: n{node}"),
        };
        let hint = match hints && !dice.once_in(10) {
            true => format!(", hints: {{forZones: [{{name: {}}}]}}", dice.one_of(&["a", "a", "b"])),
            false => String::new(),
        };
        lines.push(format!(
            "- {{addresses: [{ip}]{written}, conditions: {{ready: {ready}, serving: {serving}, terminating: {terminating}}}{hint}}}"
        ));
    }
    let lines = if lines.is_empty() {
        "endpoints: []".to_owned()
    } else {
        format!("endpoints:\n{}", lines.join("\n"))
    };
    let _ = writeln!(
        text,
        "---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: s{number}-x, namespace: shop, labels: {{kubernetes.io/service-name: s{number}}}}}
addressType: IPv4
ports: [{{name: p, port: {target}, protocol: {protocol}}}]
{lines}"
    );
}

fn ingress(dice: &mut Dice, text: &mut String, number: usize, services: &[Service]) {
    let vip = dice.one_of(&["10.0.0.100", "10.0.0.101", "203.0.113.8"]);
    let mut notes = Vec::new();
    if dice.once_in(2) {
        notes.push("kubernetes.io/ingress.subnetId: subnet");
    }
    if dice.once_in(5) {
        notes.push("ingress.cloud.tencent.com/direct-access: \"true\"");
    }
    let mut rules = Vec::new();
    for host in 0..=dice.below(2) {
        let one = &services[dice.below(services.len())];
        let other = &services[dice.below(services.len())];
        let host = dice
            .one_of(
                &[
                    format!("host: h{host}.example.com, "),
                    "host: \"*.example.com\", ".to_owned(),
                    String::new(),
                ]
                .each_ref()
                .map(String::as_str),
            )
            .to_owned();
        rules.push(format!(
            "  - {{{host}http: {{paths: [{{path: /, pathType: Prefix, backend: {{service: {{name: {}, port: {{number: {}}}}}}}}}, {{path: /a, pathType: Exact, backend: {{service: {{name: {}, port: {{number: {}}}}}}}}}]}}}}",
            one.name, one.ports, other.name, other.ports
        ));
    }
    let _ = writeln!(
        text,
        "---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: i{number}, namespace: shop, annotations: {{{}}}}}
spec:
  rules:
{}
status: {{loadBalancer: {{ingress: [{{ip: {vip}}}]}}}}",
        notes.join(", "),
        rules.join("\n")
    );
}
