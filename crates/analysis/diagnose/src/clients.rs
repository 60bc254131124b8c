//! The clients that a finding affects, and the example that shows it.

use std::net::SocketAddr;

use uturn_model::{Client, Destination, Flow, Name, NamespacedName, Protocol};
use uturn_scan::{Pods, ScanResult};

/// The clients that a finding affects.
#[derive(Clone, Debug, Default)]
pub struct Clients {
    /// The pods among them.
    pods: Option<Pods>,
    /// Descriptions of clients that are not pods.
    others: Vec<&'static str>,
}

impl Clients {
    /// Clients outside the cluster.
    pub const INTERNET: &'static str = "clients on the internet";
    /// Clients outside the cluster.
    pub const OUTSIDE: &'static str = "outside";
    /// Machines of the network around the nodes that are not nodes.
    pub const SAME_NETWORK: &'static str = "outside in the same network";
    /// All clients except those that were scanned.
    pub const OTHERS: &'static str = "all other clients";
    /// Health checks of load balancers.
    pub const PROBES: &'static str = "health checks";
    /// Programs of the nodes themselves, and pods in their network.
    pub const NODES: &'static str = "programs of the nodes";
    /// Clients of a headless Service, whose name resolves to the addresses of its pods.
    pub const BY_NAME: &'static str = "every client that calls it by its name";
    /// Clients of an Ingress's hosts.
    pub const OF_HOSTS: &'static str = "every client of its hosts";
    /// Nodes and their pods, apart from the node whose address a Service has.
    pub const OTHER_NODES: &'static str = "the other nodes and their pods";
    /// The API server, which calls webhooks and the APIs that others serve.
    pub const API_SERVER: &'static str = "the API server";
    /// The pods that serve an Ingress.
    pub const CONTROLLER: &'static str = "the pods of its controller";
    /// The pods of a workload.
    pub const ITS_PODS: &'static str = "its pods";
    /// Pods whose command lines, variables or files name what they call.
    pub const SET_TO_CALL: &'static str = "pods that are set to call it";
    /// Programs of a node: the kubelet and the container engine.
    pub const NODE_PROGRAMS: &'static str = "the kubelet and the container engine";
    /// Pods that use the cluster's DNS.
    pub const NAMES: &'static str = "every pod that asks the cluster's DNS";

    /// Creates clients that are these pods.
    pub fn pods(pods: Pods) -> Self {
        Self { pods: Some(pods), others: Vec::new() }
    }

    /// Creates clients that are not pods, with this description.
    pub fn other(who: &'static str) -> Self {
        Self { pods: None, others: vec![who] }
    }

    /// Returns the number of clients. Each kind of client that is not a pod counts as one.
    pub fn len(&self) -> usize {
        self.pods.as_ref().map_or(0, Pods::len) + self.others.len()
    }

    /// Returns whether there are no clients.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Iterates over the names of the pods.
    pub fn iter(&self) -> impl Iterator<Item = &NamespacedName> {
        self.pods.iter().flat_map(Pods::iter)
    }

    /// Returns the nodes of the pods.
    pub fn nodes(&self) -> Vec<&Name> {
        self.pods.as_ref().map(Pods::nodes).unwrap_or_default()
    }

    /// Returns the number of pods.
    pub fn pod_count(&self) -> usize {
        self.pods.as_ref().map_or(0, Pods::len)
    }

    /// Returns the descriptions of clients that are not pods.
    pub fn others(&self) -> &[&'static str] {
        &self.others
    }

    /// Returns the clients of all sets, each once. The sets must come from the same scan.
    pub fn union<'c>(sets: impl IntoIterator<Item = &'c Self>) -> Self {
        let mut sets: Vec<Self> = sets.into_iter().cloned().collect();
        // Sets are merged in pairs, because adding one after the other would copy the growing sum
        // each time.
        while sets.len() > 1 {
            let merge = |pair: &[Self]| match pair {
                [left, right] => left.and(right),
                rest => rest[0].clone(),
            };
            sets = sets.chunks(2).map(merge).collect();
        }
        sets.pop().unwrap_or_default()
    }

    /// Returns the clients of both sets, which must come from the same scan.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let pods = match (&self.pods, &other.pods) {
            (Some(left), Some(right)) => Some(left.and(right)),
            (left, right) => left.clone().or_else(|| right.clone()),
        };
        let mut others = self.others.clone();
        others.extend(other.others.iter().filter(|name| !self.others.contains(name)));
        Self { pods, others }
    }
}

/// The example that shows a finding.
#[derive(Clone, Debug)]
pub enum Example {
    /// A class of pods that calls a target.
    Scanned(Box<ScanResult>),
    /// A flow.
    Flow(Flow),
    /// Health checks of a listener.
    Probes(SocketAddr, Protocol),
    /// No flow, since the manifests show the finding.
    Manifests,
}

impl Example {
    /// Returns the flow that was walked; for health checks, a flow to the same listener.
    pub fn flow(&self) -> Option<Flow> {
        match self {
            Self::Scanned(met) => Some(met.flow()),
            Self::Flow(flow) => Some(flow.clone()),
            Self::Probes(listener, protocol) => Some(Flow {
                from: Client::Outside(None),
                to: Destination::Address(*listener),
                protocol: *protocol,
            }),
            Self::Manifests => None,
        }
    }
}
