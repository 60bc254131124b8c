//! Makes the nodes and pods of a scenario from its shape.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;
use uturn_document::Node;
use uturn_model::network::NetworkMode;
use uturn_model::pod::{Container, ContainerPort, Phase, PodSpec};
use uturn_model::{Client, Name, NamespacedName, Node as ClusterNode, Origin, Pod, Port, Protocol};

use crate::decode::objects::Objects;
use crate::decode::value::one_of;
use crate::decode::{Doc, FromNode};

/// The network, backends and clients of a scenario's cluster.
pub(super) struct Shape {
    pub(super) network: NetworkMode,
    backends: Where,
    clients: Clients,
}

/// The nodes on which pods are placed.
#[derive(Clone, Copy)]
enum Where {
    First,
    Last,
    Each,
    None,
}

#[derive(Clone, Copy)]
enum Clients {
    Pods(Where),
    Host,
}

const NAMESPACE: &str = "shop";

impl Shape {
    /// Reads `spec.shape`.
    pub(super) fn read<'d>(doc: &Doc<'d>, spec: &'d Node<'d>) -> Self {
        let mut shape = Self {
            network: NetworkMode::GlobalRouter,
            backends: Where::Last,
            clients: Clients::Pods(Where::Each),
        };
        let Some(node) = doc.map(spec, "shape") else { return shape };
        doc.only(node, &["network", "backends", "clients"]);
        shape.network = doc.read(node, "network").unwrap_or(shape.network);
        shape.backends = doc.read(node, "backends").unwrap_or(shape.backends);
        shape.clients = doc.read(node, "clients").unwrap_or(shape.clients);
        shape
    }

    /// Returns the range of the pods' addresses.
    pub(super) fn pods(&self) -> &'static str {
        match self.network {
            NetworkMode::GlobalRouter | NetworkMode::Routed => "10.1.0.0/16",
            NetworkMode::VpcCni => "10.0.0.0/16",
        }
    }

    /// Adds the nodes and pods. Nodes and pods that are among the scenario's objects are kept as
    /// they are.
    pub(super) fn build(&self, nodes: usize, origin: &Origin, objects: &mut Objects) {
        for number in 1..=nodes {
            let name = node_name(number);
            let mut node = ClusterNode::new(name.clone(), origin.clone());
            node.internal_ips = vec![Ipv4Addr::new(10, 0, 0, low(number + 10)).into()];
            if self.network != NetworkMode::VpcCni {
                let net = Ipv4Addr::new(10, 1, low(number), 0);
                node.pod_cidrs.push(IpNet::new_assert(net.into(), 24));
            }
            objects.nodes.0.entry(name).or_insert(node);
        }
        for (at, number) in on(self.backends, nodes).enumerate() {
            self.pod(&format!("web-{}", at + 1), "web", number, 20, origin, objects);
        }
        if let Clients::Pods(place) = self.clients {
            for number in on(place, nodes) {
                self.pod(&format!("client-{number}"), "client", number, 10, origin, objects);
            }
        }
    }

    fn address(&self, node: usize, host: u8) -> IpAddr {
        match self.network {
            NetworkMode::GlobalRouter => Ipv4Addr::new(10, 1, low(node), host),
            NetworkMode::VpcCni => Ipv4Addr::new(10, 0, low(node), host),
            // The address is outside of the node's range.
            NetworkMode::Routed => Ipv4Addr::new(10, 1, low(node + 100), host),
        }
        .into()
    }

    fn pod(
        &self,
        name: &str,
        app: &str,
        node: usize,
        host: u8,
        origin: &Origin,
        objects: &mut Objects,
    ) {
        let port = ContainerPort {
            name: Some("http".into()),
            port: Port::new(8080).expect("a constant port"),
            protocol: Protocol::Tcp,
            host_port: None,
            host_ip: None,
        };
        let container = Container {
            name: app.into(),
            image: app.into(),
            arguments: Vec::new(),
            environment: Default::default(),
            ports: if app == "web" { vec![port] } else { Vec::new() },
            probed: Vec::new(),
            readiness: None,
            configured: Vec::new(),
            reads: Vec::new(),
            called: Vec::new(),
        };
        let labels = [("app", app)].into_iter().collect();
        let name = pod_name(name);
        objects.pods.0.entry(name.clone()).or_insert_with(|| Pod {
            name,
            spec: PodSpec { labels, containers: vec![container], ..PodSpec::default() }.into(),
            node: Some(node_name(node)),
            ips: vec![self.address(node, host)],
            phase: Phase::Running,
            ready: true,
            deciding_gates: Vec::new(),
            terminating: false,
            owner: None,
            supposed: false,
            origin: origin.clone(),
        });
    }

    /// Returns the clients that the word `clients` means in a flow.
    pub(super) fn clients(&self, nodes: usize) -> Vec<Client> {
        match self.clients {
            Clients::Host => (1..=nodes).map(|number| Client::Node(node_name(number))).collect(),
            Clients::Pods(place) => on(place, nodes)
                .map(|number| Client::Pod(pod_name(&format!("client-{number}"))))
                .collect(),
        }
    }
}

fn on(place: Where, nodes: usize) -> std::ops::Range<usize> {
    match place {
        Where::First => 1..2,
        Where::Last => nodes..nodes + 1,
        Where::Each => 1..nodes + 1,
        Where::None => 1..1,
    }
}

/// Returns a number as the last byte of an address; no case has so many nodes that it overflows.
fn low(number: usize) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

fn node_name(number: usize) -> Name {
    Name::new(format!("n{number}")).expect("a letter and a number are a name")
}

fn pod_name(name: &str) -> NamespacedName {
    NamespacedName::new(NAMESPACE, name).expect("a word and a number are a name")
}

impl FromNode for Where {
    const EXPECTED: &'static str = "last, first, each or none";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        let words = [
            ("last", Self::Last),
            ("first", Self::First),
            ("each", Self::Each),
            ("none", Self::None),
        ];
        one_of(node, &words)
    }
}

impl FromNode for Clients {
    const EXPECTED: &'static str = "each, first, host or none";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        let words = [
            ("each", Self::Pods(Where::Each)),
            ("first", Self::Pods(Where::First)),
            ("host", Self::Host),
            ("none", Self::Pods(Where::None)),
        ];
        one_of(node, &words)
    }
}
