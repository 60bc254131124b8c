//! What releases of kube-proxy do with a call of a load balancer's address that the node serves
//! itself, under policy Local and without an endpoint on the client's node.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use uturn_model::{Flow, Mechanism, Protocol};
use uturn_path::Engine;
use uturn_snapshot::Source;

const CLUSTER: &str = r#"
apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {podCIDR: 10.1.1.0/24}
status: {addresses: [{type: InternalIP, address: 10.0.0.11}]}
---
apiVersion: v1
kind: Node
metadata: {name: n2}
spec: {podCIDR: 10.1.2.0/24}
status: {addresses: [{type: InternalIP, address: 10.0.0.12}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}}
spec: {nodeName: n2, containers: [{name: web, image: web, ports: [{containerPort: 8080}]}]}
status:
  phase: Running
  podIP: 10.1.2.10
  conditions: [{type: Ready, status: "True"}]
---
apiVersion: v1
kind: Pod
metadata: {name: client, namespace: shop}
spec: {nodeName: n1, containers: [{name: client, image: client}]}
status: {phase: Running, podIP: 10.1.1.20, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  type: LoadBalancer
  externalTrafficPolicy: Local
  clusterIP: 172.16.0.10
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080, nodePort: 30080}]
status: {loadBalancer: {ingress: [{ip: 203.0.113.10}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: starting, namespace: shop, labels: {app: starting}}
spec: {nodeName: n2, containers: [{name: web, image: web, ports: [{containerPort: 8080}]}]}
status:
  phase: Running
  podIP: 10.1.2.11
  conditions: [{type: Ready, status: "False"}]
---
apiVersion: v1
kind: Service
metadata: {name: empty, namespace: shop}
spec:
  type: LoadBalancer
  clusterIP: 172.16.0.11
  selector: {app: starting}
  ports: [{port: 80, targetPort: 8080, nodePort: 30081}]
status: {loadBalancer: {ingress: [{ip: 203.0.113.11}]}}
"#;

/// A release in a mode, and what becomes of the calls of a pod that kube-proxy recognises, of
/// one that it does not, and of the node itself. `leaves`: the packet goes to the load balancer.
type Row = (&'static str, &'static str, [&'static str; 3]);

const WORKS: &str = "answered at once";
const HANGS: &str = "hangs";
const REFUSED: &str = "refused";
const LEAVES: &str = "leaves";

/// A marked packet is dropped on its way in or out of the node (kubelet's KUBE-FIREWALL is in INPUT
/// and OUTPUT), not if it is forwarded, as a pod's is: before v1.25 it goes to the load balancer.
const POLICY_LOCAL: [Row; 19] = [
    ("iptables", "v1.9.11", [WORKS, LEAVES, HANGS]),
    ("iptables", "v1.14.10", [WORKS, LEAVES, HANGS]),
    ("iptables", "v1.15.0", [WORKS, LEAVES, WORKS]),
    ("iptables", "v1.22.17", [WORKS, LEAVES, WORKS]),
    ("iptables", "v1.24.17", [WORKS, LEAVES, WORKS]),
    ("iptables", "v1.25.0", [WORKS, HANGS, WORKS]),
    ("iptables", "v1.34.4", [WORKS, HANGS, WORKS]),
    // Until v1.33.5 the node's own packets meet the filter before they are translated.
    ("nftables", "v1.31.14", [WORKS, HANGS, HANGS]),
    ("nftables", "v1.33.5", [WORKS, HANGS, HANGS]),
    ("nftables", "v1.33.13", [WORKS, HANGS, WORKS]),
    ("nftables", "v1.36.3", [WORKS, HANGS, WORKS]),
    // Addresses are not bound; IPVS sees what the node itself sends none the less.
    ("ipvs", "v1.9.11", [LEAVES, LEAVES, REFUSED]),
    ("ipvs", "v1.10.13", [LEAVES, LEAVES, REFUSED]),
    // All endpoints, as long as there is no session affinity.
    ("ipvs", "v1.11.10", [WORKS, WORKS, HANGS]),
    ("ipvs", "v1.13.12", [WORKS, WORKS, HANGS]),
    ("ipvs", "v1.14.10", [REFUSED, REFUSED, REFUSED]),
    ("ipvs", "v1.23.17", [REFUSED, REFUSED, REFUSED]),
    ("ipvs", "v1.24.0", [WORKS, WORKS, HANGS]),
    ("ipvs", "v1.34.4", [WORKS, WORKS, HANGS]),
];

#[test]
fn policy_local_without_an_endpoint_on_the_clients_node() {
    for (mode, version, expected) in POLICY_LOCAL {
        let [known, unknown] = ["clusterCIDR: 10.1.0.0/16", ""].map(|detects| {
            let cluster = (mode, version, detects);
            ["pod/shop/client", "node/n1"].map(|from| outcome(cluster, from, "203.0.113.10:80"))
        });
        let [pod, node] = known;
        let [other_pod, same_node] = unknown;
        assert_eq!([&*pod, &*other_pod, &*node], expected, "{mode} {version}");
        assert_eq!(node, same_node, "{mode} {version}");
    }
}

#[test]
fn services_without_endpoints() {
    let expected = [
        // To the cluster IP from a pod and the node, and to the load balancer's address.
        ("v1.9.11", [HANGS, REFUSED, LEAVES, HANGS]),
        ("v1.12.10", [HANGS, REFUSED, LEAVES, LEAVES]),
        ("v1.13.12", [REFUSED, REFUSED, REFUSED, REFUSED]),
        ("v1.19.16", [REFUSED, REFUSED, REFUSED, REFUSED]),
        ("v1.20.15", [REFUSED, REFUSED, REFUSED, LEAVES]),
        ("v1.34.4", [REFUSED, REFUSED, REFUSED, LEAVES]),
    ];
    for (version, expected) in expected {
        let cluster = ("iptables", version, "clusterCIDR: 10.1.0.0/16");
        let found = ["172.16.0.11:80", "203.0.113.11:80"]
            .map(|to| ["pod/shop/client", "node/n1"].map(|from| outcome(cluster, from, to)));
        assert_eq!(found.concat(), expected, "{version}");
    }
}

#[test]
fn the_ip_mode_counts_since_its_gate() {
    let by_proxy = |version: &str, settings: &str| {
        let text = CLUSTER.replace("ip: 203.0.113.10", "ip: 203.0.113.10, ipMode: Proxy");
        outcome_in(&text, ("iptables", version, settings), "pod/shop/client", "203.0.113.10:80")
    };
    let detects = "clusterCIDR: 10.1.0.0/16";
    let with = |gate: &str| format!("{detects}\n    featureGates: {{LoadBalancerIPMode: {gate}}}");
    assert_eq!(by_proxy("v1.28.0", &with("true")), WORKS);
    assert_eq!(by_proxy("v1.29.0", detects), WORKS);
    assert_eq!(by_proxy("v1.29.0", &with("true")), LEAVES);
    assert_eq!(by_proxy("v1.30.0", detects), LEAVES);
    assert_eq!(by_proxy("v1.31.0", &with("false")), WORKS);
    assert_eq!(by_proxy("v1.32.0", &with("false")), LEAVES);
}

fn outcome(cluster: (&str, &str, &str), from: &str, to: &str) -> String {
    outcome_in(CLUSTER, cluster, from, to)
}

fn outcome_in(
    objects: &str,
    (mode, version, settings): (&str, &str, &str),
    from: &str,
    to: &str,
) -> String {
    let text = format!(
        "{objects}---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  provider: none
  network: {{mode: global-router, serviceCIDRs: [172.16.0.0/16]}}
  kubeProxy: {{version: {version}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: kube-proxy, namespace: kube-system}}
data:
  config.conf: |
    kind: KubeProxyConfiguration
    apiVersion: kubeproxy.config.k8s.io/v1alpha1
    mode: {mode}
    {settings}
"
    );
    let source = Source { name: "cluster.yaml".into(), text };
    let cluster = uturn_snapshot::read(vec![source]).unwrap().cluster;
    let engine = Engine::new(&cluster).unwrap();
    let flow =
        Flow { from: from.parse().unwrap(), to: to.parse().unwrap(), protocol: Protocol::Tcp };
    let verdicts = engine.cases(&flow).unwrap();
    let words = verdicts.iter().map(|verdict| {
        // No load balancer is known here: what becomes of a packet that is sent to it is not judged.
        if verdict.mechanisms.contains(&Mechanism::NotModelled) {
            return LEAVES.to_owned();
        }
        let all: Vec<String> =
            verdict.outcomes.iter().map(|(outcome, _)| outcome.to_string()).collect();
        all.join(", ")
    });
    words.collect::<Vec<_>>().join("; ")
}

/// Probes that come with the load balancer's own address ask a port that no Service lists. From 1.26.0
/// on IPVS mode refuses these at bound addresses; fixed releases spare the port.
#[test]
fn probes_at_bound_addresses_die_in_some_releases() {
    let alive = |mode: &str, version: &str| {
        let mut text = CLUSTER.replace(
            "externalTrafficPolicy: Local\n",
            "externalTrafficPolicy: Local\n  healthCheckNodePort: 32000\n",
        );
        for node in 1..=2 {
            let id = format!("0/24, providerID: gce://project/zone-a/n{node}}}");
            let spec = format!("spec: {{podCIDR: 10.1.{node}.");
            text = text.replace(&format!("{spec}0/24}}"), &(spec + &id));
        }
        let facts = format!(
            "---\napiVersion: uturn.dev/v1alpha1\nkind: Facts\nspec: {{kubeProxy: {{mode: {mode}, version: {version}}}}}\n"
        );
        let source = Source { name: "cluster.yaml".into(), text: text + &facts };
        let cluster = uturn_snapshot::read(vec![source]).unwrap().cluster;
        let engine = Engine::new(&cluster).unwrap();
        let listener = "203.0.113.10:80".parse().unwrap();
        let health = engine.health(listener, Protocol::Tcp).unwrap().unwrap();
        health.iter().map(|target| (target.alive, target.mechanisms.clone())).collect::<Vec<_>>()
    };
    let right = vec![(false, vec![Mechanism::NoEndpoint]), (true, vec![])];
    let dead = vec![(false, vec![Mechanism::Firewall]); 2];
    for version in ["v1.26.0", "v1.26.4", "v1.27.0", "v1.27.1"] {
        assert_eq!(alive("ipvs", version), dead, "{version}");
        assert_eq!(alive("iptables", version), right, "{version}");
    }
    for version in ["v1.25.9", "v1.26.5", "v1.27.2", "v1.28.0", "v1.34.0"] {
        assert_eq!(alive("ipvs", version), right, "{version}");
    }
}

/// Up to v1.17 kube-proxy opens the sockets that hold node ports for both families, and has rules for
/// one.
#[test]
fn a_node_port_called_by_the_other_family() {
    let of = |version: &str, to: &str| {
        let facts = format!(
            "---\napiVersion: uturn.dev/v1alpha1\nkind: Facts\nspec:\n  provider: none\n  \
             kubeProxy: {{mode: iptables, version: {version}, variant: upstream}}\n  \
             nodes: {{n2: {{localAddresses: ['2001:db8:1::5']}}}}\n"
        );
        let source = Source { name: "cluster.yaml".into(), text: CLUSTER.to_owned() + &facts };
        let cluster = uturn_snapshot::read(vec![source]).unwrap().cluster;
        let (from, protocol) = ("outside".parse().unwrap(), Protocol::Tcp);
        let flow = Flow { from, to: to.parse().unwrap(), protocol };
        Engine::new(&cluster).unwrap().verdict(&flow).unwrap().outcomes[0].0.to_string()
    };
    for (version, other) in [("v1.14.10", HANGS), ("v1.17.17", HANGS), ("v1.18.0", REFUSED)] {
        assert_eq!(of(version, "[2001:db8:1::5]:30080"), other, "{version}");
        assert_eq!(of(version, "[2001:db8:1::5]:30099"), REFUSED, "{version}");
        assert_eq!(of(version, "10.0.0.12:30080"), WORKS, "{version}");
    }
}
