//! A kind of load balancer that a controller makes for Services, as data: what it does on each
//! port, read from the Service. [`made`](super::made) makes listeners and targets of it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use uturn_model::lb::{
    Delivery, Doubt, HealthCheck, HealthQuestion, ListenerProtocol, ProbeRanges, ProbeSource,
    Profile, Scheduler, Source, Statuses,
};
use uturn_model::service::{Policy, ServicePort};
use uturn_model::{
    Cluster, Family, IpNet, Ipv4Net, Ipv6Net, NamespacedName, Node, Pod, Protocol, Service,
};

/// A kind of load balancer that a controller makes for Services.
pub trait Product: Sync {
    /// What its vendor calls it.
    fn name(&self) -> &'static str;

    /// What it does with connections to a port of a Service, at an address of a family. Returns
    /// `None` if it does not listen there.
    fn port(&self, service: &Service, port: &ServicePort, family: Family) -> Option<PortPlan>;

    /// The same in a cluster, where its network or its nodes decide what the Service leaves open.
    fn port_in(
        &self,
        cluster: &Cluster,
        service: &Service,
        port: &ServicePort,
        family: Family,
    ) -> Option<PortPlan> {
        let _ = cluster;
        self.port(service, port, family)
    }

    /// Whether a node may be a target of a Service: its controller may take only some.
    fn takes_node(&self, service: &Service, node: &Node) -> bool {
        let _ = (service, node);
        true
    }

    /// Whether its controller leaves out the nodes that a label excludes from load balancers of
    /// outside the cluster.
    fn reads_exclusion(&self, cluster: &Cluster) -> bool {
        let _ = cluster;
        true
    }

    /// Whether nodes have no rule for the addresses in the status of a Service although it says
    /// nothing of that: the cloud's own kube-proxy leaves them to the load balancer.
    fn is_left_to_balancer(&self, service: &Service) -> bool {
        let _ = service;
        false
    }

    /// Whether a Service asks for one that only the private network reaches. Returns `None`
    /// where the address tells.
    fn is_private(&self, service: &Service) -> Option<bool> {
        let _ = service;
        None
    }

    /// Whether it is pods of the cluster on nodes, whose addresses are the Service's status: those
    /// answer as nodes do, and nothing stands before them.
    fn is_on_nodes(&self) -> bool {
        false
    }

    /// The Service that a pod takes connections for, if it is one of those pods.
    fn service_of(&self, pod: &Pod) -> Option<NamespacedName> {
        let _ = pod;
        None
    }

    /// The address that a name in a Service's status leads to, where the name or the Service says
    /// it.
    fn address_of_name(&self, service: &Service, host: &str) -> Option<IpAddr> {
        let _ = (service, host);
        None
    }

    /// Whether each of its addresses serves only the targets of its own zone.
    fn serves_by_zone(&self, service: &Service) -> bool {
        let _ = service;
        false
    }

    /// Whether a node announces its address, so that others can take it away.
    fn is_announced(&self) -> bool {
        false
    }

    /// Whether each of its targets has its address among its own, so that what a target sends there
    /// stays on it where no rule translates it before.
    fn is_held_by_targets(&self) -> bool {
        false
    }

    /// Whether a node, target or not, has the address of a Service's load balancer among its own.
    fn is_held_by(&self, service: &Service, node: &Node) -> bool {
        let _ = (service, node);
        false
    }

    /// How many addresses a Service asks for, one for each zone. Returns `None` if it leaves that
    /// to the controller.
    fn address_count(&self, service: &Service) -> Option<usize> {
        let _ = service;
        None
    }

    /// The page that its health checks ask targets for, if they ask for one.
    fn page_check(&self, service: &Service, port: &ServicePort) -> Option<PageCheck> {
        let _ = (service, port);
        None
    }
}

/// What a load balancer does with connections to a port of a Service.
#[derive(Clone, Debug, PartialEq)]
pub struct PortPlan {
    /// What it speaks with clients.
    pub protocol: ListenerProtocol,
    /// What its targets are.
    pub targets: Targets,
    /// How it behaves.
    pub profile: Profile,
}

/// Health checks that ask a target for a page, which has to be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageCheck {
    /// The path.
    pub path: &'static str,
    /// Why it is asked for: what the Service says.
    pub because: &'static str,
    /// What has to hold for it, where the Service does not say it.
    pub condition: &'static str,
    /// The annotation that sets another path, with one that is there.
    pub cure: (&'static str, &'static str),
}

/// What a load balancer's targets are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Targets {
    /// Every node.
    Nodes,
    /// Nodes with a ready endpoint of the Service.
    NodesWithPods,
    /// The same, each with as large a share as it has ready endpoints.
    NodesByPods,
    /// The Service's endpoints.
    Pods,
}

/// Whether pods have addresses of the network around the nodes, so that load balancers can reach
/// them without a node's help.
pub(crate) fn pods_have_network_addresses(cluster: &Cluster) -> bool {
    let around = &cluster.network.vpc_cidrs.value;
    let pods = &cluster.network.pod_cidrs.value;
    !pods.is_empty() && pods.iter().all(|own| around.iter().any(|net| net.contains(own)))
}

/// The same with pods as targets. Where they see the client's address, one that is on the client's own
/// node may answer it without the load balancer.
pub(crate) fn to_pods(mut plan: PortPlan) -> PortPlan {
    plan.targets = Targets::Pods;
    if plan.profile.source == Source::Kept && plan.profile.doubt.is_none() {
        let taken = "it does not see answers between two pods of one node";
        let because = "a node's pods reach each other on it, unless each has a card of its own";
        plan.profile.doubt = Some(Doubt::new(taken, because));
    }
    plan
}

/// Why something is taken of a load balancer of which its vendor does not say it.
pub(crate) const LIKE_OTHERS: &str = "inferred from other load balancers of its kind";

/// What is sent to the targets of a port by default.
pub(crate) fn plain_protocol(port: &ServicePort) -> ListenerProtocol {
    match port.protocol {
        Protocol::Udp => ListenerProtocol::Udp,
        Protocol::Tcp | Protocol::Sctp => ListenerProtocol::Tcp,
    }
}

/// A load balancer that passes packets on without ending connections: it picks a target once and
/// has nothing to avoid.
pub(crate) fn passing(name: &str, source: Source) -> Profile {
    Profile {
        name: name.into(),
        delivery: Delivery::ToTarget,
        source,
        proxy_header: None,
        avoids_client: false,
        ends_connections: false,
        connect_timeout: Duration::from_secs(5),
        next_target: false,
        scheduler: Scheduler::WeightedRoundRobin,
        panic_threshold: Some(0),
        health_check: None,
        passive_check: None,
        hairpin_source: None,
        statuses: Statuses::USUAL,
        doubt: None,
    }
}

/// A load balancer that ends connections and opens its own to node ports of all nodes: without a
/// healthy target it turns connections away.
pub(crate) fn proxying(
    name: &str,
    service: &Service,
    protocol: ListenerProtocol,
    family: Family,
) -> PortPlan {
    let mut profile = passing(name, replaced(family));
    profile.ends_connections = true;
    profile.panic_threshold = None;
    profile.health_check = Some(check(question_by_policy(service), (10, 5)));
    PortPlan { protocol, targets: Targets::Nodes, profile }
}

/// A health check with the usual numbers of most products: every 10 s, two answers count.
pub(crate) fn check(question: HealthQuestion, (interval, timeout): (u64, u64)) -> HealthCheck {
    HealthCheck {
        source: ProbeSource::Reserved(ANY_PROBER),
        interval: Duration::from_secs(interval),
        timeout: Duration::from_secs(timeout),
        rise: 2,
        fall: 2,
        question,
        keeps_address: false,
    }
}

/// A load balancer of which nothing but the source of what it sends is stated.
pub(crate) fn unnamed(name: &str, is_source_kept: bool, family: Family) -> Profile {
    let source = if is_source_kept { Source::Kept } else { replaced(family) };
    Profile { health_check: Some(check(HealthQuestion::Target, (10, 5))), ..passing(name, source) }
}

/// What most controllers ask of a node: under policy Local whether it has an endpoint, else
/// whether the target answers.
pub(crate) fn question_by_policy(service: &Service) -> HealthQuestion {
    match service.external_policy {
        Policy::Local => HealthQuestion::LocalEndpoint,
        Policy::Cluster => HealthQuestion::Target,
    }
}

/// The source that targets see where a load balancer replaces the client's address: an address of
/// the ranges that documentation may use freely. Which one it has is not given, and only matters
/// to rules that name it.
pub(crate) fn replaced(family: Family) -> Source {
    Source::Replaced(own_address(family))
}

/// The range of one address that stands for a load balancer's own.
pub(crate) fn own_address(family: Family) -> IpNet {
    match family {
        Family::V4 => IpNet::V4(ANY_PROBER.v4),
        Family::V6 => IpNet::V6(ANY_PROBER.v6),
    }
}

/// The addresses that stand for a load balancer's own in the nodes' network.
pub(crate) const ANY_PROBER: ProbeRanges = ProbeRanges {
    v4: Ipv4Net::new_assert(Ipv4Addr::new(192, 0, 2, 250), 32),
    v6: Ipv6Net::new_assert(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0xfa), 128),
};

/// Whether an address stands for one of a load balancer's own: which one that is, is not given.
pub fn stands_for_balancer(address: IpAddr) -> bool {
    stand_in(Family::of(address)) == address
}

/// The address that stands for a load balancer's own where which one that is, is not given.
pub fn stand_in(family: Family) -> IpAddr {
    ANY_PROBER.prober(family)
}

/// A load balancer without a machine of its own, by what its vendor calls it: a node announces its
/// address, and packets come to the node as they are. Under policy Local, only nodes with an endpoint
/// announce it. No controller of a cloud chooses the nodes, so that no label excludes one.
pub(crate) struct Announced(pub(crate) &'static str);

impl Product for Announced {
    fn name(&self) -> &'static str {
        self.0
    }

    fn is_announced(&self) -> bool {
        true
    }

    fn reads_exclusion(&self, _: &Cluster) -> bool {
        false
    }

    fn port(&self, service: &Service, port: &ServicePort, _: Family) -> Option<PortPlan> {
        let mut profile = passing(self.0, Source::Kept);
        profile.delivery = Delivery::KeepsAddress;
        profile.panic_threshold = None;
        Some(PortPlan {
            protocol: plain_protocol(port),
            targets: match service.external_policy {
                Policy::Cluster => Targets::Nodes,
                Policy::Local => Targets::NodesWithPods,
            },
            profile,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use uturn_model::service::{Policy, ServiceKind, TargetPort};
    use uturn_model::{Origin, Port};

    use super::*;

    /// The ports of most Services.
    pub(crate) const PORTS: [u16; 2] = [80, 443];

    /// A Service of type LoadBalancer with these annotations and these ports of TCP.
    pub(crate) fn service(notes: &[(&str, &str)], ports: &[u16]) -> Service {
        let mut service = Service::new("shop/web".parse().unwrap(), Origin::file("a.yaml"));
        service.kind = ServiceKind::LoadBalancer;
        service.external_policy = Policy::Cluster;
        service.annotations = notes.iter().copied().collect();
        let port = |number: &u16| Port::new(*number).unwrap();
        service.ports = (30_080..)
            .zip(ports)
            .map(|(node_port, number)| ServicePort {
                name: Some(format!("p{number}").into()),
                protocol: Protocol::Tcp,
                port: port(number),
                target: TargetPort::Number(port(number)),
                node_port: Some(port(&node_port)),
                app_protocol: None,
            })
            .collect();
        service
    }

    /// What a product does at a port of a Service.
    pub(crate) fn plan_of(product: &dyn Product, service: &Service, number: u16) -> PortPlan {
        let mut ports = service.ports.iter();
        let port = ports.find(|port| port.port.number() == number).unwrap();
        product.port(service, port, Family::V4).unwrap()
    }
}
