//! Load balancers that Facts state. For one that a Service or an Ingress owns, the statement
//! overrides what was derived from that object; one without an owner exists only because Facts
//! state it.

use std::net::IpAddr;

use super::{Delivery, ListenerProtocol, ProxyVersion, Scheduler, Scope, StatedProbeSource};
use crate::{Labels, Name, NamespacedName, Node, ObjectKind, ObjectRef, Origin, Port, Text};

/// A load balancer in Facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadBalancerFact {
    /// Its address, which identifies it.
    pub vip: IpAddr,
    /// Its display name.
    pub name: Option<Text>,
    /// The host name that leads to it.
    pub hostname: Option<Text>,
    /// The zone whose targets it serves at this address.
    pub zone: Option<Text>,
    /// The product, whose behaviour is assumed where nothing more is stated.
    pub product: Option<Text>,
    /// Its scope.
    pub scope: Option<Scope>,
    /// The source address of its health checks.
    pub probe_source: Option<StatedProbeSource>,
    /// Whether it was measured that it behaves as is assumed of its kind.
    pub measured: bool,
    /// Its security groups.
    pub security_groups: Option<Vec<Text>>,
    /// Its listeners.
    pub listeners: Vec<ListenerFact>,
    /// Where it was written.
    pub origin: Origin,
}

/// A listener in Facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerFact {
    /// Its port, which identifies it.
    pub port: Port,
    /// Its protocol.
    pub protocol: Option<ListenerProtocol>,
    /// Whether it translates the source address (SNAT).
    pub snat: Option<bool>,
    /// The delivery of packets to a target.
    pub delivery: Option<Delivery>,
    /// Whether it probes its targets.
    pub health_check: Option<bool>,
    /// The PROXY header that it sends.
    pub proxy_header: Option<ProxyVersion>,
    /// The scheduler that selects a target.
    pub scheduler: Option<Scheduler>,
    /// Its targets, if no Service owns it.
    pub targets: Option<StatedTargets>,
    /// Where it was written.
    pub origin: Origin,
}

/// The targets of a listener that no Service owns: a port of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatedTargets {
    /// The nodes.
    pub nodes: TargetNodes,
    /// The port that is called on these nodes.
    pub port: Port,
}

/// The nodes that are targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetNodes {
    /// Every node.
    All,
    /// The nodes with these names.
    Named(Vec<Name>),
    /// The nodes that have all of these labels.
    Labelled(Labels),
}

impl TargetNodes {
    /// Returns whether a node is one of them.
    pub fn contains(&self, node: &Node) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => names.contains(&node.name),
            Self::Labelled(labels) => node.labels.contains_all(labels),
        }
    }
}

impl LoadBalancerFact {
    /// Makes a load balancer of which only the address is stated.
    pub fn new(vip: IpAddr, origin: Origin) -> Self {
        Self {
            vip,
            name: None,
            hostname: None,
            zone: None,
            product: None,
            scope: None,
            probe_source: None,
            measured: false,
            security_groups: None,
            listeners: Vec::new(),
            origin,
        }
    }

    /// Returns its display name: its name, else its host name, else its address.
    pub fn called(&self) -> Text {
        let named = self.name.as_ref().or(self.hostname.as_ref());
        named.cloned().unwrap_or_else(|| self.vip.to_string().into())
    }

    /// Returns a reference to the load balancer.
    pub fn object(&self) -> ObjectRef {
        ObjectRef::global(ObjectKind::LoadBalancer, self.called())
    }

    /// Returns its listeners that no Service owns, with their targets.
    pub fn own_listeners(&self) -> impl Iterator<Item = (&ListenerFact, &StatedTargets)> {
        self.listeners.iter().filter_map(|listener| Some((listener, listener.targets.as_ref()?)))
    }

    /// Returns whether a node is a target of such a listener.
    pub fn has_target(&self, targets: &StatedTargets, node: &Node) -> bool {
        let is_of_zone = self.zone.is_none() || self.zone.as_deref() == node.zone();
        is_of_zone && targets.nodes.contains(node)
    }

    /// Returns the name that replaces a Service's if none owns a listener. No namespace has a dot
    /// in its name.
    pub fn no_service() -> NamespacedName {
        NamespacedName::new("no.service", "facts").expect("constant names")
    }
}

impl ListenerFact {
    /// Makes a listener of which only the port is stated.
    pub fn new(port: Port, origin: Origin) -> Self {
        Self {
            port,
            protocol: None,
            snat: None,
            delivery: None,
            health_check: None,
            proxy_header: None,
            scheduler: None,
            targets: None,
            origin,
        }
    }
}
