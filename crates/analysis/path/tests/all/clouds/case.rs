//! A small cluster of a cloud, and calls in it.

use std::fmt::Write as _;

use uturn_model::{Cluster, Flow, Mechanism, Outcome};
use uturn_path::Engine;
use uturn_snapshot::{Source, read};
use uturn_testing::manifests::{ReadyNode, RunningPod};

/// Three nodes with a client and a process of the host's network on each. The first has the server.
#[derive(Clone, Copy)]
pub(crate) struct Case<'a> {
    /// What the providerIDs of nodes are, but for the number at their end.
    pub(crate) provider_id: &'static str,
    /// kube-proxy's mode.
    pub(crate) mode: &'static str,
    /// And its version.
    pub(crate) version: &'static str,
    /// Annotations of the Service.
    pub(crate) notes: &'a [(&'a str, &'a str)],
    /// Fields of its `spec`, each with a comma behind it.
    pub(crate) spec: &'static str,
    pub(crate) policy: &'static str,
    /// Other documents.
    pub(crate) more: &'static str,
    /// Entries of its status.
    pub(crate) status: &'static str,
    /// Whether pods have addresses of the network around the nodes, and the words of Facts for it.
    pub(crate) pods: Pods,
}

/// Where pods have their addresses from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pods {
    /// A range for each node; what leaves the cluster has the node's address.
    Overlay,
    /// The network around the nodes.
    Native,
}

/// A client of the server's own pod, of its node and of another one, and one outside.
pub(crate) const SERVER: &str = "pod/shop/web";
pub(crate) const BESIDE: &str = "pod/shop/client-1";
pub(crate) const HOST: &str = "pod/shop/host-1";
pub(crate) const ELSEWHERE: &str = "pod/shop/client-2";
pub(crate) const OTHER_HOST: &str = "pod/shop/host-3";
pub(crate) const OUTSIDE: &str = "outside";

/// All of them.
pub(crate) const ALL: [&str; 6] = [SERVER, BESIDE, HOST, ELSEWHERE, OTHER_HOST, OUTSIDE];

/// An address of the network around the nodes, and one of the internet.
pub(crate) const PRIVATE: &str = "{ip: 10.0.9.9}";
pub(crate) const PUBLIC: &str = "{ip: 203.0.113.9}";

impl Case<'_> {
    pub(crate) const fn new(provider_id: &'static str) -> Self {
        Self {
            provider_id,
            mode: "iptables",
            version: "v1.34.4",
            notes: &[],
            spec: "",
            policy: "Cluster",
            more: "",
            status: PRIVATE,
            pods: Pods::Overlay,
        }
    }

    pub(crate) fn cluster(&self) -> Cluster {
        let network = match self.pods {
            Pods::Overlay => "plugin: flannel, podCIDRs: [10.244.0.0/16]",
            Pods::Native => "plugin: unknown, podCIDRs: [10.0.128.0/17]",
        };
        let mut text = format!(
            "apiVersion: uturn.dev/v1alpha1\nkind: Facts\nspec:\n  network: {{{network}, vpcCIDRs: \
             [10.0.0.0/16], serviceCIDRs: [172.20.0.0/16]}}\n  kubeProxy: {{mode: {}, version: \
             {}}}\n",
            self.mode, self.version
        );
        for node in 1..=3 {
            let range = match self.pods {
                Pods::Overlay => format!(", podCIDR: 10.244.{node}.0/24"),
                Pods::Native => String::new(),
            };
            let node_object = ReadyNode {
                number: node,
                address: &format!("10.0.0.1{node}"),
                spec: &format!("providerID: '{}{node}'{range}", self.provider_id),
                ..ReadyNode::default()
            };
            text += &node_object.to_string();
            text += &self.pod(&format!("client-{node}"), "client", node, 20);
            text += &pod(&format!("host-{node}"), "host", node, &format!("10.0.0.1{node}"), true);
        }
        text += &self.pod("web", "web", 1, 50);
        let notes = self.notes.iter().map(|(key, value)| format!("{key}: '{value}'"));
        let _ = write!(
            text,
            "---\n{{apiVersion: v1, kind: Service, metadata: {{name: web, namespace: shop, \
             annotations: {{{}}}}}, spec: {{type: LoadBalancer, {}clusterIP: 172.20.0.10, \
             externalTrafficPolicy: {}, selector: {{app: web}}, ports: [{{name: http, port: 80, \
             targetPort: 8080, nodePort: 30080}}, {{name: tls, port: 443, targetPort: 8080, \
             nodePort: 30443}}]}}, status: {{loadBalancer: {{ingress: [{}]}}}}}}\n",
            notes.collect::<Vec<_>>().join(", "),
            self.spec,
            self.policy,
            self.status
        );
        text += self.more;
        read(vec![Source { name: "cluster.yaml".into(), text }]).unwrap().cluster
    }

    fn pod(&self, name: &str, app: &str, node: u32, host: u32) -> String {
        let address = match self.pods {
            Pods::Overlay => format!("10.244.{node}.{host}"),
            Pods::Native => format!("10.0.{}.{host}", 128 + node),
        };
        pod(name, app, node, &address, false)
    }

    /// What its load balancer is called.
    pub(crate) fn product(&self) -> String {
        let cluster = self.cluster();
        assert!(cluster.unjudged.is_empty(), "{:?}", cluster.unjudged);
        let engine = Engine::new(&cluster).unwrap();
        engine.balancers()[0].listeners[0].profile.name.to_string()
    }

    /// What a client meets that calls the load balancer, at its first address.
    pub(crate) fn met(&self, from: &str, scheme: &str) -> Met {
        let cluster = self.cluster();
        let engine = Engine::new(&cluster).unwrap();
        let at = engine.balancers()[0].vip;
        let port = if scheme == "https" { 443 } else { 80 };
        let flow = Flow {
            from: from.parse().unwrap(),
            to: format!("{scheme}://{at}:{port}/").parse().unwrap(),
            protocol: Default::default(),
        };
        let verdict = engine.verdict(&flow).unwrap();
        let share = |is_it: &dyn Fn(Outcome) -> bool| {
            let ends = verdict.outcomes.iter().filter(|end| is_it(end.0));
            ends.map(|end| (end.1.get() * 100.0).round() / 100.0).sum()
        };
        Met {
            answered: share(&|end| end.is_answered()),
            hangs: share(&|end| end == Outcome::Hangs),
            outcomes: verdict.outcomes.iter().map(|(end, _)| *end).collect(),
            mechanisms: verdict.mechanisms.clone(),
            doubts: verdict.supposed.iter().map(|doubt| doubt.assumed.to_string()).collect(),
        }
    }

    /// That each of these clients is answered, always.
    pub(crate) fn is_answered(&self, clients: &[&str]) {
        for from in clients {
            let met = self.met(from, "http");
            assert_eq!(met.outcomes, [Outcome::AT_ONCE], "{from}: {met:?}");
        }
    }

    /// That each of these clients waits for nothing, always.
    pub(crate) fn hangs(&self, clients: &[&str]) {
        for from in clients {
            let met = self.met(from, "http");
            assert_eq!(met.outcomes, [Outcome::Hangs], "{from}: {met:?}");
        }
    }
}

/// What a client meets.
#[derive(Debug)]
pub(crate) struct Met {
    pub(crate) answered: f64,
    pub(crate) hangs: f64,
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) mechanisms: Vec<Mechanism>,
    /// What the verdict takes for true.
    pub(crate) doubts: Vec<String>,
}

fn pod(name: &str, app: &str, node: u32, address: &str, host_network: bool) -> String {
    RunningPod { name, app, node, address, host_network, ..RunningPod::default() }.to_string()
}
