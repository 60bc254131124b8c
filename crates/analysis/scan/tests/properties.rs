//! What holds for every cluster.

use proptest::prelude::*;
use uturn_model::route::{Direction, StepKind};
use uturn_model::{Client, Cluster, Flow, Hop, Outcome, Place, Route, Share, Step};
use uturn_path::Engine;
use uturn_scan::Scanner;
use uturn_snapshot::{Source, read};

/// A small cluster: some nodes, a client on each, backends on some of them, a Service of
/// type LoadBalancer and an Ingress before it.
#[derive(Clone, Debug)]
struct Shape {
    nodes: usize,
    backends: Vec<bool>,
    ready: bool,
    local: bool,
    ip_mode: &'static str,
    snat: bool,
    rp_filter: u8,
    direct: bool,
    mode: &'static str,
}

fn shape() -> impl Strategy<Value = Shape> {
    (
        1usize..5,
        prop::collection::vec(any::<bool>(), 5),
        prop::bool::weighted(0.9),
        any::<bool>(),
        prop::sample::select(vec!["VIP", "Proxy"]),
        any::<bool>(),
        0u8..3,
        any::<bool>(),
        prop::sample::select(vec!["iptables", "nftables"]),
    )
        .prop_map(|(nodes, backends, ready, local, ip_mode, snat, rp_filter, direct, mode)| {
            Shape { nodes, backends, ready, local, ip_mode, snat, rp_filter, direct, mode }
        })
}

fn cluster(shape: &Shape) -> Cluster {
    let policy = if shape.local { "Local" } else { "Cluster" };
    let direct = if shape.direct { "\"true\"" } else { "\"false\"" };
    let mut text = format!(
        "apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  provider: tke
  kubeProxy: {{mode: {mode}, version: v1.34.4}}
  network: {{mode: global-router, podCIDRs: [10.1.0.0/16], vpcCIDRs: [10.0.0.0/16], serviceCIDRs: [172.16.0.0/16]}}
  nodes: {{{facts}}}
  loadBalancers: [{{vip: 10.0.0.100, listeners: [{{port: 80, protocol: HTTP, snat: {snat}}}]}}]
---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: shop, annotations: {{service.cloud.tencent.com/direct-access: {direct}}}}}
spec:
  type: LoadBalancer
  clusterIP: 172.16.0.10
  externalTrafficPolicy: {policy}
  selector: {{app: web}}
  ports: [{{port: 80, targetPort: 8080, nodePort: 30080}}]
status: {{loadBalancer: {{ingress: [{{ip: 10.0.0.101, ipMode: {ip_mode}}}]}}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: web, namespace: shop}}
spec: {{rules: [{{http: {{paths: [{{path: /, pathType: Prefix, backend: {{service: {{name: web, port: {{number: 80}}}}}}}}]}}}}]}}
status: {{loadBalancer: {{ingress: [{{ip: 10.0.0.100}}]}}}}
",
        facts = (1..=shape.nodes)
            .map(|i| format!("n{i}: {{rpFilter: {}}}", shape.rp_filter))
            .collect::<Vec<_>>()
            .join(", "),
        snat = shape.snat,
        ip_mode = shape.ip_mode,
        mode = shape.mode,
    );
    for i in 1..=shape.nodes {
        text.push_str(&format!(
            "---
apiVersion: v1
kind: Node
metadata: {{name: n{i}}}
spec: {{podCIDR: 10.1.{i}.0/24}}
status: {{addresses: [{{type: InternalIP, address: 10.0.0.{}}}]}}
",
            10 + i
        ));
        text.push_str(&pod(&format!("client-{i}"), "client", i, 10, true));
        if shape.backends[i] {
            text.push_str(&pod(&format!("web-{i}"), "web", i, 20, shape.ready));
        }
    }
    let source = Source { name: "random.yaml".into(), text };
    read(vec![source]).unwrap_or_else(|faults| panic!("{faults:?}")).cluster
}

fn pod(name: &str, app: &str, node: usize, host: usize, ready: bool) -> String {
    format!(
        "---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: shop, labels: {{app: {app}}}}}
spec: {{nodeName: n{node}, containers: [{{name: c, image: c, ports: [{{containerPort: 8080}}]}}]}}
status: {{phase: Running, podIP: 10.1.{node}.{host}, conditions: [{{type: Ready, status: \"{}\"}}]}}
",
        if ready { "True" } else { "False" }
    )
}

/// Two steps of pods and nodes of which the second does not begin with the packet that the first leaves.
fn gap(route: &Route) -> Option<(&Step, &Step)> {
    let steps = route.hops.iter().flat_map(|hop| hop.steps.iter().map(move |step| (hop, step)));
    let all: Vec<(&Hop, &Step)> = steps.collect();
    let pair = all.windows(2).find(|pair| {
        let [(sent, first), (met, next)] = pair else { return false };
        let are_of_cluster =
            [sent, met].iter().all(|hop| matches!(hop.place, Place::Node(_) | Place::Pod(_)));
        let (left, begun) = (first.after, next.before.or(next.after));
        are_of_cluster
            && sent.direction == met.direction
            && left.zip(begun).is_some_and(|(left, begun)| left != begun)
    });
    pair.map(|pair| (pair[0].1, pair[1].1))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn every_verdict_is_whole(shape in shape()) {
        let cluster = cluster(&shape);
        let engine = Engine::new(&cluster).unwrap();
        let every_way = Engine::new(&cluster).unwrap().with_every_way();
        let (scanner, every_way) = (Scanner::new(&engine), Scanner::new(&every_way));
        let targets = scanner.targets();
        prop_assert_eq!(targets.len(), 3, "cluster IP, load balancer, Ingress");
        let merged = scanner.scan(&targets).unwrap();
        let single = every_way.scan(&targets).unwrap();
        for (merged, single) in merged.iter().zip(&single) {
            let explained = scanner.explain(merged).unwrap();
            let verdict = &explained[0];
            let outcomes = verdict.outcomes.iter().map(|(_, share)| *share);
            prop_assert!(Share::add_up_to_all(outcomes), "{:?}", verdict.outcomes);
            let routes = verdict.routes.iter().map(|route| route.share);
            prop_assert!(Share::add_up_to_all(routes), "{:?}", verdict.routes);
            for route in &verdict.routes {
                prop_assert_eq!(
                    route.mechanisms.is_empty(),
                    route.outcome == Outcome::AT_ONCE,
                    "what is not fine has a reason: {:?}", route.outcome
                );
                let steps = || route.hops.iter().flat_map(|hop| &hop.steps);
                for step in steps() {
                    prop_assert!(!step.by.rule().is_empty() && !step.by.origin().to_string().is_empty());
                }
                if route.outcome.is_answered() {
                    prop_assert!(route.hops.iter().any(|hop| hop.direction == Direction::Back));
                    prop_assert_eq!(steps().last().map(|step| step.kind), Some(StepKind::Deliver));
                }
            }
            // Merging ways that end alike changes nothing but their number.
            prop_assert_eq!(&verdict.mechanisms, &single.verdicts[0].mechanisms);
            for ((a, x), (b, y)) in verdict.outcomes.iter().zip(&single.verdicts[0].outcomes) {
                prop_assert_eq!(a, b);
                prop_assert!(x.is_rounded_from(*y));
            }
        }
    }

    #[test]
    fn each_step_begins_where_the_one_before_ended(shape in shape()) {
        let cluster = cluster(&shape);
        let engine = Engine::new(&cluster).unwrap().with_every_way();
        let targets = Scanner::new(&engine).targets();
        for (target, pod) in targets.iter().flat_map(|target| cluster.pods.keys().map(move |pod| (target, pod))) {
            let (from, to) = (Client::Pod(pod.clone()), target.to.clone());
            let flow = Flow { from, to, protocol: target.protocol };
            for route in &engine.verdict(&flow).unwrap().routes {
                let gap = gap(route);
                prop_assert!(gap.is_none(), "{flow:?}: nothing is shown between these two: {gap:#?}");
            }
        }
    }

    #[test]
    fn a_replaced_source_never_loops(shape in shape()) {
        let cluster = cluster(&Shape { snat: true, ..shape });
        let engine = Engine::new(&cluster).unwrap();
        let scanner = Scanner::new(&engine);
        let targets = scanner.targets();
        let ingress = targets.iter().filter(|target| target.object.kind == uturn_model::ObjectKind::Ingress);
        for met in scanner.scan(&ingress.cloned().collect::<Vec<_>>()).unwrap() {
            prop_assert!(
                !met.verdicts[0].mechanisms.contains(&uturn_model::Mechanism::AsymmetricReturn)
            );
        }
    }

    #[test]
    fn iptables_and_nftables_mode_do_the_same(shape in shape()) {
        let iptables = cluster(&Shape { mode: "iptables", ..shape.clone() });
        let nftables = cluster(&Shape { mode: "nftables", ..shape });
        let (iptables, nftables) = (Engine::new(&iptables).unwrap(), Engine::new(&nftables).unwrap());
        let (iptables, nftables) = (Scanner::new(&iptables), Scanner::new(&nftables));
        let iptables = iptables.scan(&iptables.targets()).unwrap();
        let nftables = nftables.scan(&nftables.targets()).unwrap();
        for (iptables, nftables) in iptables.iter().zip(&nftables) {
            let (iptables, nftables) = (&iptables.verdicts[0], &nftables.verdicts[0]);
            prop_assert_eq!(&iptables.mechanisms, &nftables.mechanisms);
            prop_assert_eq!(iptables.outcomes.len(), nftables.outcomes.len());
            for ((a, x), (b, y)) in iptables.outcomes.iter().zip(&nftables.outcomes) {
                prop_assert_eq!(a, b);
                prop_assert!(x.is_about(*y));
            }
        }
    }
}
