//! Small clusters, built by hand, and saved rules taken apart.

#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod any;
pub(crate) mod dual_stack;
pub(crate) mod every_kind;
pub(crate) mod nft;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use uturn_kubeproxy::{Program, compile};
use uturn_model::cluster::Provider;
use uturn_model::network::{Network, NetworkMode};
use uturn_model::proxy::LocalDetector;
use uturn_model::service::{IpMode, LbIngress, ServicePort, TargetPort};
use uturn_model::*;

pub(crate) fn origin() -> Origin {
    Origin::file("a test")
}

pub(crate) fn known<T>(value: T) -> Known<T> {
    Known::supposed(value, "a test")
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub(crate) fn port(number: u16) -> Port {
    Port::new(number).unwrap()
}

/// What the dumps in `golden/` were made with.
pub(crate) fn settings() -> ProxySettings {
    ProxySettings {
        detector: known(LocalDetector::ClusterCidr(vec!["10.1.0.0/16".parse().unwrap()])),
        node_port_addresses: proxy::NodePortAddresses::Primary,
        ..ProxySettings::new(known(ProxyMode::Iptables), known(Version::new(1, 34, 4)))
    }
}

/// Nodes n1, n2, … with addresses 10.0.0.11, … in zones z1, …
pub(crate) fn cluster(nodes: u8) -> Cluster {
    let node = |number: u8| Node {
        labels: [("topology.kubernetes.io/zone", format!("z{number}"))].into_iter().collect(),
        internal_ips: vec![IpAddr::from([10, 0, 0, 10 + number])],
        pod_cidrs: vec![format!("10.1.{number}.0/24").parse().unwrap()],
        ..Node::new(name(&format!("n{number}")), origin())
    };
    let plugin = uturn_clouds::cloud::usual_network(NetworkMode::GlobalRouter);
    let network = Network::new(known(plugin), known(NetworkMode::GlobalRouter));
    Cluster {
        nodes: (1..=nodes).map(node).map(|node| (node.name.clone(), node)).collect(),
        ..Cluster::new(known(Provider::None), network, settings())
    }
}

/// `shop/…` with a cluster IP and port 80.
pub(crate) fn service(text: &str, cluster_ip: &str) -> Service {
    Service {
        cluster_ips: vec![ip(cluster_ip)],
        ports: vec![service_port(None, Protocol::Tcp, 80)],
        ..Service::new(NamespacedName::new("shop", text).unwrap(), origin())
    }
}

pub(crate) fn service_port(text: Option<&str>, protocol: Protocol, number: u16) -> ServicePort {
    ServicePort {
        name: text.map(Text::from),
        ..ServicePort::new(protocol, port(number), TargetPort::Number(port(8080)))
    }
}

pub(crate) fn ingress(address: &str, mode: IpMode) -> LbIngress {
    LbIngress { ip: Some(ip(address)), hostname: None, mode }
}

/// A ready endpoint on a node.
pub(crate) fn endpoint(address: &str, node: &str) -> Endpoint {
    Endpoint { node: Some(name(node)), ..Endpoint::new(ip(address)) }
}

/// Puts a Service and one slice of endpoints into a cluster. The ports of the slice are
/// those of the Service, at 8080 and on.
pub(crate) fn add(cluster: &mut Cluster, service: Service, endpoints: Vec<Endpoint>) {
    let ports = service
        .ports
        .iter()
        .zip(8080..)
        .map(|(port, number)| EndpointPort {
            name: port.name.clone(),
            protocol: port.protocol,
            port: Port::new(number).unwrap(),
        })
        .collect();
    let slice = EndpointSlice {
        name: service.name.clone(),
        service: service.name.clone(),
        family: service.cluster_ips.first().map_or(Family::V4, |ip| Family::of(*ip)),
        ports,
        endpoints,
        derived: false,
        origin: origin(),
    };
    cluster.endpoints.entry(service.name.clone()).or_default().push(slice);
    cluster.services.insert(service.name.clone(), service);
}

/// A cluster of three nodes with a Service.
pub(crate) fn cluster_with(service: Service, endpoints: Vec<Endpoint>) -> Cluster {
    let mut cluster = cluster(3);
    add(&mut cluster, service, endpoints);
    cluster
}

/// The endpoints of a Service.
pub(crate) fn endpoints<'c>(
    cluster: &'c Cluster,
    service: &Service,
) -> impl Iterator<Item = &'c Endpoint> {
    let slices = cluster.slices(&service.name).iter();
    slices.flat_map(|slice| &slice.endpoints)
}

/// The rules of a node for IPv4.
pub(crate) fn program(cluster: &Cluster, node: &str) -> Program {
    compile(cluster, &name(node), &cluster.proxy, Family::V4).unwrap()
}

/// A folder of saved dumps.
pub(crate) fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// The chains of a table, each with its rules.
pub(crate) type Chains = BTreeMap<String, Vec<String>>;

/// Saved rules: for each table its chains, for each chain its rules.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Saved(pub(crate) BTreeMap<String, Chains>);

impl Saved {
    pub(crate) fn parse(text: &str) -> Self {
        let mut saved = Self::default();
        let mut table = String::new();
        for line in text.lines() {
            if let Some(name) = line.strip_prefix('*') {
                table = name.to_owned();
                saved.0.entry(table.clone()).or_default();
            } else if let Some(rest) = line.strip_prefix(':') {
                let chain = rest.split(' ').next().unwrap();
                let chains = saved.0.get_mut(&table).unwrap();
                assert!(chains.insert(chain.to_owned(), Vec::new()).is_none(), "twice: {line}");
            } else if let Some(rest) = line.strip_prefix("-A ") {
                let chain = rest.split(' ').next().unwrap();
                let chains = saved.0.get_mut(&table).unwrap();
                chains.get_mut(chain).expect(line).push(line.to_owned());
            } else {
                assert!(line == "COMMIT" || line.starts_with('#'), "{line}");
            }
        }
        saved
    }

    pub(crate) fn chain(&self, table: &str, chain: &str) -> &[String] {
        self.0[table].get(chain).map_or(&[], Vec::as_slice)
    }

    /// Sorts the rules of chains to which every Service adds, since kube-proxy goes through
    /// Services in no order; what comes after all Services stays last.
    pub(crate) fn sort_by_service(&mut self) {
        let shared =
            ["KUBE-SERVICES", "KUBE-NODEPORTS", "KUBE-EXTERNAL-SERVICES", "KUBE-PROXY-FIREWALL"];
        for chains in self.0.values_mut() {
            for chain in shared {
                if let Some(rules) = chains.get_mut(chain) {
                    let end = rules.iter().position(|rule| rule.contains("must be the last rule"));
                    let end = end.unwrap_or(rules.len());
                    rules[..end].sort();
                }
            }
        }
    }
}
