//! The part of a Service that a walk reads, without names, addresses and ports on nodes.

use uturn_kubeproxy::Switches;
use uturn_model::proxy::AddressBinding;
use uturn_model::service::{IpMode, LbIngress, Policy, ServiceKind, ServicePort, TargetPort};
use uturn_model::{Family, IpNet, Name, Port, Protocol, Service, Text, Unknown};

/// The part of a Service that a walk reads, without names, addresses and ports on nodes.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct ServiceKey<'a> {
    switches: Switches,
    /// Whether nodes bind its load-balancer addresses in IPVS mode.
    binds_vips: bool,
    kind: &'a ServiceKind,
    is_headless: bool,
    ports: Vec<PortKey<'a>>,
    policies: [Policy; 2],
    affinity_seconds: Option<u32>,
    source_ranges: &'a [IpNet],
    allocates_node_ports: bool,
    publishes_not_ready: bool,
    traffic_distribution: Option<&'a Text>,
    load_balancer_class: Option<&'a Text>,
    families: &'a [Family],
    load_balancer: Vec<EntryKey>,
    holder: Option<&'a Name>,
    unjudged: &'a [Unknown],
}

#[derive(PartialEq, Eq, Hash)]
struct PortKey<'a> {
    name: Option<&'a Text>,
    protocol: Protocol,
    port: Port,
    target: &'a TargetPort,
}

/// An entry of `status.loadBalancer.ingress`.
#[derive(PartialEq, Eq, Hash)]
struct EntryKey {
    has_ip: bool,
    has_hostname: bool,
    mode: IpMode,
}

impl<'a> ServiceKey<'a> {
    pub(crate) fn of(service: &'a Service, binding: AddressBinding) -> Self {
        let Service {
            kind,
            headless,
            ports,
            external_policy,
            internal_policy,
            affinity_seconds,
            source_ranges,
            allocates_node_ports,
            publishes_not_ready,
            traffic_distribution,
            load_balancer_class,
            families,
            load_balancer,
            holder,
            unjudged,
            // These are read by kube-proxy through `Switches` and the binding, and by the cloud's
            // controller, whose load balancers have separate keys.
            labels: _,
            annotations,
            // The signature contains these by their order.
            cluster_ips: _,
            external_ips: _,
            health_check_node_port: _,
            // No walk reads whether an address is still to be assigned, or which one is asked for.
            asked_address: _,
            is_pending: _,
            // The selector does not matter because endpoints are given.
            selector: _,
            name: _,
            origin: _,
        } = service;
        Self {
            switches: Switches::of(service),
            binds_vips: binding.binds(annotations),
            kind,
            is_headless: *headless,
            ports: ports.iter().map(PortKey::of).collect(),
            policies: [*external_policy, *internal_policy],
            affinity_seconds: *affinity_seconds,
            source_ranges,
            allocates_node_ports: *allocates_node_ports,
            publishes_not_ready: *publishes_not_ready,
            traffic_distribution: traffic_distribution.as_ref(),
            load_balancer_class: load_balancer_class.as_ref(),
            families,
            load_balancer: load_balancer.iter().map(EntryKey::of).collect(),
            holder: holder.as_ref(),
            unjudged,
        }
    }
}

impl<'a> PortKey<'a> {
    fn of(port: &'a ServicePort) -> Self {
        // Node ports are in the signature by their order; nothing reads `appProtocol`.
        let ServicePort { name, protocol, port, target, node_port: _, app_protocol: _ } = port;
        Self { name: name.as_ref(), protocol: *protocol, port: *port, target }
    }
}

impl EntryKey {
    fn of(entry: &LbIngress) -> Self {
        let LbIngress { ip, hostname, mode } = entry;
        Self { has_ip: ip.is_some(), has_hostname: hostname.is_some(), mode: *mode }
    }
}
