//! Small random clusters: everything that can distinguish two pods or two nodes occurs now and
//! then.

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

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.roll() % limit as u64) as usize
    }

    /// One time in so many.
    pub(crate) fn once_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    pub(crate) fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

struct Service {
    name: String,
    ports: usize,
    is_v6: bool,
}

/// How pods are connected.
struct Network {
    mode: &'static str,
    is_tunnel: bool,
    /// Where pods keep their own address, if they lose it elsewhere.
    kept: Option<&'static str>,
}

impl Network {
    /// Whose range a node states: without a bridge it says nothing about where pods are.
    fn range(&self, node: usize, nodes: usize) -> usize {
        if self.mode == "routed" { node % nodes + 1 } else { node }
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "mode: {}", self.mode)?;
        if self.is_tunnel {
            f.write_str(", transport: tunnel")?;
        }
        self.kept
            .map_or(Ok(()), |kept| write!(f, ", masquerade: true, nonMasqueradeCIDRs: [{kept}]"))
    }
}

/// Which families the cluster speaks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Families {
    V4,
    V6,
    Both,
}

impl Families {
    /// One of them, for what has one only.
    fn pick(self, dice: &mut Dice) -> bool {
        match self {
            Self::V4 => false,
            Self::V6 => true,
            Self::Both => dice.once_in(2),
        }
    }

    /// What is written for each of them.
    fn all(self, of: impl Fn(bool) -> String) -> Vec<String> {
        let speaks = |v6: &bool| self == Self::Both || (self == Self::V6) == *v6;
        [false, true].into_iter().filter(speaks).map(of).collect()
    }
}

fn node_ip(v6: bool, node: usize) -> String {
    if v6 { format!("\"fd00::{}\"", 10 + node) } else { format!("10.0.0.{}", 10 + node) }
}

fn pod_ip(v6: bool, node: usize, host: usize) -> String {
    if v6 { format!("\"fd01:0:0:{node}::{host}\"") } else { format!("10.1.{node}.{host}") }
}

fn service_ip(v6: bool, number: usize) -> String {
    if v6 { format!("\"fd02::{}\"", 10 + number) } else { format!("172.16.0.{}", 10 + number) }
}

/// An address of the VPC, as load balancers have them.
fn vip(v6: bool, host: usize) -> String {
    if v6 { format!("\"fd00::{host}\"") } else { format!("10.0.0.{host}") }
}

fn public(v6: bool, host: usize) -> String {
    if v6 { format!("\"2001:db8::{host}\"") } else { format!("203.0.113.{host}") }
}

/// A cluster as manifests.
#[allow(dead_code, reason = "some tests that include this file draw without controllers")]
pub(crate) fn cluster(dice: &mut Dice) -> String {
    cluster_with(dice, true)
}

/// A cluster as manifests, in which controllers may serve Ingresses.
pub(crate) fn cluster_with(dice: &mut Dice, has_controllers: bool) -> String {
    let nodes = 1 + dice.below(8);
    let families =
        dice.one_of(&[Families::V4, Families::V4, Families::V4, Families::V6, Families::Both]);
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
    let network = dice.one_of(&["global-router", "global-router", "vpc-cni", "routed", "routed"]);
    let is_tunnel = network != "vpc-cni" && dice.once_in(3);
    let kept = match dice.below(5) {
        _ if is_tunnel => Some("10.1.0.0/16"),
        0 => Some("10.1.0.0/16"),
        1 => Some("10.1.0.0/16, 10.0.0.0/16"),
        _ => None,
    };
    let network = Network { mode: network, is_tunnel, kept };
    let mut text = facts(dice, (nodes, services), families, &network, mode, version, variant);
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
spec: {{podCIDRs: [{}]}}
status: {{addresses: [{}]}}",
            families.all(|v6| pod_net(v6, network.range(node, nodes))).join(", "),
            families
                .all(|v6| format!("{{type: InternalIP, address: {}}}", node_ip(v6, node)))
                .join(", "),
        );
        for client in 0..dice.below(3) {
            let host = dice.once_in(3);
            let name = format!("client-{node}-{client}");
            pod(&mut text, families, &name, (node, 100 + client, host), &[]);
        }
    }
    let mut made = Vec::new();
    for number in 0..services {
        made.push(service(dice, &mut text, families, number, nodes));
    }
    for number in 0..dice.below(3) {
        ingress(dice, &mut text, families, number, &made);
    }
    if has_controllers && dice.once_in(3) {
        controller(dice, &mut text, families, nodes, &made);
    }
    text
}

/// A controller in the cluster, its Service, and the Ingresses that it serves.
fn controller(
    dice: &mut Dice,
    text: &mut String,
    families: Families,
    nodes: usize,
    services: &[Service],
) {
    let in_host = dice.once_in(4);
    let tries =
        dice.one_of(&["", "", "proxy-next-upstream-tries: \"1\"", "service-upstream: \"true\""]);
    let _ = writeln!(
        text,
        "---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {{name: edge}}
spec: {{controller: k8s.io/ingress-nginx}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: edge, namespace: shop}}
data: {{proxy-connect-timeout: \"2\", {tries}}}"
    );
    for node in 1..=nodes {
        if !dice.once_in(2) {
            continue;
        }
        let ips = families.all(|v6| if in_host { node_ip(v6, node) } else { pod_ip(v6, node, 60) });
        let all: Vec<String> = ips.iter().map(|ip| format!("{{ip: {ip}}}")).collect();
        let _ = writeln!(
            text,
            "---
apiVersion: v1
kind: Pod
metadata: {{name: edge-{node}, namespace: shop, labels: {{app: edge}}}}
spec:
  nodeName: n{node}
  hostNetwork: {in_host}
  containers:
  - name: controller
    image: registry.example/ingress-nginx/controller:v1.12.0
    args: [/nginx-ingress-controller, --configmap=$(POD_NAMESPACE)/edge]
    ports: [{{name: http, containerPort: 80}}, {{name: https, containerPort: 443}}, {{name: db, containerPort: 5432}}]
status: {{phase: Running, podIP: {}, podIPs: [{}], conditions: [{{type: Ready, status: \"True\"}}]}}",
            ips[0],
            all.join(", ")
        );
    }
    let is_v6 = families.pick(dice);
    let kind = dice.one_of(&["LoadBalancer", "LoadBalancer", "NodePort"]);
    let policy = dice.one_of(&["Cluster", "Local"]);
    let status = match kind {
        "LoadBalancer" => {
            format!("status: {{loadBalancer: {{ingress: [{{ip: {}}}]}}}}", vip(is_v6, 120))
        }
        _ => String::new(),
    };
    let address = service_ip(is_v6, 50);
    let has_gateway = dice.once_in(2);
    let label = if has_gateway { "gateway.networking.k8s.io/gateway-name: edge" } else { "" };
    let _ = writeln!(
        text,
        "---
apiVersion: v1
kind: Service
metadata: {{name: edge, namespace: shop, labels: {{{label}}}}}
spec:
  type: {kind}
  clusterIP: {address}
  clusterIPs: [{address}]
  ipFamilies: [{}]
  externalTrafficPolicy: {policy}
  selector: {{app: edge}}
  ports:
  - {{name: http, port: 80, targetPort: http, nodePort: 30980}}
  - {{name: https, port: 443, targetPort: https, nodePort: 30943}}
  - {{name: db, port: 5432, targetPort: db, nodePort: 30932}}
{status}",
        if is_v6 { "IPv6" } else { "IPv4" },
    );
    if has_gateway {
        let entry = match kind {
            "LoadBalancer" => vip(is_v6, 120),
            _ => address,
        };
        return gateway(dice, text, &entry, services);
    }
    for number in 0..1 + dice.below(2) {
        let service = &services[dice.below(services.len())];
        let port = if dice.once_in(6) { 9999 } else { service.ports };
        let tls = dice.one_of(&["", "tls: [{hosts: [a.example.com]}], "]);
        let upstream =
            dice.one_of(&["", "", "nginx.ingress.kubernetes.io/service-upstream: \"true\""]);
        let entry = match kind {
            "LoadBalancer" => vip(is_v6, 120),
            _ => address.clone(),
        };
        let _ = writeln!(
            text,
            "---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: inner-{number}, namespace: shop, annotations: {{{upstream}}}}}
spec: {{ingressClassName: edge, {tls}rules: [{{host: a.example.com, http: {{paths: [{{path: /{number}, pathType: Prefix, backend: {{service: {{name: {}, port: {{number: {port}}}}}}}}}]}}}}]}}
status: {{loadBalancer: {{ingress: [{{ip: {entry}}}]}}}}",
            service.name
        );
    }
}

/// Routes of connections that may be attached to a Gateway.
fn routes_of_connections(dice: &mut Dice, text: &mut String, services: &[Service]) {
    for number in 0..dice.below(3) {
        let kind = dice.one_of(&["TCPRoute", "TLSRoute"]);
        let hosts = match kind {
            "TLSRoute" => dice.one_of(&[
                "",
                "hostnames: [b.example.com], ",
                "hostnames: [\"*.example.com\"], ",
            ]),
            _ => "",
        };
        let mut backends = Vec::new();
        for _ in 0..dice.below(3) {
            let service = &services[dice.below(services.len())];
            let port = if dice.once_in(6) { 9999 } else { service.ports };
            let weight = dice.one_of(&[1, 1, 3, 0]);
            backends.push(format!("{{name: {}, port: {port}, weight: {weight}}}", service.name));
        }
        let age = match dice.below(3) {
            0 => String::new(),
            day => format!(", creationTimestamp: \"2026-01-0{day}T00:00:00Z\""),
        };
        let _ = writeln!(
            text,
            "---
apiVersion: gateway.networking.k8s.io/v1alpha2
kind: {kind}
metadata: {{name: passed-{number}, namespace: shop{age}}}
spec: {{parentRefs: [{{name: edge}}], {hosts}rules: [{{backendRefs: [{}]}}]}}",
            backends.join(", ")
        );
    }
}

/// A Gateway at an address, and the routes that are attached to it.
fn gateway(dice: &mut Dice, text: &mut String, address: &str, services: &[Service]) {
    let mode = dice.one_of(&["Passthrough", "Passthrough", "Terminate"]);
    let of_names = |port: u16| {
        format!(
            "{{name: names, protocol: TLS, port: {port}, hostname: b.example.com, tls: {{mode: {mode}}}}}"
        )
    };
    // Beside a listener for requests, or instead of the one for all connections.
    let (named, connections) = if dice.once_in(2) {
        (of_names(443), "{name: db, protocol: TCP, port: 5432}")
    } else {
        (of_names(5432), "{name: db, protocol: TCP, port: 5999}")
    };
    let _ = writeln!(
        text,
        "---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {{name: edge}}
spec: {{controllerName: gateway.envoyproxy.io/gatewayclass-controller}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: edge, namespace: shop}}
spec:
  gatewayClassName: edge
  listeners:
  - {{name: http, protocol: HTTP, port: 80}}
  - {{name: https, protocol: HTTPS, port: 443, hostname: \"*.example.com\"}}
  - {named}
  - {connections}
status: {{addresses: [{{value: {address}}}]}}"
    );
    routes_of_connections(dice, text, services);
    for number in 0..1 + dice.below(2) {
        let section = dice.one_of(&["", ", sectionName: http", ", sectionName: https"]);
        let hosts =
            dice.one_of(&["", "hostnames: [a.example.com], ", "hostnames: [\"*.example.com\"], "]);
        let mut backends = Vec::new();
        for _ in 0..dice.below(4) {
            let service = &services[dice.below(services.len())];
            let port = if dice.once_in(6) { 9999 } else { service.ports };
            let weight = dice.one_of(&[1, 1, 3, 0]);
            backends.push(format!("{{name: {}, port: {port}, weight: {weight}}}", service.name));
        }
        let filters = match dice.below(5) {
            0 => "filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}], ",
            _ => "",
        };
        let kind = dice.one_of(&["PathPrefix", "PathPrefix", "Exact"]);
        let _ = writeln!(
            text,
            "---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: inner-{number}, namespace: shop}}
spec: {{parentRefs: [{{name: edge{section}}}], {hosts}rules: [{{matches: [{{path: {{type: {kind}, value: /{number}}}}}], {filters}backendRefs: [{}]}}]}}",
            backends.join(", ")
        );
    }
}

fn facts(
    dice: &mut Dice,
    (nodes, services): (usize, usize),
    families: Families,
    network: &Network,
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
        let mut fields = vec![format!("rpFilter: {rp_filter}")];
        if rare_groups && dice.once_in(2) {
            fields.push("securityGroups: [sg]".to_owned());
        }
        if rare && dice.once_in(4) {
            fields.push(format!("unprogrammed: [shop/s{}]", dice.below(services)));
        }
        if rare && dice.once_in(8) {
            fields.push("forwarding: false".to_owned());
        }
        if rare && dice.once_in(8) {
            fields.push("bridgeRules: false".to_owned());
        }
        if rare && dice.once_in(8) {
            fields.push("podRoutes: false".to_owned());
        }
        if rare && dice.once_in(8) {
            fields.push("publicBandwidth: false".to_owned());
        }
        if rare && dice.once_in(10) {
            let who = 10 + 1 + dice.below(nodes);
            fields.push(format!(
                "iptables: \"*filter\\n-A FORWARD -s 10.0.0.{who} -j DROP\\n-A INPUT -s 10.1.{}.0/24 -p tcp -j REJECT\\n-A FORWARD -d 10.1.{}.0/24 -p tcp -j REJECT --reject-with {}\\n{}COMMIT\\n\"",
                1 + dice.below(nodes),
                1 + dice.below(nodes),
                if dice.once_in(2) { "tcp-reset" } else { "icmp-port-unreachable" },
                // What stops a refusal on its way.
                dice.one_of(&[
                    "",
                    "",
                    "-A OUTPUT -m conntrack --ctstate RELATED -j DROP\\n",
                    "-A FORWARD -m conntrack --ctstate RELATED -j DROP\\n",
                    "-A INPUT -p tcp -j REJECT --reject-with tcp-reset\\n",
                    "-A OUTPUT -p icmp -s 10.0.0.11 -j DROP\\n",
                    "-A FORWARD -p icmp -s 10.0.0.12 -j DROP\\n",
                    "-A INPUT -p icmp -j DROP\\n",
                ]),
            ));
        }
        own.push(format!("    n{node}: {{{}}}", fields.join(", ")));
    }
    let mut listeners = Vec::new();
    for ip in [100, 101, 102, 103] {
        if dice.once_in(3) {
            let vip = vip(families.pick(dice), ip);
            let snat = dice.once_in(2);
            let scheduler = dice.one_of(&["", "", "", ", scheduler: IP_HASH"]);
            let groups = if dice.once_in(4) { "securityGroups: [sg], " } else { "" };
            listeners.push(format!(
                "{{vip: {vip}, {groups}listeners: [{{port: 80, snat: {snat}{scheduler}}}]}}"
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
        match families {
            Families::V6 =>
                dice.one_of(&["all", "\"fd00::/64\"", "\"fd01:0:0:1::/64\"", "\"fd01::/48\""]),
            _ => dice.one_of(&["all", "10.0.0.0/16", "10.1.1.0/24", "10.1.0.0/16", "10.0.0.12/32"]),
        },
    );
    let nets = |v4: &str, v6: &str| {
        families.all(|is_v6| if is_v6 { format!("\"{v6}\"") } else { v4.to_owned() }).join(", ")
    };
    format!(
        "apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  provider: tke
  kubeProxy: {{mode: {mode}, version: {version}, variant: {variant}}}
  network: {{{network}, podCIDRs: [{}], vpcCIDRs: [{}], serviceCIDRs: [{}]}}
  loadBalancers: [{}]
{groups}
  nodes:
{}
",
        nets("10.1.0.0/16", "fd01::/48"),
        nets("10.0.0.0/16", "fd00::/64"),
        nets("172.16.0.0/16", "fd02::/112"),
        listeners.join(", "),
        own.join("\n")
    )
}

fn pod_net(v6: bool, node: usize) -> String {
    if v6 { format!("\"fd01:0:0:{node}::/64\"") } else { format!("10.1.{node}.0/24") }
}

fn pod(
    text: &mut String,
    families: Families,
    name: &str,
    (node, host, in_host): (usize, usize, bool),
    ports: &[u16],
) {
    let ports: Vec<String> =
        ports.iter().map(|port| format!("{{containerPort: {port}}}")).collect();
    let ips = families.all(|v6| if in_host { node_ip(v6, node) } else { pod_ip(v6, node, host) });
    let all: Vec<String> = ips.iter().map(|ip| format!("{{ip: {ip}}}")).collect();
    let _ = writeln!(
        text,
        "---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: shop}}
spec: {{nodeName: n{node}, hostNetwork: {in_host}, containers: [{{name: c, image: c, ports: [{}]}}]}}
status: {{phase: Running, podIP: {}, podIPs: [{}], conditions: [{{type: Ready, status: \"True\"}}]}}",
        ports.join(", "),
        ips[0],
        all.join(", ")
    );
}

fn service(
    dice: &mut Dice,
    text: &mut String,
    families: Families,
    number: usize,
    nodes: usize,
) -> Service {
    let name = format!("s{number}");
    let is_v6 = families.pick(dice);
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
    let vip = match dice.below(4) {
        0 => public(is_v6, 7),
        more => vip(is_v6, 100 + more),
    };
    let mode = dice.one_of(&["VIP", "VIP", "Proxy"]);
    let node_port = if dice.once_in(15) { 30080 } else { 30081 + number };
    let mut spec = vec![
        format!("type: {kind}"),
        format!("clusterIP: {}", service_ip(is_v6, number)),
        format!("ipFamilies: [{}]", if is_v6 { "IPv6" } else { "IPv4" }),
        format!("internalTrafficPolicy: {internal}"),
    ];
    let outside = kind != "ClusterIP";
    let external = dice.once_in(6).then(|| self::vip(is_v6, dice.one_of(&[200, 101, 12])));
    if outside || external.is_some() {
        spec.push(format!("externalTrafficPolicy: {policy}"));
    }
    if let Some(ip) = external {
        spec.push(format!("externalIPs: [{ip}]"));
    }
    if kind == "LoadBalancer" && dice.once_in(5) {
        let range = if is_v6 {
            dice.one_of(&["\"fd01:0:0:1::/64\"", "\"fd00::/64\"", "\"fd01::/48\""])
        } else {
            dice.one_of(&["10.1.1.0/24", "10.0.0.0/24", "10.1.0.0/16"])
        };
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
    endpoints(dice, text, (families, is_v6), (number, nodes), (target, protocol), hints);
    Service { name, ports: port, is_v6 }
}

fn endpoints(
    dice: &mut Dice,
    text: &mut String,
    (families, is_v6): (Families, bool),
    (number, nodes): (usize, usize),
    (target, protocol): (u16, &str),
    hints: bool,
) {
    let mut lines = Vec::new();
    let in_host = dice.once_in(8);
    // Now and then there are many, and now and then all of them listen elsewhere.
    let many = dice.below(2 * nodes + 2);
    let is_wrong = dice.once_in(12);
    let mut taken = vec![0; nodes + 1];
    for endpoint in 0..many {
        let node = 1 + dice.below(nodes);
        if in_host && taken[node] > 0 {
            continue;
        }
        let host = 10 + 10 * number + taken[node];
        taken[node] += 1;
        let name = format!("s{number}-{endpoint}");
        let listens = if is_wrong || dice.once_in(12) { vec![9] } else { vec![8080] };
        let is_there = !dice.once_in(20);
        if is_there {
            pod(text, families, &name, (node, host, in_host), &listens);
        }
        let ip = match in_host {
            true => node_ip(is_v6, node),
            false if dice.once_in(40) => pod_ip(is_v6, 99, 9),
            false => pod_ip(is_v6, node, host),
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
        let hint = if hints && !dice.once_in(10) {
            format!(", hints: {{forZones: [{{name: {}}}]}}", dice.one_of(&["a", "a", "b"]))
        } else {
            String::new()
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
addressType: {}
ports: [{{name: p, port: {target}, protocol: {protocol}}}]
{lines}",
        if is_v6 { "IPv6" } else { "IPv4" }
    );
}

/// What is set on an Ingress's listener.
fn config(dice: &mut Dice, text: &mut String, number: usize) {
    let keepalive = dice.below(2);
    let check = dice.one_of(&[
        "{enable: false}",
        "{enable: false}",
        "{enable: true, sourceIpType: 0}",
        "{enable: true, sourceIpType: 1}",
    ]);
    let _ = writeln!(
        text,
        "---
apiVersion: cloud.tencent.com/v1alpha1
kind: TkeServiceConfig
metadata: {{name: i{number}-auto-ingress-config, namespace: shop}}
spec:
  loadBalancer:
    l7Listeners:
    - {{protocol: HTTP, port: 80, keepaliveEnable: {keepalive}, domains: [{{domain: \"*\", rules: [{{url: /, forwardType: HTTP, healthCheck: {check}}}]}}]}}"
    );
}

fn ingress(
    dice: &mut Dice,
    text: &mut String,
    families: Families,
    number: usize,
    services: &[Service],
) {
    // Mostly of the family of a Service that it is for.
    let is_v6 = if dice.once_in(6) {
        families.pick(dice)
    } else {
        services[dice.below(services.len())].is_v6
    };
    let vip = match dice.below(3) {
        0 => public(is_v6, 8),
        more => vip(is_v6, 99 + more),
    };
    let mut notes = Vec::new();
    if dice.once_in(2) {
        notes.push("kubernetes.io/ingress.subnetId: subnet");
    }
    if dice.once_in(5) {
        notes.push("ingress.cloud.tencent.com/direct-access: \"true\"");
    }
    if dice.once_in(2) {
        notes.push("ingress.cloud.tencent.com/tke-service-config-auto: \"true\"");
        config(dice, text, number);
    }
    let mut rules = Vec::new();
    for host in 0..=dice.below(2) {
        let service = &services[dice.below(services.len())];
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
            service.name, service.ports, other.name, other.ports
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
