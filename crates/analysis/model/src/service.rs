//! Services: every field that kube-proxy or the cloud's controller reads.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::ingress::BackendPort;
use crate::{
    Family, Labels, Name, NamespacedName, ObjectKind, ObjectRef, Origin, Port, Protocol, Selector,
    Text, Unknown,
};

/// A Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Its name.
    pub name: NamespacedName,
    /// Its labels.
    pub labels: Labels,
    /// Its annotations, including the cloud's parameters.
    pub annotations: Labels,
    /// Its type.
    pub kind: ServiceKind,
    /// `spec.clusterIPs`; empty if none is assigned (a manifest that was never applied).
    pub cluster_ips: Vec<IpAddr>,
    /// `clusterIP: None`.
    pub headless: bool,
    /// Its ports; at least one unless it is an ExternalName or headless.
    pub ports: Vec<ServicePort>,
    /// Its selector; `None` if its endpoints are managed otherwise.
    pub selector: Option<Selector>,
    /// `spec.externalIPs`.
    pub external_ips: Vec<IpAddr>,
    /// `spec.externalTrafficPolicy`.
    pub external_policy: Policy,
    /// `spec.internalTrafficPolicy`.
    pub internal_policy: Policy,
    /// `spec.sessionAffinity: ClientIP`, with its timeout.
    pub affinity_seconds: Option<u32>,
    /// `spec.loadBalancerSourceRanges`.
    pub source_ranges: Vec<IpNet>,
    /// `spec.healthCheckNodePort`.
    pub health_check_node_port: Option<Port>,
    /// `spec.allocateLoadBalancerNodePorts`.
    pub allocates_node_ports: bool,
    /// `spec.publishNotReadyAddresses`.
    pub publishes_not_ready: bool,
    /// `spec.trafficDistribution`.
    pub traffic_distribution: Option<Text>,
    /// `spec.loadBalancerClass`.
    pub load_balancer_class: Option<Text>,
    /// `spec.ipFamilies`; empty when not stated.
    pub families: Vec<Family>,
    /// `spec.loadBalancerIP`, if it is an address.
    pub asked_address: Option<IpAddr>,
    /// `status.loadBalancer.ingress`.
    pub load_balancer: Vec<LbIngress>,
    /// Whether a cluster has the Service and states that its load balancer has no address yet.
    pub is_pending: bool,
    /// The node that announces the addresses of its load balancer, if known.
    pub holder: Option<Name>,
    /// The reasons why its flows cannot be judged.
    pub unjudged: Vec<Unknown>,
    /// Where it was written.
    pub origin: Origin,
}

impl Service {
    /// Makes a Service of which only the name is written, with the defaults of Kubernetes.
    pub fn new(name: NamespacedName, origin: Origin) -> Self {
        Self {
            name,
            labels: Labels::new(),
            annotations: Labels::new(),
            kind: ServiceKind::ClusterIp,
            cluster_ips: Vec::new(),
            headless: false,
            ports: Vec::new(),
            selector: None,
            external_ips: Vec::new(),
            external_policy: Policy::Cluster,
            internal_policy: Policy::Cluster,
            affinity_seconds: None,
            source_ranges: Vec::new(),
            health_check_node_port: None,
            allocates_node_ports: true,
            publishes_not_ready: false,
            traffic_distribution: None,
            load_balancer_class: None,
            families: Vec::new(),
            asked_address: None,
            load_balancer: Vec::new(),
            is_pending: false,
            holder: None,
            unjudged: Vec::new(),
            origin,
        }
    }

    /// Describes that the Service lacks a port, and which ports it has.
    pub fn lacks_port(&self, port: &BackendPort) -> String {
        const SHOWN: usize = 4;
        let of = |own: &ServicePort| match (port, &own.name) {
            (BackendPort::Name(_), Some(name)) => format!("{name} ({})", own.port),
            _ => own.port.to_string(),
        };
        let mut has: Vec<String> = self.ports.iter().take(SHOWN).map(of).collect();
        match self.ports.len().saturating_sub(SHOWN) {
            0 if has.is_empty() => has.push("none".to_owned()),
            0 => {}
            more => has.push(format!("{more} more")),
        }
        format!("{} has no port {port}; it has {}", self.object(), has.join(", "))
    }

    /// Returns the port that a backend names.
    pub fn port_named(&self, wanted: &BackendPort) -> Option<&ServicePort> {
        self.ports.iter().find(|port| match wanted {
            BackendPort::Number(number) => port.port == *number,
            BackendPort::Name(name) => port.name.as_ref() == Some(name),
        })
    }

    /// Returns a reference to the Service.
    pub fn object(&self) -> ObjectRef {
        ObjectRef::namespaced(ObjectKind::Service, &self.name)
    }

    /// Returns its cluster IP of a family.
    pub fn cluster_ip(&self, family: Family) -> Option<IpAddr> {
        self.cluster_ips.iter().copied().find(|ip| Family::of(*ip) == family)
    }

    /// Returns whether the address is one of its cluster IPs, external IPs or load balancer
    /// addresses.
    pub fn has_address(&self, address: IpAddr) -> bool {
        self.cluster_ips.contains(&address)
            || self.external_ips.contains(&address)
            || self.load_balancer.iter().any(|ingress| ingress.ip == Some(address))
    }

    /// Returns the load balancer addresses of a family that kube-proxy programs: `ipMode` VIP.
    pub fn vips(&self, family: Family) -> impl Iterator<Item = IpAddr> {
        self.load_balancer
            .iter()
            .filter(|ingress| ingress.mode == IpMode::Vip)
            .filter_map(|ingress| ingress.ip)
            .filter(move |ip| Family::of(*ip) == family)
    }

    /// Returns whether kube-proxy makes it reachable from outside the cluster.
    pub fn is_externally_accessible(&self) -> bool {
        matches!(self.kind, ServiceKind::NodePort | ServiceKind::LoadBalancer)
            || !self.external_ips.is_empty()
    }
}

/// `spec.type`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ServiceKind {
    /// An address inside the cluster.
    ClusterIp,
    /// In addition, a port on every node.
    NodePort,
    /// In addition, a load balancer.
    LoadBalancer,
    /// An alias for another name.
    ExternalName(Text),
}

/// `externalTrafficPolicy` or `internalTrafficPolicy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Any endpoint.
    #[default]
    Cluster,
    /// Only endpoints on the same node.
    Local,
}

/// One port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePort {
    /// Its name; required when there are several.
    pub name: Option<Text>,
    /// Its protocol.
    pub protocol: Protocol,
    /// Its number.
    pub port: Port,
    /// The port that pods listen on.
    pub target: TargetPort,
    /// The port on every node.
    pub node_port: Option<Port>,
    /// `appProtocol`.
    pub app_protocol: Option<Text>,
}

impl ServicePort {
    /// Makes a port without a name, and without a port on nodes.
    pub fn new(protocol: Protocol, port: Port, target: TargetPort) -> Self {
        Self { name: None, protocol, port, target, node_port: None, app_protocol: None }
    }
}

/// `targetPort`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TargetPort {
    /// A number.
    Number(Port),
    /// The name of a container's port.
    Name(Text),
}

impl std::fmt::Display for TargetPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(port) => port.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// An entry of `status.loadBalancer.ingress`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LbIngress {
    /// Its address.
    pub ip: Option<IpAddr>,
    /// Its host name, if the cloud assigns one instead.
    pub hostname: Option<Text>,
    /// Whether kube-proxy handles its address on the node.
    pub mode: IpMode,
}

/// `ipMode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IpMode {
    /// Traffic arrives with the VIP as its destination: kube-proxy handles it on the node.
    #[default]
    Vip,
    /// Traffic arrives as sent by the load balancer: kube-proxy does not handle the address.
    Proxy,
    /// Like `Proxy`, though the status does not say so: the cloud's own kube-proxy leaves the
    /// address to the load balancer, because of an annotation or a policy.
    LeftToBalancer,
}
