//! The words of the cluster's cloud. Neutral words are used if nothing states the cloud.

use uturn_clouds::cloud::{self, KubeProxyBuilds, Words};
use uturn_model::{Cluster, Ipv4Net};

/// Returns all words of the cluster's cloud.
pub(crate) fn words(cluster: &Cluster) -> &'static Words {
    cloud::words(cluster)
}

/// Returns the name of the filter between nodes and other networks. If Facts state security groups,
/// that is the name.
pub(crate) fn firewall(cluster: &Cluster) -> &'static str {
    let is_modelled = cloud::model(cluster).is_some();
    match words(cluster).node_firewall {
        _ if !is_modelled && !cluster.security_groups.is_empty() => "security group",
        Some(name) => name,
        None => "network firewall",
    }
}

/// Returns the plural of [`firewall`].
pub(crate) fn firewalls(cluster: &Cluster) -> String {
    format!("{}s", firewall(cluster))
}

/// Returns the place of the filter: `in the console`, `in AWS`, `around the nodes`.
pub(crate) fn place(cluster: &Cluster) -> String {
    let words = words(cluster);
    match (words.console, cluster.provider.value.name()) {
        (Some(console), _) => console.to_owned(),
        (None, Some(cloud)) if words.node_firewall.is_some() => format!("in {cloud}"),
        _ => "around the nodes".to_owned(),
    }
}

/// Returns the beginning of an instruction for the cloud. Empty if nothing is known of its console.
pub(crate) fn at_place(cluster: &Cluster) -> String {
    words(cluster).console.map_or_else(String::new, |console| format!("{console}, "))
}

/// Returns the last port of the range of node ports, as the cloud's pages state it.
pub(crate) fn last_node_port(cluster: &Cluster) -> u16 {
    words(cluster).last_node_port
}

/// Returns the range of node ports.
pub(crate) fn node_ports(cluster: &Cluster) -> String {
    format!("30000-{}", last_node_port(cluster))
}

/// Returns the range of health checks' sources if these are not the load balancer's own address.
pub(crate) fn probe_range(cluster: &Cluster) -> Ipv4Net {
    let model = cloud::model(cluster);
    model.map_or(cloud::USUAL_PROBE_RANGES, |model| model.probe_ranges()).v4
}

/// Returns the builds of kube-proxy that bind load-balancer addresses on request: those of the
/// cluster's variant or cloud, or else the first known ones.
pub(crate) fn builds(cluster: &Cluster) -> Option<&'static KubeProxyBuilds> {
    let own = cloud::builds_of(cluster.proxy.variant.value);
    let of_cloud = || cluster.provider.value.cloud().and_then(cloud::entry)?.kube_proxy;
    own.or_else(of_cloud).or_else(|| cloud::kube_proxy_builds().next().map(|(_, builds)| builds))
}
