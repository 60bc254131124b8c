//! A cluster of three nodes as a cloud's tools would print it: a client on each node, a server on
//! the first, and a Service of type LoadBalancer.

use uturn_model::{Cluster, Flow, Mechanism, Outcome, Protocol, Verdict};
use uturn_path::Engine;
use uturn_snapshot::{Source, read};
use uturn_testing::manifests::{ReadyNode, RunningPod};

/// What differs between clouds. The rest is a cluster with tunnels and kube-proxy.
#[derive(Clone, Copy)]
pub(crate) struct Small {
    /// How the providerIDs of the nodes begin.
    pub(crate) provider_id: &'static str,
    /// Labels of the nodes, as JSON.
    pub(crate) labels: &'static str,
    /// How the nodes' addresses begin; a public one is also their external one.
    pub(crate) network: &'static str,
    /// Annotations of the Service, as JSON.
    pub(crate) notes: &'static str,
    /// Fields of its spec, each with a comma behind it.
    pub(crate) spec: &'static str,
    /// Its ports.
    pub(crate) ports: &'static str,
    /// The entries of its status.
    pub(crate) status: &'static str,
    /// Fields of `kubeProxy` in Facts.
    pub(crate) proxy: &'static str,
    /// Further objects.
    pub(crate) more: &'static str,
}

/// The usual case.
pub(crate) const SMALL: Small = Small {
    provider_id: "",
    labels: "",
    network: "10.0.0.1",
    notes: "",
    spec: "",
    ports: "{name: http, port: 80, nodePort: 30080}",
    status: "{ip: 192.0.2.80}",
    proxy: "mode: iptables, version: v1.34.4",
    more: "",
};

pub(crate) const LOCAL: &str = "externalTrafficPolicy: Local, healthCheckNodePort: 32100, ";
pub(crate) const URL: &str = "http://192.0.2.80/";

impl Small {
    pub(crate) fn cluster(&self) -> Cluster {
        let Self { provider_id, labels, network, notes, spec, ports, status, proxy, more } = self;
        let mut text = format!(
            "{{apiVersion: uturn.dev/v1alpha1, kind: Facts, spec: {{kubeProxy: {{{proxy}}}, \
             network: {{podCIDRs: [10.244.0.0/16], serviceCIDRs: [10.96.0.0/16]}}}}}}\n"
        );
        for node in 1..=3 {
            let external = if network.starts_with("10.") {
                String::new()
            } else {
                format!(", {{type: ExternalIP, address: {network}{node}}}")
            };
            let node_object = ReadyNode {
                number: node,
                address: &format!("{network}{node}"),
                labels,
                spec: &format!("providerID: '{provider_id}{node}', podCIDR: 10.244.{node}.0/24"),
                more_addresses: &external,
            };
            text += &node_object.to_string();
            text += &pod("client", node);
        }
        text += &pod("web", 1);
        text += &format!(
            "---\n{{apiVersion: v1, kind: Service, metadata: {{name: web, namespace: shop, \
             annotations: {{{notes}}}}}, spec: {{type: LoadBalancer, clusterIP: 10.96.0.10, {spec}\
             selector: {{app: web}}, ports: [{ports}]}}, \
             status: {{loadBalancer: {{ingress: [{status}]}}}}}}\n"
        );
        text += more;
        read(vec![Source { name: "cluster.yaml".into(), text }]).unwrap().cluster
    }

    /// What a client gets that calls an address.
    pub(crate) fn verdict(&self, from: &str, to: &str) -> Verdict {
        let cluster = self.cluster();
        assert!(cluster.unjudged.is_empty(), "{:?}", cluster.unjudged);
        let engine = Engine::new(&cluster).unwrap();
        let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
        engine.verdict(&Flow { from, to, protocol: Protocol::Tcp }).unwrap()
    }

    /// How much of its calls is answered, and why others are not.
    pub(crate) fn met(&self, from: &str, to: &str) -> (f64, Vec<Mechanism>) {
        let verdict = self.verdict(from, to);
        (share(&verdict, |end| end.is_answered()), verdict.mechanisms)
    }

    /// The names of the products that serve it.
    pub(crate) fn products(&self) -> Vec<String> {
        let cluster = self.cluster();
        let engine = Engine::new(&cluster).unwrap();
        let listeners = engine.balancers().iter().flat_map(|balancer| &balancer.listeners);
        listeners.map(|listener| listener.profile.name.to_string()).collect()
    }
}

/// The share of a verdict's calls that end so.
pub(crate) fn share(verdict: &Verdict, is_it: impl Fn(Outcome) -> bool) -> f64 {
    let ends = verdict.outcomes.iter().filter(|end| is_it(end.0));
    let all: f64 = ends.map(|end| end.1.get()).sum();
    (all * 100.0).round() / 100.0
}

/// A pod of an app, on a node.
fn pod(app: &str, node: u32) -> String {
    let host = if app == "web" { 80 } else { 9 };
    let (name, address) = (format!("{app}-{node}"), format!("10.244.{node}.{host}"));
    let ports = "{containerPort: 80}, {containerPort: 443}";
    let (name, address) = (&*name, &*address);
    RunningPod { name, app, node, address, ports, ..RunningPod::default() }.to_string()
}
