//! Names of load balancers with an address in each zone: which of them a client is told.

use uturn_testing::manifests::ReadyNode;

use super::common::{Folder, assert_has};

const HOST: &str = "k8s-shop-web-0123456789-0123456789abcdef.elb.eu-west-1.amazonaws.com";

/// A node in each of three zones, a server and two clients on n1, and the cluster's name server on n3.
fn cluster(routing: &str) -> String {
    let node = |number: u32| {
        ReadyNode {
            number,
            address: &format!("10.0.0.{number}"),
            labels: &format!("topology.kubernetes.io/zone: z{number}"),
            spec: &format!(
                "podCIDR: 10.244.{number}.0/24, providerID: aws:///z{number}/i-{number}"
            ),
            ..ReadyNode::default()
        }
        .to_string()
    };
    let pod = |namespace: &str, name: &str, (node, at): (u8, u8), policy: &str| {
        format!(
            "---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {namespace}, labels: {{app: {name}}}}}
spec: {{nodeName: n{node}, dnsPolicy: {policy}, containers: [{{name: c, image: c, ports: [{{containerPort: 80}}]}}]}}
status: {{phase: Running, podIP: 10.244.{node}.{at}, conditions: [{{type: Ready, status: \"True\"}}]}}
"
        )
    };
    let service = format!(
        "---
apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: shop
  annotations:
    service.beta.kubernetes.io/aws-load-balancer-type: external
    service.beta.kubernetes.io/aws-load-balancer-nlb-target-type: instance
    service.beta.kubernetes.io/aws-load-balancer-scheme: internal
    service.beta.kubernetes.io/aws-load-balancer-attributes: {routing}
spec:
  type: LoadBalancer
  clusterIP: 10.96.0.3
  selector: {{app: web}}
  ports: [{{port: 80, nodePort: 30080}}]
status: {{loadBalancer: {{ingress: [{{hostname: {HOST}}}]}}}}
---
apiVersion: v1
kind: Service
metadata: {{name: kube-dns, namespace: kube-system}}
spec:
  clusterIP: 10.96.0.10
  selector: {{app: dns}}
  ports: [{{name: dns, port: 53, protocol: UDP}}, {{name: dns-tcp, port: 53}}]
---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  kubeProxy: {{mode: iptables, version: v1.34.0}}
  network: {{plugin: flannel, podCIDRs: [10.244.0.0/16], vpcCIDRs: [10.0.0.0/16]}}
"
    );
    let pods = [
        pod("shop", "web", (1, 9), "ClusterFirst"),
        pod("shop", "inside", (1, 8), "ClusterFirst"),
        pod("shop", "node-dns", (1, 7), "Default"),
        pod("kube-system", "dns", (3, 6), "Default"),
    ];
    [[1, 2, 3].map(node).concat(), pods.concat(), service].concat()
}

/// What is printed of a client's call of the load balancer by its name.
fn traced(test: &str, routing: &str, from: &str) -> String {
    let folder = Folder::new(test);
    folder.file("a.yaml", &cluster(routing));
    folder.run(&["trace", "-f", ".", "--from", from, "--to", &format!("{HOST}:80")])
}

const TOLD: &str = "which address of k8s-shop-web-";

/// A load balancer sends a call of n1 at the address of n1's zone back to n1, which hangs.
#[test]
fn who_asks_decides_which_address_a_client_is_told() {
    const OWN: &str = "dns_record.client_routing_policy=availability_zone_affinity";
    // The cluster's name server, in another zone, asks for the pod.
    let printed = traced("zones-inside", OWN, "pod/shop/inside");
    let asks = "that of the zone of the cluster's name server, which asks";
    assert_has(&printed, &["answered at once", "always", "on node n3", TOLD, asks]);
    // These ask themselves.
    for (test, from) in [("zones-pod", "pod/shop/node-dns"), ("zones-node", "node/n1")] {
        let printed = traced(test, OWN, from);
        let asks = "that of the zone of the client, who asks";
        assert_has(&printed, &["always · hangs", "on node n1", TOLD, asks]);
    }
    // Nothing says it of clients outside.
    assert!(!traced("zones-outside", OWN, "outside/10.0.9.9").contains(TOLD));
}

#[test]
fn other_policies_tell_any_address() {
    let any = "dns_record.client_routing_policy=any_availability_zone";
    let printed = traced("zones-any", any, "pod/shop/node-dns");
    assert_has(&printed, &["2 in 3 answered at once, 1 in 3 hangs"]);
    assert!(!printed.contains(TOLD), "{printed}");
    let mostly = "dns_record.client_routing_policy=partial_availability_zone_affinity";
    let printed = traced("zones-mostly", mostly, "pod/shop/node-dns");
    let taken = "85 of 100 answers prefer one";
    assert_has(&printed, &["2 in 3 answered at once, 1 in 3 hangs", TOLD, taken]);
}
