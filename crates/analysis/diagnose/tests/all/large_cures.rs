//! Cures in a cluster of 500 nodes: their trials keep few kernels, and none is left untried.

use std::fmt::Write as _;

use uturn_diagnose::Code;
use uturn_diagnose::cure::{self, Case, TrialBase};
use uturn_model::{Flow, Protocol};
use uturn_path::Engine;
use uturn_scan::FewCalls;
use uturn_snapshot::{Manifests, Source};

const NODES: usize = 500;
const SERVICES: usize = 40;
/// The pods of each Service, on as many nodes.
const PODS: usize = 10;
/// Of so many Services, one has a private load balancer that loops.
const LOOPING: usize = 10;

/// All rules of all nodes have more entries than 500,000.
const MAX_ENTRIES: usize = 100_000;

/// A cluster whose load balancers have all nodes as targets, in IPVS mode: a client that calls one of
/// policy Local meets its own node, unless that has an endpoint.
fn cluster() -> String {
    let mut text = "apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  provider: tke
  kubeProxy: {mode: ipvs, version: v1.22.5-tke.13, variant: tke}
  network: {mode: global-router, podCIDRs: [10.64.0.0/12], vpcCIDRs: [10.0.0.0/12], serviceCIDRs: [172.16.0.0/16]}
"
    .to_owned();
    let mut pod = |name: String, app: String, node: usize, host: usize| {
        let (high, low) = (node / 250, node % 250);
        let _ = write!(
            text,
            "---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: shop, labels: {{app: {app}}}}}
spec: {{nodeName: n{node}, containers: [{{name: c, image: c, ports: [{{containerPort: 8080}}]}}]}}
status: {{phase: Running, podIP: 10.{}.{low}.{host}, conditions: [{{type: Ready, status: \"True\"}}]}}
",
            64 + high
        );
    };
    for node in 0..NODES {
        pod(format!("client-{node}"), "client".to_owned(), node, 10);
    }
    for service in 0..SERVICES {
        for turn in 0..PODS {
            let node = (7 * service + turn * NODES / PODS) % NODES;
            pod(format!("app-{service}-{turn}"), format!("app-{service}"), node, 20 + service);
        }
    }
    for node in 0..NODES {
        let (high, low) = (node / 250, node % 250);
        let _ = write!(
            text,
            "---
apiVersion: v1
kind: Node
metadata: {{name: n{node}}}
spec: {{podCIDR: 10.{}.{low}.0/24}}
status: {{addresses: [{{type: InternalIP, address: 10.0.{}.{}}}]}}
",
            64 + high,
            1 + high,
            1 + low
        );
    }
    for service in 0..SERVICES {
        let is_looping = service % LOOPING == 0;
        let policy = if is_looping { "Local" } else { "Cluster" };
        let _ = write!(
            text,
            "---
apiVersion: v1
kind: Service
metadata:
  name: app-{service}
  namespace: shop
  annotations:
    service.kubernetes.io/qcloud-loadbalancer-internal-subnetid: subnet-private
spec:
  type: LoadBalancer
  clusterIP: 172.16.0.{}
  externalTrafficPolicy: {policy}
  selector: {{app: app-{service}}}
  ports:
  - {{port: 80, targetPort: 8080, nodePort: {}}}
status: {{loadBalancer: {{ingress: [{{ip: 10.0.9.{}}}]}}}}
",
            10 + service,
            30_000 + service,
            10 + service
        );
    }
    text
}

#[test]
fn cures_in_a_large_cluster_keep_few_kernels_and_are_all_tried() {
    let source = Source { name: "large.yaml".into(), text: cluster() };
    let manifests = Manifests::of(vec![source]).complete_if(true);
    let cluster = manifests.cluster().unwrap();
    let engine = Engine::new(&cluster).unwrap();
    let base = TrialBase::new(&manifests, &engine);
    let (from, to) = ("pod/shop/client-0".parse().unwrap(), "10.0.9.10:80".parse().unwrap());
    let flow = Flow { from, to, protocol: Protocol::Tcp };
    let case = Case::flow(&manifests, &FewCalls::new(&engine), flow).unwrap();
    assert!(case.codes().contains(&Code::ServiceLoopback), "{:?}", case.before);
    let cures = cure::cures(&base, &case);
    assert!(cures.iter().all(|cure| !cure.is_untried), "{cures:#?}");
    assert!(cures.iter().filter(|cure| cure.is_offered()).count() > 1, "{cures:#?}");
    // The flow and its health checks are walked through a few nodes that represent all.
    let kernels = base.kernels();
    assert!(kernels.made < NODES / 10, "{kernels:?}");
    assert!(kernels.entries < MAX_ENTRIES, "{kernels:?}");
    assert!(engine.kernels().entries < MAX_ENTRIES, "{:?}", engine.kernels());
}
