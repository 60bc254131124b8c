//! Nodes.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::{Family, Kind, Labels, Name, NamespacedName, ObjectRef, Origin, Text, Version};

/// A node: what Kubernetes says of it, and what Facts add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: Name,
    /// Its labels.
    pub labels: Labels,
    /// Its annotations.
    pub annotations: Labels,
    /// `status.addresses` of type InternalIP, in order.
    pub internal_ips: Vec<IpAddr>,
    /// `status.addresses` of type ExternalIP, in order.
    pub external_ips: Vec<IpAddr>,
    /// `spec.podCIDRs`.
    pub pod_cidrs: Vec<IpNet>,
    /// The addresses of the node's end of the tunnel to other nodes' pods.
    pub tunnel_ips: Vec<IpAddr>,
    /// `spec.providerID`: `qcloud:///…`, `aws:///…`.
    pub provider_id: Option<Text>,
    /// The Ready condition is True (or there is no status to say otherwise).
    pub ready: bool,
    /// `spec.unschedulable`: cordoned.
    pub unschedulable: bool,
    /// `status.nodeInfo.kubeProxyVersion`, where it reads as a version.
    pub kube_proxy_version: Option<Version>,
    /// `status.nodeInfo.kernelVersion`.
    pub kernel: Option<Text>,
    /// Source validation, where Facts or a capture say it.
    pub rp_filter: Option<RpFilter>,
    /// Whether the node has bandwidth to the internet, where Facts say it.
    pub public_bandwidth: Option<bool>,
    /// Security groups, where Facts say them.
    pub security_groups: Option<Vec<Text>>,
    /// Whether the node passes on packets that are not for itself, where Facts say it.
    pub forwards: Option<bool>,
    /// Whether rules see what the node's bridge passes, where Facts say it.
    pub bridge_rules: Option<bool>,
    /// Whether the VPC has routes to the node's pod ranges, where Facts say it.
    pub routed: Option<bool>,
    /// Rules that the node has beside kube-proxy's, where Facts say them.
    pub firewall: Option<Firewall>,
    /// Services that kube-proxy has not programmed on this node, where Facts say so.
    pub unprogrammed: Vec<NamespacedName>,
    /// Whether there is a Node object, or the node was supposed or taken from a pod's
    /// `spec.nodeName`.
    pub supposed: bool,
    /// Where it was written.
    pub origin: Origin,
}

impl Node {
    /// Itself, to be named.
    pub fn object(&self) -> ObjectRef {
        ObjectRef::global(Kind::Node, self.name.as_str())
    }

    /// A node of which nothing but the name is known.
    pub fn new(name: Name, origin: Origin) -> Self {
        Self {
            name,
            labels: Labels::new(),
            annotations: Labels::new(),
            internal_ips: Vec::new(),
            external_ips: Vec::new(),
            pod_cidrs: Vec::new(),
            tunnel_ips: Vec::new(),
            provider_id: None,
            ready: true,
            unschedulable: false,
            kube_proxy_version: None,
            kernel: None,
            rp_filter: None,
            public_bandwidth: None,
            security_groups: None,
            forwards: None,
            bridge_rules: None,
            routed: None,
            firewall: None,
            unprogrammed: Vec::new(),
            supposed: false,
            origin,
        }
    }

    /// Its first InternalIP of a family: where NodePorts and probes reach it.
    pub fn address(&self, family: Family) -> Option<IpAddr> {
        self.internal_ips.iter().copied().find(|ip| Family::of(*ip) == family)
    }

    /// Whether this address is the node's own.
    pub fn has_address(&self, address: IpAddr) -> bool {
        self.internal_ips.contains(&address) || self.external_ips.contains(&address)
    }

    /// The first two numbers of its kernel's version: `5.4.119-19.0009` is 5 and 4.
    pub fn kernel_version(&self) -> Option<(u16, u16)> {
        let text = self.kernel.as_deref()?;
        let mut numbers = text.split(|letter: char| !letter.is_ascii_digit());
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    }

    /// Its zone, from the well-known label.
    pub fn zone(&self) -> Option<&str> {
        self.labels.get("topology.kubernetes.io/zone")
    }

    /// Whether the label takes it out of every load balancer.
    pub fn excluded_from_load_balancers(&self) -> bool {
        self.labels.get("node.kubernetes.io/exclude-from-external-load-balancers").is_some()
    }
}

/// Rules of a node's own, as `iptables-restore --noflush` takes them: added after
/// kube-proxy's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Firewall {
    /// The text.
    pub text: Text,
    /// Where its first line was written.
    pub origin: Origin,
}

/// `net.ipv4.conf.*.rp_filter`: does the kernel check that the way back to a packet's
/// source is the way it came?
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RpFilter {
    /// 0: no.
    Off,
    /// 1: the way back must be the same interface.
    Strict,
    /// 2: there must be a way back.
    Loose,
}
