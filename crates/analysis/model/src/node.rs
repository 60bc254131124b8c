//! Nodes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::scheduling::Taint;
use crate::{Family, Labels, Name, NamespacedName, ObjectKind, ObjectRef, Origin, Text, Version};

/// A node: its object, and what Facts add.
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
    /// `spec.providerID`: `aws:///…`, `azure:///…`.
    pub provider_id: Option<Text>,
    /// Whether the condition Ready is True, or there is no status.
    pub ready: bool,
    /// The loss of the machine, if it is down.
    pub loss: Option<Loss>,
    /// `spec.unschedulable`: cordoned.
    pub unschedulable: bool,
    /// The taints that keep pods away.
    pub taints: Vec<Taint>,
    /// `status.nodeInfo.kubeProxyVersion`, if it can be parsed as a version.
    pub kube_proxy_version: Option<Version>,
    /// Whether it runs Windows: the label `kubernetes.io/os`, or `status.nodeInfo.operatingSystem`.
    pub is_windows: bool,
    /// `status.nodeInfo.kernelVersion`.
    pub kernel: Option<Text>,
    /// The reverse path filter, if stated in Facts or captured.
    pub rp_filter: Option<RpFilter>,
    /// Whether the node has internet bandwidth, if stated in Facts.
    pub public_bandwidth: Option<bool>,
    /// The security groups, if stated in Facts.
    pub security_groups: Option<Vec<Text>>,
    /// Whether the node forwards packets, if stated in Facts.
    pub forwards: Option<bool>,
    /// Whether bridged packets traverse iptables, if stated in Facts.
    pub bridge_rules: Option<bool>,
    /// Whether the VPC has routes to the node's pod ranges, if stated in Facts.
    pub routed: Option<bool>,
    /// The ranges that it reaches by its network card beside its own network, if stated in Facts.
    /// `None` for a default route.
    pub routes: Option<Vec<IpNet>>,
    /// Further addresses that it holds itself, if stated in Facts: the node delivers packets for
    /// them locally. Another node may hold the same ones.
    pub local_addresses: Vec<IpAddr>,
    /// The name that its kube-proxy takes for the node's, if it differs.
    pub proxy_name: Option<Name>,
    /// The object that tells its kube-proxy that name, and where it does.
    pub proxy_name_by: Option<(ObjectRef, Origin)>,
    /// The name that its host seems to have, if it differs and nothing tells its kube-proxy a name.
    pub host_name: Option<Name>,
    /// Whether its bridge sends frames back by the pod's link from which they came (hairpin mode),
    /// if Facts or the configuration of its network plugin state it.
    pub hairpin: Option<bool>,
    /// Where the hairpin mode is stated.
    pub hairpin_origin: Option<Origin>,
    /// Rules besides kube-proxy's, if stated in Facts.
    pub firewall: Option<Firewall>,
    /// Whether the program that announces addresses from nodes does not run on it, although the
    /// nodes on which the program runs are known.
    pub lacks_announcer: bool,
    /// Services that kube-proxy has not programmed on this node, if stated in Facts.
    pub unprogrammed: Vec<NamespacedName>,
    /// Whether there is no Node object: the node is supposed, or known from a pod's
    /// `spec.nodeName`.
    pub supposed: bool,
    /// Where it was written.
    pub origin: Origin,
}

impl Node {
    /// Returns a reference to the node.
    pub fn object(&self) -> ObjectRef {
        ObjectRef::global(ObjectKind::Node, self.name.as_str())
    }

    /// Makes a node of which only the name is known.
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
            loss: None,
            unschedulable: false,
            taints: Vec::new(),
            kube_proxy_version: None,
            is_windows: false,
            kernel: None,
            rp_filter: None,
            public_bandwidth: None,
            security_groups: None,
            forwards: None,
            bridge_rules: None,
            routed: None,
            routes: None,
            local_addresses: Vec::new(),
            proxy_name: None,
            proxy_name_by: None,
            host_name: None,
            hairpin: None,
            hairpin_origin: None,
            firewall: None,
            lacks_announcer: false,
            unprogrammed: Vec::new(),
            supposed: false,
            origin,
        }
    }

    /// Returns the name that its kube-proxy takes for the node's: endpoints on the node with that
    /// name are local for the kube-proxy.
    pub fn name_for_proxy(&self) -> &Name {
        self.proxy_name.as_ref().unwrap_or(&self.name)
    }

    /// Returns the node as its kube-proxy knows it. Under another name, it has the labels of the
    /// node with that name, and none if there is no such node.
    pub fn as_known_to_proxy(&self, all: &BTreeMap<Name, Self>) -> Cow<'_, Self> {
        let Some(name) = &self.proxy_name else { return Cow::Borrowed(self) };
        let other = all.get(name);
        let labels = other.map(|other| other.labels.clone()).unwrap_or_default();
        Cow::Owned(Self { name: name.clone(), labels, ..self.clone() })
    }

    /// Returns its first InternalIP of a family, which NodePorts and probes use.
    pub fn address(&self, family: Family) -> Option<IpAddr> {
        self.internal_ips.iter().copied().find(|ip| Family::of(*ip) == family)
    }

    /// Returns whether the address belongs to the node.
    pub fn has_address(&self, address: IpAddr) -> bool {
        self.internal_ips.contains(&address) || self.external_ips.contains(&address)
    }

    /// Returns the first two numbers of its kernel's version: 5 and 4 for `5.4.119-19.0009`.
    pub fn kernel_version(&self) -> Option<(u16, u16)> {
        let text = self.kernel.as_deref()?;
        let mut numbers = text.split(|letter: char| !letter.is_ascii_digit());
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    }

    /// Returns whether its labels are known: its object has the one that kubelets write on every
    /// node.
    pub fn has_all_labels(&self) -> bool {
        !self.supposed && self.labels.get("kubernetes.io/hostname").is_some()
    }

    /// Returns its zone, from the well-known label.
    pub fn zone(&self) -> Option<&str> {
        self.labels.get("topology.kubernetes.io/zone")
    }

    /// Returns whether a label excludes it from load balancers.
    pub fn excluded_from_load_balancers(&self) -> bool {
        self.labels.get(EXCLUDE_FROM_LOAD_BALANCERS).is_some()
    }
}

/// The label that excludes a node from load balancers.
pub const EXCLUDE_FROM_LOAD_BALANCERS: &str =
    "node.kubernetes.io/exclude-from-external-load-balancers";

/// Additional rules of a node in the format of `iptables-restore --noflush`, loaded after
/// kube-proxy's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Firewall {
    /// The text.
    pub text: Text,
    /// Where its first line was written.
    pub origin: Origin,
}

/// How far the loss of a machine is known. The machine neither answers nor forwards anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Loss {
    /// Nothing knows of it yet: health checks count the node's targets as alive if they were before.
    Unnoticed,
    /// Health checks find that the node does not answer.
    Noticed,
}

/// `net.ipv4.conf.*.rp_filter`: whether the kernel checks that the route back to a packet's
/// source uses the incoming interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RpFilter {
    /// 0: no.
    Off,
    /// 1: the route back must use the same interface.
    Strict,
    /// 2: there must be a route back.
    Loose,
}
