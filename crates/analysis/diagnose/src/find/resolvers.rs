//! The name servers that pods ask.

use uturn_model::pod::{DnsPolicy, PodSpec};

/// Returns whether pods ask the cluster's name servers.
pub(super) fn asks_cluster(spec: &PodSpec) -> bool {
    match spec.dns_policy {
        DnsPolicy::ClusterFirst => !spec.host_network,
        DnsPolicy::ClusterFirstWithHostNet => true,
        DnsPolicy::Default | DnsPolicy::None => false,
    }
}
