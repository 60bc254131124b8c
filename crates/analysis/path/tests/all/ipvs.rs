//! kube-proxy in IPVS mode: upstream's and TKE's, as the kernel was measured to do it.

use uturn_model::{Mechanism, Outcome, Share};
use uturn_path::Engine;
use uturn_snapshot::Source;
use uturn_snapshot::scenario::read_all;

/// What becomes of a flow to a LoadBalancer Service on 10.0.0.101, with a backend on the
/// last of so many nodes.
struct Service {
    nodes: usize,
    version: &'static str,
    variant: &'static str,
    policy: &'static str,
    prevent_loopback: bool,
    backends: &'static str,
}

impl Service {
    fn ends(&self, from: &str) -> (Vec<(Outcome, Share)>, Vec<Mechanism>, String) {
        let text = format!(
            "apiVersion: uturn.dev/v1alpha1
kind: Scenario
metadata: {{name: row}}
spec:
  shows: A row.
  nodes: [{nodes}]
  shape: {{network: global-router, backends: {backends}, clients: each}}
  facts: {{provider: tke, kubeProxy: {{mode: ipvs, version: {version}, variant: {variant}}}}}
  objects:
  - apiVersion: v1
    kind: Service
    metadata:
      name: web
      namespace: shop
      annotations:
        service.kubernetes.io/qcloud-loadbalancer-internal-subnetid: subnet
        service.cloud.tencent.com/prevent-loopback: \"{prevent_loopback}\"
    spec:
      type: LoadBalancer
      clusterIP: 172.16.0.10
      externalTrafficPolicy: {policy}
      selector: {{app: web}}
      ports: [{{port: 80, targetPort: http, nodePort: 30080}}]
    status: {{loadBalancer: {{ingress: [{{ip: 10.0.0.101}}]}}}}
  flows:
  - {{from: {from}, to: 10.0.0.101:80}}
",
            nodes = self.nodes,
            backends = self.backends,
            version = self.version,
            variant = self.variant,
            policy = self.policy,
            prevent_loopback = self.prevent_loopback,
        );
        let source = Source { name: "row.yaml".into(), text };
        let scenario = read_all(vec![source]).expect("a scenario").remove(0);
        let case = &scenario.cases[0];
        let engine = Engine::new(&case.cluster).expect("rules that can be walked");
        let verdict = engine.verdict(&case.flows[0].flow).expect("a verdict");
        let hops = format!("{:?}", verdict.routes[0].hops);
        (verdict.outcomes, verdict.mechanisms, hops)
    }
}

const TKE: Service = Service {
    nodes: 3,
    version: "v1.22.5-tke.12",
    variant: "tke",
    policy: "Cluster",
    prevent_loopback: false,
    backends: "each",
};

#[test]
fn policy_cluster_is_saved_by_the_load_balancer() {
    let (outcomes, _, hops) = TKE.ends("pod/shop/client-1");
    assert_eq!(outcomes, [(Outcome::AT_ONCE, Share::ALL)]);
    assert!(hops.contains("LoadBalancer"), "the address is not bound: the packet leaves");
    // With one node there is no other target.
    let (outcomes, mechanisms, _) = Service { nodes: 1, ..TKE }.ends("pod/shop/client-1");
    assert_eq!(outcomes, [(Outcome::Hangs, Share::ALL)]);
    assert_eq!(mechanisms, [Mechanism::NoCandidate]);
}

#[test]
fn policy_local_loops() {
    let local = Service { policy: "Local", ..TKE };
    let (outcomes, mechanisms, _) = local.ends("pod/shop/client-1");
    let hangs = outcomes.iter().find(|(outcome, _)| *outcome == Outcome::Hangs).expect("hangs");
    assert!(hangs.1.is_about(Share::of(1, 3)), "{outcomes:?}");
    assert_eq!(mechanisms, [Mechanism::AsymmetricReturn]);
    let (outcomes, ..) = Service { nodes: 1, ..local }.ends("pod/shop/client-1");
    assert_eq!(outcomes, [(Outcome::Hangs, Share::ALL)]);
}

#[test]
fn prevent_loopback_works_where_kube_proxy_knows_it() {
    let asked = Service { policy: "Local", prevent_loopback: true, ..TKE };
    let (outcomes, _, hops) =
        Service { version: "v1.22.5-tke.13", ..asked }.ends("pod/shop/client-1");
    assert_eq!(outcomes, [(Outcome::AT_ONCE, Share::ALL)]);
    assert!(!hops.contains("LoadBalancer"), "never leaves the node");
    let (outcomes, ..) = asked.ends("pod/shop/client-1");
    assert_ne!(outcomes, [(Outcome::AT_ONCE, Share::ALL)], "one build too old");
}

#[test]
fn upstream_binds_and_never_leaves() {
    for policy in ["Cluster", "Local"] {
        let upstream = Service { version: "v1.30.0", variant: "upstream", policy, ..TKE };
        let (outcomes, _, hops) = upstream.ends("pod/shop/client-1");
        assert_eq!(outcomes, [(Outcome::AT_ONCE, Share::ALL)], "{policy}");
        assert!(!hops.contains("LoadBalancer"), "{policy}");
    }
}

#[test]
fn a_client_that_is_its_own_backend_is_masqueraded() {
    let upstream = Service { version: "v1.30.0", variant: "upstream", nodes: 1, ..TKE };
    let (outcomes, _, hops) = upstream.ends("pod/shop/web-1");
    assert_eq!(outcomes, [(Outcome::AT_ONCE, Share::ALL)]);
    assert!(hops.contains("MASQUERADE"), "{hops}");
}

#[test]
fn a_host_is_scheduled_bound_or_not() {
    let (outcomes, _, hops) = TKE.ends("node/n1");
    assert_eq!(outcomes, [(Outcome::AT_ONCE, Share::ALL)]);
    assert!(!hops.contains("LoadBalancer"), "IPVS serves the node's own packets");
}

#[test]
fn a_host_calls_a_bound_address_from_that_very_address() {
    // Policy Local and no endpoint on the client's node: nothing masquerades, so the
    // endpoint answers to the address itself, that is to the load balancer.
    let upstream = Service {
        version: "v1.30.0",
        variant: "upstream",
        policy: "Local",
        backends: "last",
        ..TKE
    };
    let (outcomes, ..) = upstream.ends("node/n1");
    assert_eq!(outcomes, [(Outcome::Hangs, Share::ALL)]);
    let (outcomes, ..) = Service { policy: "Cluster", ..upstream }.ends("node/n1");
    assert_eq!(outcomes, [(Outcome::AT_ONCE, Share::ALL)]);
}
