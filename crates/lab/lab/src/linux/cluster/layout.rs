//! The addresses of a cluster in a box.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::{IpNet, Ipv4Net};
use serde_json::{Value, json};
use uturn_model::network::NetworkMode;
use uturn_model::{Cluster, Family, ProxyMode, Variant};
use uturn_snapshot::Source;

use super::manifests::Prepared;
use super::parts::Parts;
use crate::LabError;

/// The range of Services, unless a Service shows another one.
const SERVICES: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 0);

/// The range of public load balancers, which is reserved for documentation.
pub(super) const PUBLIC: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(203, 0, 113, 0), 25);

/// The prefix of the range of private load balancers.
const BALANCERS: u8 = 26;

/// The Service of the cluster's DNS.
pub(super) const DNS_SERVICE: (&str, &str) = ("kube-system", "kube-dns");

/// The cluster to build, and its addresses.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// The nodes and the network between them.
    pub(super) cluster: Cluster,
    /// The range of Services.
    pub(super) services: Ipv4Net,
    /// The range that contains the pod ranges of all nodes.
    pub(super) pods: Ipv4Net,
    /// The address of the API server in the fabric.
    pub(super) api: Ipv4Addr,
    /// The address of the cluster's DNS Service.
    pub(super) dns: Ipv4Addr,
    /// The range that private load balancers get their addresses from.
    pub(super) balancers: Ipv4Net,
}

impl Layout {
    pub(super) fn of(prepared: &Prepared) -> Result<Self, LabError> {
        let items: Vec<&Value> = prepared.nodes.iter().chain(&prepared.objects).collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        let source = Source { name: "manifests".into(), text: list.to_string() };
        let loaded = uturn_snapshot::read(vec![source]).map_err(|faults| {
            let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
            LabError::Cluster(faults.join("\n"))
        })?;
        let mut cluster = loaded.cluster;
        // Only nodes that have an object are built.
        cluster.nodes.retain(|_, node| !node.supposed);
        if cluster.network.mode.value == NetworkMode::VpcCni {
            let why = "pods with addresses of the VPC (VPC-CNI); a cluster in a box gives pods the \
                       ranges of their nodes";
            return Err(LabError::Cluster(why.into()));
        }
        for node in cluster.nodes.values() {
            if node.address(Family::V4).is_none() || v4_range(&node.pod_cidrs).is_none() {
                let why = "has no IPv4 address (InternalIP) or no range of pods (spec.podCIDR)";
                return Err(LabError::Cluster(format!("node {} {why}", node.name)));
            }
        }
        let services = services(&cluster)?;
        let ranges = cluster.nodes.values().filter_map(|node| v4_range(&node.pod_cidrs));
        let pods =
            covering(ranges).ok_or_else(|| LabError::Cluster("there are no nodes".into()))?;
        let shown: Vec<Ipv4Addr> =
            prepared.shown.iter().filter_map(|shown| shown.address).collect();
        let api = free_address(&cluster, &shown);
        let balancers = free_range(&cluster, &[services, pods], api);
        Ok(Self { services, pods, api, dns: dns(&cluster, services), balancers, cluster })
    }

    /// Returns the network (VPC) of the nodes and the private load balancers.
    pub(super) fn network(&self) -> Ipv4Net {
        around(first_node(&self.cluster))
    }

    /// Returns the facts about the cluster that its objects do not state, as a Facts document.
    pub(super) fn facts(&self, mode: ProxyMode, parts: &Parts) -> Value {
        let mut proxy = json!({"mode": mode.as_str()});
        if let Some(version) = &parts.kube_proxy_version {
            proxy["version"] = json!(version);
        }
        if let Some(build) = parts.vendor_build {
            proxy["variant"] = json!(Variant::Cloud(build.cloud).word());
        }
        json!({
            "apiVersion": "uturn.dev/v1alpha1", "kind": "Facts",
            "spec": {
                "provider": "tke", "kubeProxy": proxy,
                "network": {
                    "vpcCIDRs": [self.network()], "podCIDRs": [self.pods],
                    "serviceCIDRs": [self.services],
                },
            },
        })
    }

    /// Returns whether an address is private, or belongs to the network.
    pub(super) fn is_private(&self, address: Ipv4Addr) -> bool {
        address.is_private() || self.network().contains(&address)
    }
}

/// Returns a node's first IPv4 range of pods.
pub(super) fn v4_range(ranges: &[IpNet]) -> Option<Ipv4Net> {
    ranges.iter().find_map(|range| match range {
        IpNet::V4(net) => Some(*net),
        IpNet::V6(_) => None,
    })
}

/// Returns the smallest range that contains all of these; `None` if there are none.
fn covering(ranges: impl Iterator<Item = Ipv4Net>) -> Option<Ipv4Net> {
    ranges.reduce(|mut range, other| {
        while !range.contains(&other) {
            range = range.supernet().expect("a range of all addresses contains any other");
        }
        range
    })
}

/// Returns the /16 around the clusterIPs.
fn services(cluster: &Cluster) -> Result<Ipv4Net, LabError> {
    let ips = cluster.services.values().flat_map(|service| &service.cluster_ips);
    let ips: Vec<Ipv4Addr> = ips
        .filter_map(|ip| match ip {
            IpAddr::V4(ip) => Some(*ip),
            IpAddr::V6(_) => None,
        })
        .collect();
    let first = ips.first().copied().unwrap_or(SERVICES);
    let range = Ipv4Net::new_assert(first, 16).trunc();
    match ips.iter().find(|ip| !range.contains(*ip)) {
        Some(other) => Err(LabError::Cluster(format!(
            "the clusterIPs {first} and {other} are in no range of 65536 addresses"
        ))),
        None => Ok(range),
    }
}

fn first_node(cluster: &Cluster) -> Ipv4Addr {
    let node = cluster.nodes.values().find_map(|node| match node.address(Family::V4) {
        Some(IpAddr::V4(ip)) => Some(ip),
        _ => None,
    });
    node.unwrap_or(Ipv4Addr::new(10, 0, 0, 11))
}

fn around(ip: Ipv4Addr) -> Ipv4Net {
    Ipv4Net::new_assert(ip, 16).trunc()
}

/// Returns the first free range of the nodes' network, searching from the first node's range on.
fn free_range(cluster: &Cluster, others: &[Ipv4Net], api: Ipv4Addr) -> Ipv4Net {
    let first = first_node(cluster);
    let all = around(first).subnets(BALANCERS).into_iter().flatten();
    let begin = Ipv4Net::new_assert(first, 24).trunc().network();
    let is_free = |range: &Ipv4Net| {
        let overlaps = |other: &Ipv4Net| range.contains(other) || other.contains(range);
        let has_node = cluster.nodes.values().any(|node| {
            node.internal_ips.iter().any(|ip| matches!(ip, IpAddr::V4(ip) if range.contains(ip)))
        });
        !has_node && !range.contains(&api) && !others.iter().any(overlaps)
    };
    let mut later = all.clone().filter(|range| range.network() >= begin);
    let found = later.find(is_free).or_else(|| all.clone().find(is_free));
    // A network without a free range is full of nodes, so public addresses are used instead.
    found.unwrap_or(PUBLIC)
}

/// Returns the first address of the first node's range that nothing in the cluster has.
fn free_address(cluster: &Cluster, balancers: &[Ipv4Addr]) -> Ipv4Addr {
    let net = Ipv4Net::new_assert(first_node(cluster), 24).trunc();
    let is_free = |ip: &Ipv4Addr| {
        let has_ip = |node: &uturn_model::Node| node.has_address(IpAddr::V4(*ip));
        !cluster.nodes.values().any(has_ip) && !balancers.contains(ip)
    };
    // In most networks the first address is a router's.
    net.hosts().skip(1).find(is_free).unwrap_or(net.network())
}

/// Returns the clusterIP of the DNS Service, or the tenth address of the range.
fn dns(cluster: &Cluster, services: Ipv4Net) -> Ipv4Addr {
    let (namespace, name) = DNS_SERVICE;
    let found = cluster
        .services
        .iter()
        .find(|(own, _)| own.namespace.as_str() == namespace && own.name.as_str() == name);
    let ip = found.and_then(|(_, service)| service.cluster_ips.first().copied());
    match ip {
        Some(IpAddr::V4(ip)) => ip,
        _ => Ipv4Addr::from_bits(services.network().to_bits() + 10),
    }
}

#[cfg(test)]
mod tests {
    use super::super::manifests::prepare;
    use super::*;

    fn service(name: &str, ip: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"namespace": "kube-system", "name": name},
            "spec": {"clusterIP": ip, "selector": {"a": "b"}, "ports": [{"port": 53}]},
        })
    }

    #[test]
    fn addresses_follow_from_the_manifests() {
        let layout = Layout::of(&prepare(Vec::new(), None)).unwrap();
        assert_eq!(layout.services, "172.16.0.0/16".parse().unwrap());
        assert_eq!(layout.dns, Ipv4Addr::new(172, 16, 0, 10));
        assert_eq!(layout.api, Ipv4Addr::new(10, 0, 0, 2));
        assert_eq!(layout.pods, "10.1.0.0/22".parse().unwrap());
        assert_eq!(layout.cluster.nodes.len(), 3);
        assert_eq!(layout.balancers, "10.0.0.64/26".parse().unwrap());
        let layout = Layout::of(&prepare(vec![service("kube-dns", "10.96.0.7")], Some(1))).unwrap();
        assert_eq!(layout.services, "10.96.0.0/16".parse().unwrap());
        assert_eq!(layout.dns, Ipv4Addr::new(10, 96, 0, 7));
        assert_eq!(layout.cluster.nodes.len(), 1);
    }

    #[test]
    fn services_must_share_a_range() {
        let all = vec![service("a", "10.96.0.7"), service("b", "10.97.0.7")];
        let error = Layout::of(&prepare(all, None)).unwrap_err().to_string();
        assert!(error.contains("10.96.0.7 and 10.97.0.7"), "{error}");
    }
}
