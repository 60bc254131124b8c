//! An Ingress `shop/front` that a controller in the cluster serves, and the server behind it.

use uturn_model::{Cluster, Flow, Protocol};
use uturn_path::Engine;
use uturn_snapshot::Source;
use uturn_testing::manifests::{facts, node};

/// The Ingress, of this class, with these annotations and this in its `spec`.
pub(crate) fn ingress(class: &str, annotations: &str, spec: &str) -> String {
    format!(
        "---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: front, namespace: shop, annotations: {{{annotations}}}}}
spec: {{ingressClassName: {class}, {spec}rules: [{{host: a.example.com, http: {{paths: [{{path: /, pathType: Prefix, \
       backend: {{service: {{name: web, port: {{number: 80}}}}}}}}]}}}}]}}
"
    )
}

/// Two nodes with these objects, and with the Service and the server that the Ingress leads to.
pub(crate) fn cluster(objects: &str) -> Cluster {
    const WEB: &str = "---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {clusterIP: 172.16.0.11, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}}
spec: {nodeName: n2, containers: [{name: web, image: web}]}
status: {phase: Running, podIP: 10.1.2.30, podIPs: [{ip: 10.1.2.30}], conditions: [{type: Ready, status: \"True\"}]}
";
    let facts = facts(&["kubeProxy: {mode: iptables, version: v1.34.4}"]);
    let text = [&facts, objects, WEB, &node(1), &node(2)].concat();
    let source = Source { name: "cluster.yaml".into(), text };
    uturn_snapshot::read(vec![source]).unwrap().cluster
}

/// What comes of a call of the server's pod.
pub(crate) fn asked(cluster: &Cluster, to: &str) -> String {
    let engine = Engine::new(cluster).unwrap();
    let from = "pod/shop/web".parse().unwrap();
    let flow = Flow { from, to: to.parse().unwrap(), protocol: Protocol::Tcp };
    let verdict = engine.verdict(&flow).unwrap();
    let ends: Vec<String> = verdict.outcomes.iter().map(|(end, _)| end.to_string()).collect();
    ends.join(", ")
}

/// What comes of calls by http, by https, and of the Ingress itself.
pub(crate) fn all(cluster: &Cluster) -> [String; 3] {
    ["http://a.example.com/", "https://a.example.com/", "ingress/shop/front"]
        .map(|to| asked(cluster, to))
}

pub(crate) const ANSWERED: &str = "answered at once";
