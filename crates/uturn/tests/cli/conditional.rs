//! Findings that rest on what nothing states: they name it as their condition, and are warnings.

use super::common::{Folder, assert_found};
use super::parts::WORKLOAD;

fn service(spec: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Service\nmetadata: {{name: web, namespace: shop}}\nspec: \
         {{selector: {{app: web}}, {spec}}}\n"
    )
}

/// What a scan prints of a Service before a Deployment's pods.
fn scan(test: &str, spec: &str, words: &[&str]) -> String {
    let folder = Folder::new(test);
    folder.file("manifests.yaml", &(WORKLOAD.to_owned() + &service(spec)));
    folder.run(&[&["scan", "-f", "manifests.yaml", "-o", "wide"], words].concat())
}

/// An injector may add a container with the port to pods that are still to be made.
#[test]
fn a_named_port_may_be_injected() {
    let ports = "ports: [{port: 15090, targetPort: stats}]";
    let condition = "no other pod that it selects, and no injected container, has port stats";
    let of_manifests = scan("conditional-port", ports, &[]);
    assert_found(&of_manifests, 0, &["UT313", condition]);
    assert!(!of_manifests.contains("UT311"), "{of_manifests}");
    let of_all = scan("conditional-port-complete", ports, &["--complete"]);
    assert_found(&of_all, 1, &["UT313"]);
    assert!(!of_all.contains(condition), "{of_all}");
}

/// Containers need not declare the ports that they listen on.
#[test]
fn an_undeclared_port_may_be_open() {
    let ports = "clusterIP: None, ports: [{port: 80, targetPort: 8080}]";
    let printed = scan("conditional-headless", ports, &[]);
    assert_found(&printed, 0, &["UT312", "if nothing listens on 80"]);
}

/// A Service that names whom it lets in may mean to keep pods out.
#[test]
fn source_ranges_are_asked_for() {
    let ports = "type: LoadBalancer, loadBalancerSourceRanges: [192.0.2.0/24], clusterIP: 10.96.0.9, \
                 ports: [{port: 80, targetPort: 8080, nodePort: 30080}]}\nstatus: {loadBalancer: \
                 {ingress: [{ip: 203.0.113.7}]}";
    let printed = scan("conditional-ranges", ports, &["--complete"]);
    assert_found(&printed, 0, &["UT601", "firewall"]);
}

/// Under policy Local, the nodes of the pods are the targets: where pods will run is only supposed.
#[test]
fn targets_depend_on_where_pods_will_run() {
    let nodes = "---
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {node.kubernetes.io/exclude-from-external-load-balancers: ''}}
spec: {podCIDR: 10.244.0.0/24}
status: {addresses: [{type: InternalIP, address: 192.168.10.11}]}
---
apiVersion: v1
kind: Node
metadata: {name: n2}
spec: {podCIDR: 10.244.1.0/24}
status: {addresses: [{type: InternalIP, address: 192.168.10.12}]}
---
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: pool, namespace: metallb-system}
spec: {addresses: [192.168.10.240-192.168.10.250]}
---
apiVersion: metallb.io/v1beta1
kind: L2Advertisement
metadata: {name: l2, namespace: metallb-system}
";
    let service = service(
        "type: LoadBalancer, externalTrafficPolicy: Local, clusterIP: 10.96.0.20, ports: [{port: 80, \
         targetPort: 8080, nodePort: 30080}]",
    ) + "status: {loadBalancer: {ingress: [{ip: 192.168.10.240}]}}\n";
    let one = WORKLOAD.replace("replicas: 2", "replicas: 1");
    let pod = "---
apiVersion: v1
kind: Pod
metadata:
  name: web-1
  namespace: shop
  labels: {app: web}
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: u, controller: true}]
spec: {nodeName: n1, containers: [{name: web, image: web, ports: [{containerPort: 8080}]}]}
status:
  phase: Running
  podIP: 10.244.0.9
  conditions: [{type: Ready, status: 'True'}]
";
    let condition = "the pods of Deployment shop/web run where they are supposed to, as on node n1";
    for (test, pods, exit, is_conditional) in
        [("conditional-placement", "", 0, true), ("stated-placement", pod, 1, false)]
    {
        let folder = Folder::new(test);
        folder.file("manifests.yaml", &[nodes, &service, &one, pods].concat());
        let printed = folder.run(&["scan", "-f", "manifests.yaml", "-o", "wide"]);
        assert_found(&printed, exit, &["UT203"]);
        assert_eq!(printed.contains(condition), is_conditional, "{printed}");
    }
}
