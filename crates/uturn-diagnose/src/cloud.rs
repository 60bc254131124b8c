//! Words of the cloud that the cluster is in. Where nothing names one, neutral words stand.

use uturn_model::Cluster;
use uturn_model::cluster::Provider;

/// Whether the cluster is in Tencent's cloud.
pub(crate) fn is_tke(cluster: &Cluster) -> bool {
    cluster.provider.value == Provider::Tke
}

/// What filters between nodes and the world is called here. Where Facts
/// state security groups, that is their name.
pub(crate) fn firewall(cluster: &Cluster) -> &'static str {
    match cluster.provider.value {
        Provider::Tke => "security group",
        _ if !cluster.security_groups.is_empty() => "security group",
        Provider::Other(cloud) => cloud.node_firewall().unwrap_or("network firewall"),
        Provider::Unknown | Provider::None => "network firewall",
    }
}

/// The same of more than one.
pub(crate) fn firewalls(cluster: &Cluster) -> String {
    format!("{}s", firewall(cluster))
}

/// Where to look at it: `in the console`, `in AWS`, `around the nodes`.
pub(crate) fn place(cluster: &Cluster) -> String {
    match cluster.provider.value {
        Provider::Tke => "in the console".to_owned(),
        Provider::Other(cloud) if cloud.node_firewall().is_some() => format!("in {cloud}"),
        _ => "around the nodes".to_owned(),
    }
}

/// What a line begins with that says what to do in the cloud: nothing where none is known.
pub(crate) fn at_place(cluster: &Cluster) -> &'static str {
    if is_tke(cluster) { "in the console, " } else { "" }
}

/// The last port that node ports are taken from, as the cloud's pages say it: upstream's
/// default but for Tencent's.
pub(crate) fn last_node_port(cluster: &Cluster) -> u16 {
    if is_tke(cluster) { 32_768 } else { 32_767 }
}

/// The range that node ports are taken from.
pub(crate) fn node_ports(cluster: &Cluster) -> String {
    format!("30000-{}", last_node_port(cluster))
}
