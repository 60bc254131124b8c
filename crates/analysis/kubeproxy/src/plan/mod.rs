//! The decisions of kube-proxy that are the same in every mode.
//!
//! A [`Plan`] is one node's view of the Services in one family. The writers of the modes turn the
//! same plan into different rules.

mod endpoints;
mod node;

use std::collections::HashMap;
use std::net::IpAddr;

use ipnet::IpNet;
use uturn_model::service::{IpMode, Policy, ServiceKind, ServicePort};
use uturn_model::{Cluster, Family, Labels, Node, Port, Protocol, ProxySettings, Service};

use crate::features::{Planning, ZoneHints};
use crate::switches::Switches;

use endpoints::SlicesByPort;
pub(crate) use endpoints::{Backend, Backends};
pub(crate) use node::{Local, NodeFacts, NodePortsOn};

/// The Service ports that kube-proxy programs on one node, in one family.
pub(crate) struct Plan<'a> {
    /// The family of every address in the plan.
    pub(crate) family: Family,
    /// The node.
    pub(crate) node: NodeFacts<'a>,
    /// Every Service port that the node serves, by Service name.
    pub(crate) ports: Vec<PortPlan<'a>>,
    /// The total number of endpoints of these ports, ready or not.
    pub(crate) endpoints: usize,
}

impl<'a> Plan<'a> {
    pub(crate) fn new(
        cluster: &'a Cluster,
        node: &'a Node,
        settings: &'a ProxySettings,
        family: Family,
        planning: Planning,
    ) -> Self {
        let mut plan = Self {
            family,
            node: NodeFacts::new(node, settings, family, planning),
            ports: Vec::with_capacity(cluster.services.len()),
            endpoints: 0,
        };
        for service in cluster.services.values().filter(|service| is_served(service)) {
            let Some(cluster_ip) = service.cluster_ip(family) else { continue };
            let mut slices: Vec<_> = cluster.slices(&service.name).iter().collect();
            slices.retain(|slice| slice.family == family);
            slices.sort_by(|a, b| a.name.cmp(&b.name));
            let slices = SlicesByPort::of(&slices);
            for port in last_of_each_key(&service.ports) {
                let mut planned = PortPlan::new(service, port, (cluster_ip, family), planning);
                plan.endpoints += planned.add_backends(&slices, node);
                plan.ports.push(planned);
            }
        }
        plan
    }
}

/// One port of one Service on this node.
pub(crate) struct PortPlan<'a> {
    /// `namespace/service:port`, or without `:port` if the port has no name.
    pub(crate) name: String,
    /// The port's name.
    key: &'a str,
    planning: Planning,
    /// Whether endpoints' hints for zones are used.
    heeds_zone_hints: bool,
    pub(crate) protocol: Protocol,
    pub(crate) port: Port,
    pub(crate) cluster_ip: IpAddr,
    pub(crate) external_ips: Vec<IpAddr>,
    /// Load-balancer addresses that kube-proxy serves on the node.
    pub(crate) vips: Vec<IpAddr>,
    /// The source ranges that may use the [`vips`](Self::vips). If empty, all sources may.
    pub(crate) source_ranges: Vec<IpNet>,
    pub(crate) node_port: Option<Port>,
    pub(crate) health_check: Option<Port>,
    /// Whether traffic to the cluster IP uses endpoints on this node only.
    pub(crate) internal_local: bool,
    /// Whether traffic to every other address uses endpoints on this node only.
    pub(crate) external_local: bool,
    pub(crate) affinity_seconds: Option<u32>,
    /// The Service's annotations: one may ask kube-proxy to bind the load-balancer addresses.
    pub(crate) annotations: &'a Labels,
    pub(crate) backends: Backends,
}

impl<'a> PortPlan<'a> {
    fn new(
        service: &'a Service,
        port: &'a ServicePort,
        (cluster_ip, family): (IpAddr, Family),
        planning: Planning,
    ) -> Self {
        let switches = Switches::of(service);
        let key = port.name.as_deref().unwrap_or_default();
        let (namespace, name) = (service.name.namespace.as_str(), service.name.name.as_str());
        let has_kind = matches!(service.kind, ServiceKind::NodePort | ServiceKind::LoadBalancer);
        let is_outside = if planning.policy_for_external_ips {
            service.is_externally_accessible()
        } else {
            has_kind
        };
        let external_local = service.external_policy == Policy::Local && is_outside;
        let takes_probes = external_local
            && service.kind == ServiceKind::LoadBalancer
            && planning.accepts_health_checks;
        let of_family = |ip: &IpAddr| Family::of(*ip) == family;
        Self {
            name: match key {
                "" => [namespace, "/", name].concat(),
                _ => [namespace, "/", name, ":", key].concat(),
            },
            key,
            planning,
            heeds_zone_hints: heeds_zone_hints(switches, planning),
            protocol: port.protocol,
            port: port.port,
            cluster_ip,
            external_ips: service.external_ips.iter().copied().filter(of_family).collect(),
            vips: if planning.reads_ip_mode {
                service.vips(family).collect()
            } else {
                let all = service.load_balancer.iter();
                let own = all.filter(|entry| entry.mode != IpMode::LeftToBalancer);
                own.filter_map(|entry| entry.ip).filter(of_family).collect()
            },
            source_ranges: source_ranges(service, family, planning),
            node_port: port.node_port,
            health_check: service.health_check_node_port.filter(|_| takes_probes),
            internal_local: planning.reads_internal_policy
                && service.internal_policy == Policy::Local,
            external_local,
            affinity_seconds: service.affinity_seconds,
            annotations: &service.annotations,
            backends: Backends::default(),
        }
    }

    /// Returns whether the port has any address besides the cluster IP, in this family.
    pub(crate) fn is_external(&self) -> bool {
        self.node_port.is_some() || !self.vips.is_empty() || !self.external_ips.is_empty()
    }

    /// Returns whether any rule on this node may lead to every endpoint. This is always true for a
    /// port with external addresses, since the node's own traffic ignores the external policy.
    fn uses_cluster(&self) -> bool {
        !self.internal_local || self.is_external()
    }

    /// Returns whether any rule on this node leads only to endpoints on the node.
    pub(crate) fn uses_local(&self) -> bool {
        self.internal_local || (self.external_local && self.is_external())
    }

    /// Returns whether traffic to the cluster IP finds an endpoint.
    pub(crate) fn serves_internal(&self) -> bool {
        self.backends.any && (!self.internal_local || self.backends.any_local())
    }

    /// Returns whether traffic from outside to any other address finds an endpoint.
    pub(crate) fn serves_external(&self) -> bool {
        self.backends.any && (!self.external_local || self.backends.any_local())
    }
}

/// Returns whether kube-proxy programs a Service. (It also skips Services without a cluster IP of
/// the family.)
fn is_served(service: &Service) -> bool {
    !service.headless
        && !matches!(service.kind, ServiceKind::ExternalName(_))
        && !Switches::of(service).is_left_to_others
}

/// Returns the ports that kube-proxy programs. It identifies a port by name and protocol, and of
/// several with the same key, the last one is used.
fn last_of_each_key(ports: &[ServicePort]) -> impl Iterator<Item = &ServicePort> {
    let last: HashMap<_, usize> =
        ports.iter().enumerate().map(|(place, port)| (key(port), place)).collect();
    let all = ports.iter().enumerate();
    all.filter(move |(place, port)| last[&key(port)] == *place).map(|(_, port)| port)
}

fn key(port: &ServicePort) -> (&str, Protocol) {
    (port.name.as_deref().unwrap_or_default(), port.protocol)
}

/// Returns whether a Service asks for its endpoints' hints for zones to be used.
fn heeds_zone_hints(switches: Switches, planning: Planning) -> bool {
    match planning.zone_hints {
        ZoneHints::Never => false,
        ZoneHints::OnAuto => switches.asks_for_hints,
        ZoneHints::UnlessDisabled => switches.allows_hints,
        ZoneHints::Always => true,
    }
}

/// Returns the source ranges of a family. In some versions, a range that contains every address
/// means the same as no ranges.
fn source_ranges(service: &Service, family: Family, planning: Planning) -> Vec<IpNet> {
    let of_family = |net: &&IpNet| Family::of(net.addr()) == family;
    let ranges: Vec<IpNet> =
        service.source_ranges.iter().filter(of_family).map(IpNet::trunc).collect();
    let is_open = ranges.iter().any(|net| net.prefix_len() == 0);
    if is_open && planning.open_range_is_none { Vec::new() } else { ranges }
}
