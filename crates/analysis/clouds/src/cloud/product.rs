//! A kind of load balancer that a controller makes for Services, as data: what it does on each
//! port, read from the Service. [`made`](super::made) makes listeners and targets of it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use uturn_model::lb::{
    BehaviourAssumption, Delivery, HealthCheck, HealthQuestion, ListenerProtocol,
    PathNormalization, ProbeRanges, ProbeSource, Profile, Scheduler, Source, Statuses,
};
use uturn_model::service::{Policy, ServicePort};
use uturn_model::{
    Cluster, Family, IpNet, Ipv4Net, Ipv6Net, Mechanism, Name, NamespacedName, Node, Pod, Protocol,
    Service, Text,
};

use super::{ByDefault, Need, OpenEnd, Remedy};

/// The holder of each Lease, by the name of the Lease.
pub type Leases = BTreeMap<NamespacedName, Name>;

/// Returns the holder of the first Lease with this name, in any namespace.
pub(crate) fn lease_holder(leases: &Leases, name: &str) -> Option<Name> {
    let mut named = leases.iter().filter(|(lease, _)| lease.name.as_str() == name);
    named.next().map(|(_, holder)| holder.clone())
}

/// A kind of load balancer that a controller makes for Services.
pub trait Product: Sync {
    /// Returns the vendor's name for the load balancer.
    fn name(&self) -> &'static str;

    /// Returns what the load balancer does with connections to a port of a Service, at an address
    /// of a family. Returns `None` if it does not listen there.
    fn port(&self, service: &Service, port: &ServicePort, family: Family) -> Option<PortPlan>;

    /// Returns what the load balancer does with connections to a port in this cluster, whose
    /// network or nodes may decide what the Service leaves open.
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

    /// Returns whether a node may be a target of a Service: the controller may accept only some
    /// nodes.
    fn takes_node(&self, service: &Service, node: &Node) -> bool {
        let _ = (service, node);
        true
    }

    /// Returns whether the controller excludes nodes with the label
    /// `node.kubernetes.io/exclude-from-external-load-balancers`.
    fn reads_exclusion(&self, cluster: &Cluster) -> bool {
        let _ = cluster;
        true
    }

    /// Returns how a listener delivers packets that no controller made and of which Facts state
    /// nothing, if that differs from what the controller asks for.
    fn delivery_by_default(&self) -> Option<Delivery> {
        None
    }

    /// Returns whether nodes have no rule for the addresses in a Service's status although the
    /// status states no `ipMode`: the cloud's own kube-proxy leaves these addresses to the load
    /// balancer.
    fn is_left_to_balancer(&self, service: &Service) -> bool {
        let _ = service;
        false
    }

    /// Returns whether a Service asks for a load balancer that is reachable only from the private
    /// network. Returns `None` if the load balancer's address decides that.
    fn is_private(&self, service: &Service) -> Option<bool> {
        let _ = service;
        None
    }

    /// Returns what the controller writes into the status of a Service, unless an annotation that a
    /// remedy sets changes this.
    fn writes(&self, service: &Service) -> StatusEntry {
        let _ = service;
        StatusEntry::Address
    }

    /// Returns whether the load balancer consists of pods on nodes. The addresses of these nodes
    /// are the Service's status, and no other load balancer is in front of them.
    fn is_on_nodes(&self) -> bool {
        false
    }

    /// Returns the Service whose connections a pod accepts, if the pod is part of the load
    /// balancer.
    fn service_of(&self, pod: &Pod) -> Option<NamespacedName> {
        let _ = pod;
        None
    }

    /// Returns why a pod of the load balancer drops what it should forward to a port of its Service.
    fn drops_forwarded(
        &self,
        pod: &Pod,
        service: &Service,
        port: &ServicePort,
    ) -> Option<Undelivered> {
        let _ = (pod, service, port);
        None
    }

    /// Returns the address of a host name in a Service's status, if the name or the Service
    /// contains it.
    fn address_of_name(&self, service: &Service, host: &str) -> Option<IpAddr> {
        let _ = (service, host);
        None
    }

    /// Returns the security groups that a Service gives its load balancer, by id or by name, as a
    /// list with commas.
    fn security_groups<'s>(&self, service: &'s Service) -> Option<&'s str> {
        let _ = service;
        None
    }

    /// Returns whether the controller adds a rule for the load balancer of a Service to the security
    /// groups of the nodes.
    fn opens_groups_of_nodes(&self, service: &Service) -> bool {
        let _ = service;
        false
    }

    /// Returns whether a Service asks for addresses of both families.
    fn is_dual_stack(&self, service: &Service) -> bool {
        let _ = service;
        false
    }

    /// Returns whether each address of the load balancer serves only the targets of its own zone.
    fn serves_by_zone(&self, service: &Service) -> bool {
        let _ = service;
        false
    }

    /// Returns which of the load balancer's addresses a name server within the network gives to
    /// which client, if the load balancer has an address for each zone.
    fn zone_answers(&self, service: &Service) -> ZoneAnswers {
        let _ = service;
        ZoneAnswers::Any
    }

    /// Returns the end of the way to the targets that the object leaves to others.
    fn open_end(&self, cluster: &Cluster, service: &Service) -> Option<OpenEnd> {
        let _ = (cluster, service);
        None
    }

    /// Returns why a load balancer is reachable from the private network only, if that is so because
    /// nothing asks for the other.
    fn private_by_default(&self, service: &Service) -> Option<ByDefault> {
        let _ = service;
        None
    }

    /// Returns whether a private load balancer sends from the address at which clients call it.
    fn sends_from_its_address(&self) -> bool {
        false
    }

    /// Returns whether a node announces the load balancer's address, which can move to another
    /// node.
    fn is_announced(&self) -> bool {
        false
    }

    /// Returns why a Service that waits for an address gets none, if the cluster's objects show it.
    fn no_address(&self, cluster: &Cluster, service: &Service) -> Option<NoAddress> {
        let _ = (cluster, service);
        None
    }

    /// Returns why nothing announces an address of a Service, if the cluster's objects show it.
    fn nothing_announces(
        &self,
        cluster: &Cluster,
        service: &Service,
        address: IpAddr,
    ) -> Option<NoAddress> {
        let _ = (cluster, service, address);
        None
    }

    /// Returns what makes nodes announce an address that nothing announces.
    fn announcing(&self, cluster: &Cluster, address: IpAddr) -> Vec<Announcing> {
        let _ = (cluster, address);
        Vec::new()
    }

    /// Returns what happens to packets for ports of the load balancer's address that it does not
    /// serve.
    fn unserved_port(&self) -> UnservedPort {
        if self.is_announced() { UnservedPort::UpToNode } else { UnservedPort::Refused }
    }

    /// Returns the node that announces the address of a Service, if the Service or the holder of a
    /// Lease states it.
    fn holder(&self, service: &Service, leases: &Leases) -> Option<Name> {
        let _ = (service, leases);
        None
    }

    /// Returns whether objects of the cluster state which nodes announce the load balancer's
    /// address.
    fn reads_announcements(&self) -> bool {
        false
    }

    /// Returns whether each target has the load balancer's address on one of its own interfaces.
    /// Packets that a target sends to this address stay on the target unless a rule translates them
    /// before.
    fn is_held_by_targets(&self) -> bool {
        false
    }

    /// Returns whether a node, target or not, has the load balancer's address of a Service on an
    /// interface.
    fn is_held_by(&self, service: &Service, node: &Node) -> bool {
        let _ = (service, node);
        false
    }

    /// Returns the number of addresses that a Service asks for, one for each zone. Returns `None`
    /// if the Service leaves it to the controller.
    fn address_count(&self, service: &Service) -> Option<usize> {
        let _ = service;
        None
    }

    /// Returns what the load balancer does with `spec.loadBalancerSourceRanges`. kube-proxy applies
    /// these ranges too, but only to packets for the load balancer's own address.
    fn source_ranges(&self, service: &Service) -> SourceRanges {
        let _ = service;
        SourceRanges::Ignored
    }

    /// Returns why health checks of a port cannot pass, if the Service shows it without a walk.
    fn unanswered_check(
        &self,
        cluster: &Cluster,
        service: &Service,
        port: &ServicePort,
    ) -> Option<UnansweredCheck> {
        let _ = (cluster, service, port);
        None
    }

    /// Returns the page that health checks request from targets, if they request one.
    fn page_check(&self, service: &Service, port: &ServicePort) -> Option<PageCheck> {
        let _ = (service, port);
        None
    }
}

/// The reason why a Service gets no address, or why nothing announces its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoAddress {
    /// The reason.
    pub because: String,
    /// The condition under which it holds. `None` if given objects show all of it.
    pub condition: Option<&'static str>,
}

/// What a pod of a load balancer drops in place of forwarding it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undelivered {
    /// The reason.
    pub because: String,
    /// The container whose program drops it.
    pub container: Text,
    /// The image of that program with the first release that forwards it.
    pub image: String,
}

/// What has to be written so that nodes announce an address: the settings in ConfigMaps and new
/// objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Announcing {
    /// What it is, in a line.
    pub title: String,
    /// The ConfigMaps, each with a key and its value.
    pub settings: Vec<(NamespacedName, &'static str, &'static str)>,
    /// The new objects.
    pub objects: Vec<NewObject>,
    /// What must hold for it to work.
    pub needs: Vec<Need>,
    /// The side effects.
    pub costs: Vec<&'static str>,
    /// What is to be typed then.
    pub command: Option<&'static str>,
}

/// A new object of a cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewObject {
    /// Its `apiVersion`.
    pub version: &'static str,
    /// Its kind.
    pub kind: &'static str,
    /// Its namespace, if its kind has one.
    pub namespace: Option<Name>,
    /// Its name.
    pub name: String,
    /// The fields of its `spec`.
    pub spec: Vec<(&'static str, NewValue)>,
}

/// The value of a field of a new object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewValue {
    /// `true`.
    On,
    /// A list of texts.
    Texts(Vec<String>),
    /// A text.
    Text(String),
    /// Fields.
    Fields(Vec<(&'static str, NewValue)>),
}

/// What has to be written so that health checks of an Ingress's backends ask for another page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherCheck {
    /// The object with the page.
    pub object: NewObject,
    /// The annotation of each Service that names the object.
    pub annotation: (&'static str, String),
    /// The annotation of the Ingress in which the controller then reports its backends.
    pub report: (&'static str, String),
}

/// The treatment of packets for ports of a load balancer's address that the load balancer does not
/// serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnservedPort {
    /// The load balancer refuses them.
    Refused,
    /// The load balancer drops them.
    Dropped,
    /// The packets arrive at the node that announces the address.
    UpToNode,
}

/// The use that a load balancer makes of the source ranges of a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceRanges {
    /// Every source is allowed.
    Ignored,
    /// Packets from sources outside all ranges are dropped.
    Applied,
    /// Packets from sources outside all ranges are dropped; the controller adds the addresses of
    /// the nodes to the ranges.
    AppliedWithNodes,
}

/// The form of a Service's status as a controller writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusEntry {
    /// An address.
    Address,
    /// An address with `ipMode: Proxy`.
    AddressInModeProxy,
    /// A name without an address.
    Name,
}

/// The treatment of connections to a port of a Service by a load balancer.
#[derive(Clone, Debug, PartialEq)]
pub struct PortPlan {
    /// The protocol of the listener.
    pub protocol: ListenerProtocol,
    /// The targets of the listener.
    pub targets: Targets,
    /// The behaviour of the load balancer.
    pub profile: Profile,
}

/// Health checks that request a page, which the target must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageCheck {
    /// The path of the page.
    pub path: &'static str,
    /// The reason why health checks request the page, as far as the Service states it.
    pub because: &'static str,
    /// The condition under which health checks request the page, if the Service does not state it.
    pub condition: &'static str,
    /// The annotation that sets another path, with a path that targets have.
    pub cure: (&'static str, &'static str),
}

/// Health checks that no target answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnansweredCheck {
    /// What they ask, and why no target answers it.
    pub because: String,
    /// The reason in one word.
    pub mechanism: Mechanism,
    /// The condition under which no target answers. `None` if given objects show all of it.
    pub condition: Option<String>,
    /// What makes targets answer, the best first.
    pub remedies: Vec<Remedy>,
}

/// The targets of a load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Targets {
    /// Every node.
    Nodes,
    /// Nodes with a ready endpoint of the Service.
    NodesWithPods,
    /// Nodes with a ready endpoint, weighted by the number of their ready endpoints.
    NodesByPods,
    /// The Service's endpoints.
    Pods,
}

/// The addresses to which the name of a load balancer with addresses in several zones resolves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneAnswers {
    /// Any of the addresses.
    Any,
    /// The address of the client's zone, if there is one.
    Own,
    /// Mostly the address of the client's zone: in this many of a hundred answers.
    Mostly(u8),
}

/// Returns whether pods have addresses of the VPC, so that load balancers can reach them directly.
pub(crate) fn pods_have_network_addresses(cluster: &Cluster) -> bool {
    let around = &cluster.network.vpc_cidrs.value;
    let pods = &cluster.network.pod_cidrs.value;
    !pods.is_empty() && pods.iter().all(|own| around.iter().any(|net| net.contains(own)))
}

/// Returns the plan with pods as targets. If the pods see the client's address, a target on the
/// client's own node may answer the client directly, past the load balancer: the plan then assumes
/// that it does not.
pub(crate) fn to_pods(mut plan: PortPlan) -> PortPlan {
    plan.targets = Targets::Pods;
    if plan.profile.source == Source::Kept && plan.profile.assumption.is_none() {
        let taken = "it does not see answers between two pods of one node";
        let because = "a node's pods reach each other on it, unless each has a card of its own";
        plan.profile.assumption = Some(BehaviourAssumption::new(taken, because));
    }
    plan
}

/// The reason for an assumption that the vendor's documents do not confirm.
pub(crate) const LIKE_OTHERS: &str = "inferred from other load balancers of its kind";

/// Returns the status that a controller writes which sends calls from inside the cluster to its
/// load balancer if every port needs the PROXY header that the load balancer writes.
pub(crate) fn mode_by_header(product: &dyn Product, service: &Service) -> StatusEntry {
    let has_header = |port: &ServicePort| {
        let plan = product.port(service, port, Family::V4);
        plan.is_some_and(|plan| plan.profile.proxy_header.is_some())
    };
    if !service.ports.is_empty() && service.ports.iter().all(has_header) {
        StatusEntry::AddressInModeProxy
    } else {
        StatusEntry::Address
    }
}

/// Returns the default protocol towards the targets of a port.
pub(crate) fn plain_protocol(port: &ServicePort) -> ListenerProtocol {
    match port.protocol {
        Protocol::Udp => ListenerProtocol::Udp,
        Protocol::Tcp | Protocol::Sctp => ListenerProtocol::Tcp,
    }
}

/// Returns the profile of a load balancer that forwards packets without terminating connections: it
/// picks a target once and avoids none.
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
        source_of_other_family: None,
        target_tls: None,
        path_normalization: PathNormalization::Off,
        statuses: Statuses::USUAL,
        allowed_sources: None,
        assumption: None,
    }
}

/// Returns the plan of a load balancer that terminates connections and opens its own to node ports
/// of all nodes: without a healthy target it refuses connections.
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

/// Makes a health check in which two equal answers change the health of a target, as in most
/// products.
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

/// Returns the profile of a load balancer of which only the source of its packets is stated.
pub(crate) fn unnamed(name: &str, is_source_kept: bool, family: Family) -> Profile {
    let source = if is_source_kept { Source::Kept } else { replaced(family) };
    Profile { health_check: Some(check(HealthQuestion::Target, (10, 5))), ..passing(name, source) }
}

/// Returns the question that the health checks of most controllers ask a node: under policy Local
/// whether the node has an endpoint, otherwise whether the target answers.
pub(crate) fn question_by_policy(service: &Service) -> HealthQuestion {
    match service.external_policy {
        Policy::Local => HealthQuestion::LocalEndpoint,
        Policy::Cluster => HealthQuestion::Target,
    }
}

/// Returns the source that targets see if a load balancer replaces the client's address: an address
/// of the ranges reserved for documentation. The load balancer's real address is not given, and
/// only matters to rules that name it.
pub(crate) fn replaced(family: Family) -> Source {
    Source::Replaced(own_address(family))
}

/// Returns the range of one address that stands for a load balancer's own.
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

/// Returns whether an address stands for a load balancer's own address that is not given.
pub fn stands_for_balancer(address: IpAddr) -> bool {
    stand_in(Family::of(address)) == address
}

/// Returns the address that stands for a load balancer's own address that is not given.
pub fn stand_in(family: Family) -> IpAddr {
    ANY_PROBER.prober(family)
}

/// The addresses from which a cloud asks targets for their health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probers {
    /// The ranges.
    pub ranges: ProbeRanges,
    /// Whether security groups let them in unless a rule drops them. Otherwise a rule has to, which
    /// the cloud's controller may add.
    pub are_let_in: bool,
}

/// Makes a load balancer send, and ask for health, from its own address where an address stands for
/// it.
pub(crate) fn send_from(profile: &mut Profile, own: IpAddr) {
    let family = Family::of(own);
    if profile.source == replaced(family) {
        profile.source = Source::Replaced(IpNet::from(own));
    }
    if let Some(check) = &mut profile.health_check
        && check.source == ProbeSource::Reserved(ANY_PROBER)
    {
        check.source = ProbeSource::Reserved(match own {
            IpAddr::V4(own) => ProbeRanges { v4: Ipv4Net::from(own), ..ANY_PROBER },
            IpAddr::V6(own) => ProbeRanges { v6: Ipv6Net::from(own), ..ANY_PROBER },
        });
    }
}

/// A load balancer without a machine of its own, with its vendor's name for it: a node announces
/// its address, and packets arrive at the node unchanged. Under policy Local, only nodes with an
/// endpoint announce it. No controller of a cloud chooses the nodes, so no label excludes one.
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

    /// Makes a Service of type LoadBalancer with these annotations and these TCP ports.
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

    /// Returns the plan of a product for a port of a Service.
    pub(crate) fn plan_of(product: &dyn Product, service: &Service, number: u16) -> PortPlan {
        let mut ports = service.ports.iter();
        let port = ports.find(|port| port.port.number() == number).unwrap();
        product.port(service, port, Family::V4).unwrap()
    }
}
