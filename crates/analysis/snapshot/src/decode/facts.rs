//! Reads Facts, which state what manifests cannot. Every field is optional.
//!
//! ```yaml
//! apiVersion: uturn.dev/v1alpha1
//! kind: Facts
//! spec:
//!   provider: aws                          # or none, azure, gcp …
//!   network:
//!     mode: global-router                  # or vpc-cni
//!     podCIDRs: [10.1.0.0/16]
//!     serviceCIDRs: [172.16.0.0/16]
//!     vpcCIDRs: [10.0.0.0/16]
//!     nonMasqueradeCIDRs: []
//!   kubeProxy:
//!     mode: ipvs
//!     version: v1.34.4
//!     variant: upstream                    # or a cloud that builds its own
//!     replacedBy: none                     # or cilium, calico-ebpf, kube-router …
//!   nodes:
//!     "*": {securityGroups: [sg-nodes]}    # every node; an entry for one node wins
//!     n1:
//!       rpFilter: 0
//!       publicBandwidth: false
//!       securityGroups: [sg-nodes]
//!       forwarding: true                   # net.ipv4.ip_forward
//!       bridgeRules: true                  # net.bridge.bridge-nf-call-iptables
//!       podRoutes: true                    # the VPC has routes to its pod ranges
//!       routes: [10.0.0.0/8]               # in place of a default route
//!       localAddresses: [10.0.0.50]        # that it holds beside its own
//!       kubeProxyName: ip-10-0-0-1         # what kube-proxy takes for its name
//!       hairpin: false                     # the bridge's links send nothing back
//!       unprogrammed: [shop/web]           # Services that its kube-proxy has not programmed
//!       iptables: |                        # rules of its own, beside kube-proxy's
//!         *filter
//!         -A INPUT -s 100.64.0.0/10 -j DROP
//!         COMMIT
//!   loadBalancers:
//!   - vip: 10.0.0.100
//!     name: lb-1
//!     scope: private                       # or public
//!     probeSource: vip                     # or reserved: a range of the cloud
//!     securityGroups: []
//!     listeners:
//!     - {port: 80, protocol: HTTP, snat: false, scheduler: WRR}
//!   - hostname: api.example.com            # one that no Service owns; with or without vip
//!     product: AWS NLB                     # or snat and delivery of each listener
//!     listeners:
//!     - {port: 6443, targets: {nodeLabels: {node-role.kubernetes.io/control-plane: ""}}}
//!   securityGroups:
//!     sg-nodes:
//!       inbound:                           # in order; what nothing matches is dropped
//!       - {action: accept, protocol: tcp, ports: 30000-32768, peer: 0.0.0.0/0}
//!       - {action: drop, protocol: all, ports: all, peer: all}
//!       outbound: []
//!   dns:
//!     domain: cluster.local
//!     outside: {shop.example.com: 10.0.0.100, "*.corp.example": 192.0.2.1}
//!     searches: [corp.example]               # of nodes; pods have them too
//!   declaredPortsOnly: true                # containers listen on no other ports
//! ```

mod load_balancer;
mod security_group;
mod words;

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use ipnet::IpNet;
use uturn_document::{Node, Value};
use uturn_model::cluster::Provider;
use uturn_model::lb::LoadBalancerFact;
use uturn_model::network::{NetworkMode, Plugin, SecurityGroup, Transport};
use uturn_model::network_policy::Enforcement;
use uturn_model::node::RpFilter;
use uturn_model::{Name, NamespacedName, Origin, ProxyMode, ServiceProxy, Text, Variant, Version};

use self::load_balancer::{Stated, load_balancer};
pub(crate) use self::security_group::security_group;
use super::{Doc, FromNode};

/// The values that Facts documents state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) provider: Fact<Provider>,
    pub(crate) network_plugin: Fact<Plugin>,
    pub(crate) network_mode: Fact<NetworkMode>,
    pub(crate) transport: Fact<Transport>,
    pub(crate) masquerade: Fact<bool>,
    pub(crate) policies: Fact<Enforcement>,
    pub(crate) pod_cidrs: Fact<Vec<IpNet>>,
    pub(crate) service_cidrs: Fact<Vec<IpNet>>,
    pub(crate) vpc_cidrs: Fact<Vec<IpNet>>,
    pub(crate) non_masquerade_cidrs: Fact<Vec<IpNet>>,
    pub(crate) proxy_mode: Fact<ProxyMode>,
    pub(crate) proxy_version: Fact<Version>,
    pub(crate) proxy_variant: Fact<Variant>,
    pub(crate) service_proxy: Fact<ServiceProxy>,
    pub(crate) nodes: BTreeMap<Name, NodeFacts>,
    /// The values for all nodes.
    pub(crate) every_node: NodeFacts,
    pub(crate) load_balancers: Vec<LoadBalancerFact>,
    /// The load balancers of which only the host name is stated.
    pub(crate) named_balancers: Vec<LoadBalancerFact>,
    /// The indices of load balancers by address.
    vips: HashMap<IpAddr, usize>,
    pub(crate) security_groups: BTreeMap<Text, SecurityGroup>,
    pub(crate) outside: Vec<(Text, IpAddr)>,
    pub(crate) domain: Fact<Text>,
    pub(crate) node_searches: Fact<Vec<Text>>,
    pub(crate) declared_ports_only: Fact<bool>,
}

/// A value that Facts may state, and its place.
pub(crate) type Fact<T> = Option<(T, Origin)>;

/// The values that Facts state for a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeFacts {
    pub(crate) rp_filter: Fact<RpFilter>,
    pub(crate) public_bandwidth: Fact<bool>,
    pub(crate) security_groups: Fact<Vec<Text>>,
    pub(crate) forwards: Fact<bool>,
    pub(crate) bridge_rules: Fact<bool>,
    pub(crate) routed: Fact<bool>,
    pub(crate) routes: Fact<Vec<IpNet>>,
    pub(crate) local_addresses: Fact<Vec<IpAddr>>,
    pub(crate) proxy_name: Fact<Name>,
    pub(crate) hairpin: Fact<bool>,
    pub(crate) firewall: Fact<Text>,
    pub(crate) unprogrammed: Fact<Vec<NamespacedName>>,
}

/// Reads the fields of a mapping. Any other field is a fault.
macro_rules! states {
    ($doc:ident, $map:ident, { $($key:literal => $fact:expr,)* }) => {{
        $doc.only($map, &[$($key),*]);
        $(state($doc, $map, $key, &mut $fact);)*
    }};
}

/// Reads a Facts document.
pub(crate) fn read(doc: &Doc<'_>, facts: &mut Facts) {
    doc.only(doc.root, &["apiVersion", "kind", "metadata", "spec"]);
    if doc.root.get("spec").is_none() {
        doc.missing(doc.root, "spec", "the facts to state");
    }
    if let Some(spec) = doc.map(doc.root, "spec") {
        read_spec(doc, spec, facts);
    }
}

/// Reads the `spec` of Facts.
pub(crate) fn read_spec<'d>(doc: &Doc<'d>, spec: &'d Node<'d>, facts: &mut Facts) {
    doc.only(
        spec,
        &[
            "provider",
            "network",
            "kubeProxy",
            "nodes",
            "loadBalancers",
            "securityGroups",
            "dns",
            "declaredPortsOnly",
        ],
    );
    state(doc, spec, "provider", &mut facts.provider);
    state(doc, spec, "declaredPortsOnly", &mut facts.declared_ports_only);
    if let Some(network) = doc.map(spec, "network") {
        states!(doc, network, {
            "plugin" => facts.network_plugin,
            "mode" => facts.network_mode,
            "transport" => facts.transport,
            "masquerade" => facts.masquerade,
            "policies" => facts.policies,
            "podCIDRs" => facts.pod_cidrs,
            "serviceCIDRs" => facts.service_cidrs,
            "vpcCIDRs" => facts.vpc_cidrs,
            "nonMasqueradeCIDRs" => facts.non_masquerade_cidrs,
        });
    }
    if let Some(proxy) = doc.map(spec, "kubeProxy") {
        states!(doc, proxy, {
            "mode" => facts.proxy_mode,
            "version" => facts.proxy_version,
            "variant" => facts.proxy_variant,
            "replacedBy" => facts.service_proxy,
        });
    }
    for entry in doc.entries(spec, "nodes") {
        let known = match (&*entry.key, Name::new(&*entry.key)) {
            ("*", _) => &mut facts.every_node,
            (_, Ok(name)) => facts.nodes.entry(name).or_default(),
            (key, Err(_)) => {
                doc.fault(&entry.value, format!("{key:?} is not a valid name of a node"));
                continue;
            }
        };
        if entry.value.value != Value::Null && doc.is_map(&entry.value) {
            node(doc, &entry.value, known);
        }
    }
    for item in doc.maps(spec, "loadBalancers") {
        let fact = match load_balancer(doc, item) {
            Some(Stated::At(fact)) => fact,
            Some(Stated::Named(fact)) => {
                facts.named_balancers.push(fact);
                continue;
            }
            None => continue,
        };
        let at = *facts.vips.entry(fact.vip).or_insert(facts.load_balancers.len());
        match facts.load_balancers.get(at) {
            Some(first) => {
                let message = format!(
                    "load balancer {} is defined more than once, first at {}",
                    fact.vip, first.origin
                );
                doc.fault(item, message);
            }
            None => facts.load_balancers.push(fact),
        }
    }
    for entry in doc.entries(spec, "securityGroups") {
        if !doc.is_map(&entry.value) {
            continue;
        }
        let group = security_group(doc, &entry.key, &entry.value);
        match facts.security_groups.get(&group.name) {
            Some(first) => {
                let message = format!(
                    "security group {} is defined more than once, first at {}",
                    group.name, first.origin
                );
                doc.fault(&entry.value, message);
            }
            None => drop(facts.security_groups.insert(group.name.clone(), group)),
        }
    }
    if let Some(dns) = doc.map(spec, "dns") {
        doc.only(dns, &["domain", "outside", "searches"]);
        state(doc, dns, "domain", &mut facts.domain);
        state(doc, dns, "searches", &mut facts.node_searches);
        for entry in doc.entries(dns, "outside") {
            let host: Text = (&*entry.key).into();
            facts.outside.extend(doc.value(&entry.value).map(|ip| (host, ip)));
        }
    }
}

fn node<'d>(doc: &Doc<'d>, node: &'d Node<'d>, known: &mut NodeFacts) {
    states!(doc, node, {
        "rpFilter" => known.rp_filter,
        "publicBandwidth" => known.public_bandwidth,
        "securityGroups" => known.security_groups,
        "forwarding" => known.forwards,
        "bridgeRules" => known.bridge_rules,
        "podRoutes" => known.routed,
        "routes" => known.routes,
        "localAddresses" => known.local_addresses,
        "kubeProxyName" => known.proxy_name,
        "hairpin" => known.hairpin,
        "unprogrammed" => known.unprogrammed,
        "iptables" => known.firewall,
    });
}

/// Reads a value. Reports a fault if another document states a different one.
fn state<'d, T: FromStated + PartialEq>(
    doc: &Doc<'d>,
    parent: &'d Node<'d>,
    key: &str,
    fact: &mut Fact<T>,
) {
    let (Some(node), Some(value)) = (parent.get(key), T::read(doc, parent, key)) else { return };
    match fact {
        Some((first, origin)) if *first != value => {
            doc.fault(node, format!("contradicts what {origin} states"));
        }
        Some(_) => {}
        None => *fact = Some((value, doc.origin(node))),
    }
}

/// A type that [`state`] can read: a single value or a list.
trait FromStated: Sized {
    fn read<'d>(doc: &Doc<'d>, parent: &'d Node<'d>, key: &str) -> Option<Self>;
}

impl<T: FromNode> FromStated for T {
    fn read<'d>(doc: &Doc<'d>, parent: &'d Node<'d>, key: &str) -> Option<Self> {
        doc.read(parent, key)
    }
}

impl<T: FromNode> FromStated for Vec<T> {
    fn read<'d>(doc: &Doc<'d>, parent: &'d Node<'d>, key: &str) -> Option<Self> {
        Some(doc.list(parent, key))
    }
}
