//! Commands over clusters that a small text describes and that multiply the work of a scan, a trace
//! or a cure.

use std::fmt::Write as _;

/// A family of commands.
#[derive(Clone, Copy, Debug)]
pub struct ClusterFamily {
    /// A description of the part that multiplies.
    pub name: &'static str,
    /// The command, whose file is `a.yaml`.
    pub command: &'static str,
    /// Whether the command has to do its work. Otherwise it may refuse its input.
    pub is_taken: bool,
    /// Returns the manifests with this number of levels.
    pub text: fn(usize) -> String,
}

impl ClusterFamily {
    /// Returns the command and its file as one input of the target `commands`.
    pub fn input(&self, levels: usize) -> String {
        let words = self.command.replace(' ', "\n");
        format!("=== arguments\n{words}\n=== a.yaml\n{}", (self.text)(levels))
    }
}

const fn taken(
    name: &'static str,
    command: &'static str,
    text: fn(usize) -> String,
) -> ClusterFamily {
    ClusterFamily { name, command, is_taken: true, text }
}

const fn may_be_refused(
    name: &'static str,
    command: &'static str,
    text: fn(usize) -> String,
) -> ClusterFamily {
    ClusterFamily { name, command, is_taken: false, text }
}

const SCAN: &str = "scan -o html -f a.yaml";
const TRACE: &str = "trace --from pod/d/client-1 --to 10.0.0.100:80 -f a.yaml";
const CURE: &str = "cure --from pod/d/client-1 --to 10.0.0.100:80 -f a.yaml";

/// All families.
pub const CLUSTERS: &[ClusterFamily] = &[
    taken("replicas behind a load balancer, scanned", SCAN, |levels| replicas(1, 60 * levels)),
    taken("replicas behind a load balancer, traced", TRACE, |levels| replicas(1, 60 * levels)),
    taken("replicas behind a load balancer, cured", CURE, |levels| replicas(1, 60 * levels)),
    taken("workloads behind a load balancer, scanned", SCAN, |levels| {
        replicas(levels.div_ceil(4), 40 * levels)
    }),
    taken("workloads behind a load balancer, traced", TRACE, |levels| {
        replicas(levels.div_ceil(8), 40 * levels)
    }),
    taken("endpoints on nodes", SCAN, |levels| endpoints(12 * levels, 80 * levels)),
    taken("rules that are not modelled", SCAN, |levels| {
        rules(2 * levels, "-m string --string x@ --algo bm -j DROP")
    }),
    taken("rules that choose", SCAN, |levels| {
        rules(2 * levels, "-m statistic --mode random --probability 0.5 -j RETURN")
    }),
    may_be_refused("DaemonSets on nodes", SCAN, |levels| {
        let mut text = small(60 * levels, 0);
        (0..60 * levels).for_each(|number| workload(&mut text, "DaemonSet", number, ""));
        text
    }),
    may_be_refused("replicas of StatefulSets", SCAN, |levels| {
        let mut text = small(3, 3);
        (0..8 * levels)
            .for_each(|number| workload(&mut text, "StatefulSet", number, "replicas: 100000, "));
        text
    }),
    may_be_refused("Services that select all pods", SCAN, |levels| {
        let mut text = small(3, 3);
        (0..levels)
            .for_each(|number| workload(&mut text, "Deployment", number, "replicas: 5000, "));
        (0..100 * levels).for_each(|number| service(&mut text, number, "", "{port: 80}"));
        text
    }),
    taken("ports of a Service", SCAN, |levels| ports(levels, "iptables", "ClusterIP")),
    taken("ports of a Service, bound", SCAN, |levels| ports(levels, "ipvs", "ClusterIP")),
    taken("ports of a load balancer", SCAN, |levels| ports(levels, "iptables", "LoadBalancer")),
    taken("Services at one address", SCAN, |levels| {
        let mut text = small(3, 3);
        for number in 0..12 * levels {
            let spec = "externalIPs: [10.0.200.1], ";
            service(&mut text, number, spec, &format!("{{port: {}}}", 1 + number));
        }
        text
    }),
    taken("paths of an Ingress", SCAN, |levels| {
        let path = |number| path(&format!("/p{number}"));
        let paths: Vec<String> = (0..30 * levels).map(path).collect();
        behind_ingress(&[format!("{{http: {{paths: [{}]}}}}", paths.join(", "))], &[])
    }),
    taken("hosts of an Ingress", SCAN, |levels| {
        let rule = |number| format!("{{host: h{number}.x.io, http: {{paths: [{}]}}}}", path("/"));
        behind_ingress(&(0..25 * levels).map(rule).collect::<Vec<_>>(), &[])
    }),
    taken("certificates of an Ingress", SCAN, |levels| {
        let rule = |number| format!("{{host: h{number}.x.io, http: {{paths: [{}]}}}}", path("/"));
        let tls = |number| format!("{{hosts: [h{number}.x.io], secretName: s}}");
        let all = || 0..20 * levels;
        behind_ingress(&all().map(rule).collect::<Vec<_>>(), &all().map(tls).collect::<Vec<_>>())
    }),
    taken("Ingresses at one address", SCAN, |levels| {
        let mut text = small(3, 3);
        service(&mut text, 0, "type: NodePort, ", "{port: 80, targetPort: 8080, nodePort: 30080}");
        for number in 0..15 * levels {
            let rule = format!("{{http: {{paths: [{}]}}}}", path(&format!("/p{number}")));
            ingress(&mut text, number, &[rule], &[]);
        }
        text
    }),
    may_be_refused("cases of a Scenario", SCAN, |levels| {
        let sizes: Vec<String> = (1..=8 * levels).map(|size| size.to_string()).collect();
        let mut objects = String::new();
        for number in 0..100 * levels {
            let _ = writeln!(
                objects,
                "  - {{apiVersion: v1, kind: Service, metadata: {{name: s{number}, namespace: d}}, spec: \
                 {{selector: {{app: a}}, ports: [{{port: 80}}]}}}}"
            );
        }
        format!(
            "apiVersion: uturn.dev/v1alpha1\nkind: Scenario\nmetadata: {{name: x}}\nspec:\n  shows: all\n  \
             nodes: [{}]\n  modes: [iptables, ipvs, nftables]\n  flows: [{{from: outside, to: \
             \"10.0.0.1:80\"}}]\n  objects:\n{objects}",
            sizes.join(", ")
        )
    }),
];

/// The Facts of the cluster, with `MODE` for kube-proxy's mode.
const FACTS: &str = include_str!("clusters/facts.yaml");

/// The annotation by which a Service requests a private load balancer.
const PRIVATE: &str = include_str!("clusters/private_balancer.yaml");

fn facts(mode: &str) -> String {
    FACTS.replace("MODE", mode)
}

/// Returns a cluster with these numbers of nodes and pods.
fn small(nodes: usize, pods: usize) -> String {
    with_objects(facts("iptables"), nodes, pods)
}

fn with_objects(mut text: String, nodes: usize, pods: usize) -> String {
    for node in 1..=nodes {
        let _ = writeln!(
            text,
            "---\n{{apiVersion: v1, kind: Node, metadata: {{name: n{node}}}, status: {{addresses: [{{type: \
             InternalIP, address: 10.0.{}.{}}}]}}}}",
            node / 250,
            node % 250 + 1
        );
    }
    for pod in 1..=pods {
        let _ = writeln!(
            text,
            "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: p{pod}, namespace: d, labels: {{app: a}}}}, \
             spec: {{nodeName: n{}, containers: [{{name: c, image: c, ports: [{{containerPort: 8080}}]}}]}}, \
             status: {{phase: Running, podIP: 10.64.{}.{}, conditions: [{{type: Ready, status: \
             'True'}}]}}}}",
            pod % nodes + 1,
            pod / 250,
            pod % 250 + 1
        );
    }
    text
}

fn workload(text: &mut String, kind: &str, number: usize, spec: &str) {
    let _ = writeln!(
        text,
        "---\n{{apiVersion: apps/v1, kind: {kind}, metadata: {{name: w{number}, namespace: d}}, spec: \
         {{{spec}selector: {{matchLabels: {{app: a}}}}, template: {{metadata: {{labels: {{app: a}}}}, spec: \
         {{containers: [{{name: c, image: c}}]}}}}}}}}"
    );
}

fn service(text: &mut String, number: usize, spec: &str, ports: &str) {
    let _ = writeln!(
        text,
        "---\n{{apiVersion: v1, kind: Service, metadata: {{name: s{number}, namespace: d}}, spec: {{{spec}\
         clusterIP: 172.16.{}.{}, selector: {{app: a}}, ports: [{ports}]}}}}",
        number / 250,
        number % 250 + 1
    );
}

fn ports(levels: usize, mode: &str, kind: &str) -> String {
    let mut text = with_objects(facts(mode), 3, 3);
    let port = |number: usize| format!("{{name: p{number}, port: {number}, targetPort: 8080}}");
    let ports: Vec<String> = (1..=50 * levels).map(port).collect();
    let status = match kind {
        "LoadBalancer" => ", status: {loadBalancer: {ingress: [{ip: 10.0.200.1}]}}",
        _ => "",
    };
    let _ = writeln!(
        text,
        "---\n{{apiVersion: v1, kind: Service, metadata: {{name: s, namespace: d, annotations: \
         {{{}}}}}, spec: {{type: {kind}, clusterIP: \
         172.16.0.1, selector: {{app: a}}, ports: [{}]}}{status}}}",
        PRIVATE.trim_end(),
        ports.join(", ")
    );
    text
}

fn path(path: &str) -> String {
    format!(
        "{{path: {path}, pathType: Prefix, backend: {{service: {{name: s0, port: {{number: 80}}}}}}}}"
    )
}

fn ingress(text: &mut String, number: usize, rules: &[String], tls: &[String]) {
    let _ = writeln!(
        text,
        "---\n{{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {{name: i{number}, namespace: d, \
         annotations: {{kubernetes.io/ingress.subnetId: s}}}}, spec: {{tls: [{}], rules: [{}]}}, status: \
         {{loadBalancer: {{ingress: [{{ip: 10.0.200.1}}]}}}}}}",
        tls.join(", "),
        rules.join(", ")
    );
}

fn behind_ingress(rules: &[String], tls: &[String]) -> String {
    let mut text = small(3, 3);
    service(&mut text, 0, "type: NodePort, ", "{port: 80, targetPort: 8080, nodePort: 30080}");
    ingress(&mut text, 0, rules, tls);
    text
}

/// Returns Deployments whose pods are behind one load balancer.
fn replicas(workloads: usize, replicas: usize) -> String {
    let mut text = format!(
        "{{apiVersion: v1, kind: Service, metadata: {{name: web, namespace: d, annotations: {{{}}}}}, spec: \
         {{type: LoadBalancer, externalTrafficPolicy: Local, selector: {{app: a}}, ports: [{{port: 80, \
         targetPort: 8080}}]}}}}\n---\n{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: client, \
         namespace: d}}, spec: {{selector: {{matchLabels: {{app: c}}}}, template: {{metadata: {{labels: \
         {{app: c}}}}, spec: {{containers: [{{name: c, image: c}}]}}}}}}}}\n",
        PRIVATE.trim_end()
    );
    let spec = format!("replicas: {replicas}, ");
    (0..workloads).for_each(|number| workload(&mut text, "Deployment", number, &spec));
    text
}

/// Returns a load balancer with endpoints that are spread over nodes, in slices.
fn endpoints(nodes: usize, endpoints: usize) -> String {
    let mut text = small(nodes, 3);
    let _ = writeln!(
        text,
        "---\n{{apiVersion: v1, kind: Service, metadata: {{name: s, namespace: d, annotations: \
         {{{}}}}}, spec: {{type: LoadBalancer, \
         externalTrafficPolicy: Local, clusterIP: 172.16.0.1, selector: {{app: b}}, ports: [{{port: 80, \
         nodePort: 30080}}]}}, status: {{loadBalancer: {{ingress: [{{ip: 10.0.200.1}}]}}}}}}",
        PRIVATE.trim_end()
    );
    let _ = writeln!(
        text,
        "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{name: s-1, namespace: d, labels: \
         {{kubernetes.io/service-name: s}}}}\naddressType: IPv4\nports: [{{port: 80, protocol: TCP}}]\nendpoints:"
    );
    for number in 0..endpoints {
        let (network, host) = (number / 250, number % 250 + 1);
        let node = number % nodes + 1;
        let _ = writeln!(
            text,
            "- {{addresses: [10.65.{network}.{host}], nodeName: n{node}, conditions: {{ready: true}}}}"
        );
    }
    text
}

/// Returns a node with rules in its firewall.
fn rules(many: usize, rule: &str) -> String {
    let mut text = facts("iptables");
    text.push_str(
        "  nodes:\n    n1:\n      iptables: |\n        *filter\n        :FORWARD ACCEPT [0:0]\n",
    );
    for number in 0..many {
        let _ = writeln!(text, "        -A FORWARD {}", rule.replace('@', &number.to_string()));
    }
    text.push_str("        COMMIT\n");
    let mut text = with_objects(text, 3, 3);
    (1..4).for_each(|number| service(&mut text, number, "", "{port: 80, targetPort: 8080}"));
    text
}
