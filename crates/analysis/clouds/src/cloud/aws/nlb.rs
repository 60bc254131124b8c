//! Network Load Balancers. Three controllers make them: the in-tree one of Kubernetes' cloud
//! provider, with nodes as targets; AWS's own, which users install, with nodes or pods; and AWS's
//! own in EKS Auto Mode, which reads fewer annotations.

use uturn_model::lb::{
    BehaviourAssumption, HealthQuestion, ListenerProtocol, ProxyVersion, Source,
};
use uturn_model::service::{Policy, ServicePort, TargetPort};
use uturn_model::{Cluster, Family, Mechanism, Node, Protocol, Service, Version};

use super::annotations::{
    ADDRESS_TYPE, ADDRESSES, ATTRIBUTES, BACKEND_PROTOCOL, CHECK_PORT, CHECK_PROTOCOL,
    CLIENT_ROUTING, CROSS_ZONE, MANAGES_GROUPS, PRIVATE_ADDRESSES, PROXY_PROTOCOL, SCHEME,
    SECURITY_GROUPS, SUBNETS, TARGET_GROUP_ATTRIBUTES, TARGET_TYPE, TYPE, attribute, ends_tls, get,
    has_target_labels, key, switch,
};
use super::check_remedies;
use super::classic::is_internal;
use super::{are_pods_default, internal_by_default, open_groups};
use crate::cloud::product::{
    PortPlan, Product, SourceRanges, Targets, UnansweredCheck, ZoneAnswers, check, passing,
    plain_protocol, replaced,
};
use crate::cloud::{ByDefault, OpenEnd, StatusEntry};
use crate::targets;

pub(super) const NAME: &str = "AWS NLB";

/// Network Load Balancers.
pub(super) struct Nlb;

impl Product for Nlb {
    fn name(&self) -> &'static str {
        NAME
    }

    fn writes(&self, _: &Service) -> StatusEntry {
        StatusEntry::Name
    }

    fn is_private(&self, service: &Service) -> Option<bool> {
        Some(match Controller::of(service) {
            Controller::InTree => is_internal(service),
            Controller::Own => match get(service, SCHEME) {
                Some(scheme) => scheme != "internet-facing",
                None => get(service, super::annotations::INTERNAL) != Some("false"),
            },
            Controller::AutoMode => get(service, SCHEME) != Some("internet-facing"),
        })
    }

    fn is_dual_stack(&self, service: &Service) -> bool {
        get(service, ADDRESS_TYPE) == Some("dualstack")
    }

    fn serves_by_zone(&self, service: &Service) -> bool {
        let attribute = switch(service, ATTRIBUTES, "load_balancing.cross_zone.enabled");
        let annotated = get(service, CROSS_ZONE)
            .filter(|_| Controller::of(service) != Controller::AutoMode)
            .map(|value| value == "true");
        !attribute.or(annotated).unwrap_or(false)
    }

    fn zone_answers(&self, service: &Service) -> ZoneAnswers {
        // The in-tree controller sets no attributes of load balancers.
        let policy = attribute(service, ATTRIBUTES, CLIENT_ROUTING)
            .filter(|_| Controller::of(service) != Controller::InTree);
        match policy {
            Some("availability_zone_affinity") => ZoneAnswers::Own,
            Some("partial_availability_zone_affinity") => ZoneAnswers::Mostly(85),
            _ => ZoneAnswers::Any,
        }
    }

    fn takes_node(&self, service: &Service, node: &Node) -> bool {
        has_target_labels(service, node)
    }

    /// The name of a load balancer leads to its interfaces in the subnets, from which it sends.
    fn sends_from_its_address(&self) -> bool {
        true
    }

    fn opens_groups_of_nodes(&self, service: &Service) -> bool {
        get(service, SECURITY_GROUPS).is_none() || get(service, MANAGES_GROUPS) == Some("true")
    }

    /// The in-tree controller does not read the annotation with groups.
    fn open_end(&self, cluster: &Cluster, service: &Service) -> Option<OpenEnd> {
        if Controller::of(service) == Controller::InTree {
            return None;
        }
        let groups = get(service, SECURITY_GROUPS)?;
        open_groups(cluster, groups, (&key(MANAGES_GROUPS), get(service, MANAGES_GROUPS)), None)
    }

    fn private_by_default(&self, service: &Service) -> Option<ByDefault> {
        let is_stated = get(service, SCHEME).is_some()
            || get(service, super::annotations::INTERNAL).is_some()
            || Controller::of(service) == Controller::InTree;
        (!is_stated).then(|| internal_by_default("NLB", &key(SCHEME)))
    }

    fn security_groups<'s>(&self, service: &'s Service) -> Option<&'s str> {
        get(service, SECURITY_GROUPS)
    }

    /// The controllers write the source ranges into a security group: AWS's own into that of the
    /// load balancer, the in-tree one into that of the nodes, which see the client's address.
    fn source_ranges(&self, service: &Service) -> SourceRanges {
        match get(service, SECURITY_GROUPS) {
            Some(_) => SourceRanges::Ignored,
            None => SourceRanges::Applied,
        }
    }

    fn address_count(&self, service: &Service) -> Option<usize> {
        let lists = [SUBNETS, ADDRESSES, PRIVATE_ADDRESSES].into_iter();
        let counts = lists
            .filter_map(|list| get(service, list))
            .map(|list| list.split(',').filter(|item| !item.trim().is_empty()).count());
        counts.max()
    }

    fn port_in(
        &self,
        cluster: &Cluster,
        service: &Service,
        port: &ServicePort,
        family: Family,
    ) -> Option<PortPlan> {
        let usual = default_targets(cluster, service);
        let is_asked = get(service, TARGET_GROUP_ATTRIBUTES).is_some();
        if !is_asked || Controller::of(service) != Controller::InTree {
            return Some(self.plan(service, port, family, usual, true));
        }
        // Minor releases since 1.32 read the attributes from some patch on, earlier ones never.
        let reads = cluster.proxy.version.value >= Version::new(1, 32, 0);
        let mut plan = self.plan(service, port, family, usual, reads);
        if reads {
            plan.profile.assumption = Some(BehaviourAssumption::new(
                "the in-tree controller sets what target-group-attributes asks for",
                "its releases since late 2025 do, and none before",
            ));
        }
        Some(plan)
    }

    fn unanswered_check(
        &self,
        cluster: &Cluster,
        service: &Service,
        port: &ServicePort,
    ) -> Option<UnansweredCheck> {
        let plan = self.port_in(cluster, service, port, Family::V4)?;
        let check = Check::of(service, plan.targets)?;
        match check.port {
            None if port.protocol == Protocol::Udp => {
                of_datagrams(cluster, service, port, plan.targets)
            }
            Some(number) if plan.profile.proxy_header.is_some() && check.is_http => {
                // A name that nothing explains may stand for this port.
                let is_target = service.ports.iter().any(|own| {
                    let ports = targets::pod_ports(cluster, service, own);
                    ports.is_empty() || ports.iter().any(|port| port.number() == number)
                });
                (!is_target).then(|| UnansweredCheck {
                    because: format!(
                        "health checks ask by HTTP at port {number}, after the PROXY header that the target \
                         group sends first"
                    ),
                    mechanism: Mechanism::ProxyHeader,
                    condition: Some(format!("what listens at port {number} reads no PROXY header")),
                    remedies: vec![check_remedies::target_by_tcp()],
                })
            }
            _ => None,
        }
    }

    fn port(&self, service: &Service, port: &ServicePort, family: Family) -> Option<PortPlan> {
        Some(self.plan(service, port, family, usual_targets(service), true))
    }
}

impl Nlb {
    /// Returns what the load balancer does with connections to a port. `usual` are the targets if
    /// the Service does not state them; `reads_attributes` states whether the controller reads the
    /// attributes of target groups.
    fn plan(
        &self,
        service: &Service,
        port: &ServicePort,
        family: Family,
        usual: Targets,
        reads_attributes: bool,
    ) -> PortPlan {
        let targets = stated_targets(service).unwrap_or(usual);
        let group = |attribute| {
            let set = switch(service, TARGET_GROUP_ATTRIBUTES, attribute);
            set.filter(|_| reads_attributes)
        };
        // Attributes apply to TCP and TLS only: UDP always keeps the client's address.
        let keeps = match (port.protocol, targets) {
            (Protocol::Udp, _) => true,
            (_, Targets::Pods) => group("preserve_client_ip.enabled").unwrap_or(false),
            _ => group("preserve_client_ip.enabled").unwrap_or(true),
        };
        let source = if keeps { Source::Kept } else { replaced(family) };
        let mut profile = passing(NAME, source);
        profile.target_tls = Some(get(service, BACKEND_PROTOCOL) == Some("ssl"));
        // The in-tree controller reads this annotation for Classic Load Balancers only, that of
        // Auto Mode never.
        let annotated =
            get(service, PROXY_PROTOCOL) == Some("*") && Controller::of(service) == Controller::Own;
        if group("proxy_protocol_v2.enabled").unwrap_or(annotated) {
            profile.proxy_header = Some(ProxyVersion::V2);
        }
        // Before release 2.6, source ranges can only restrict access to targets that see the
        // client's address.
        if !keeps && !service.source_ranges.is_empty() {
            profile.assumption = Some(BehaviourAssumption {
                assumed: "it lets in only what loadBalancerSourceRanges names".into(),
                because:
                    "it replaces the client's address, and its controller gives it a security \
                          group of its own from release 2.6 on"
                        .into(),
                settle: "look at the load balancer's security groups".into(),
            });
        }
        let has_header = profile.proxy_header.is_some();
        profile.health_check = Some(check(question(service, targets, has_header), (10, 6)));
        let tls = ends_tls(service, port.port.number(), port.name.as_deref());
        PortPlan {
            protocol: match plain_protocol(port) {
                ListenerProtocol::Tcp if tls => ListenerProtocol::TcpSsl,
                plain => plain,
            },
            targets,
            profile,
        }
    }
}

/// Health checks as annotations ask for them.
struct Check {
    /// The port, if it is not that of requests.
    port: Option<u16>,
    is_http: bool,
}

impl Check {
    /// Returns `None` if checks ask kube-proxy, or a port that is not a number.
    fn of(service: &Service, targets: Targets) -> Option<Self> {
        let is_http = get(service, CHECK_PROTOCOL)
            .is_some_and(|own| ["http", "https"].contains(&&*own.to_ascii_lowercase()));
        let asks_node = service.external_policy == Policy::Local && targets != Targets::Pods;
        match get(service, CHECK_PORT) {
            Some("traffic-port") => Some(Self { port: None, is_http }),
            Some(port) => port.parse().ok().map(|port| Self { port: Some(port), is_http }),
            None => (!asks_node).then_some(Self { port: None, is_http }),
        }
    }
}

/// Returns why a check by TCP of a port that takes datagrams gets no answer: no other port of the
/// Service leads to the same port of the targets by TCP.
fn of_datagrams(
    cluster: &Cluster,
    service: &Service,
    port: &ServicePort,
    targets: Targets,
) -> Option<UnansweredCheck> {
    let of_nodes = targets != Targets::Pods;
    let of_pods = |port: &ServicePort| targets::pod_ports(cluster, service, port);
    let is_same = |other: &ServicePort| {
        if of_nodes {
            other.node_port == port.node_port
        } else {
            other.target == port.target || !of_pods(other).is_disjoint(&of_pods(port))
        }
    };
    let mut by_tcp = service.ports.iter().filter(|other| other.protocol == Protocol::Tcp);
    if by_tcp.any(is_same) || of_nodes && port.node_port.is_none() {
        return None;
    }
    let number = match (of_nodes, &port.target) {
        (true, _) => port.node_port?.number().to_string(),
        (false, TargetPort::Number(target)) => target.number().to_string(),
        (false, TargetPort::Name(name)) => name.to_string(),
    };
    Some(UnansweredCheck {
        because: format!(
            "health checks ask by TCP at port {number} of the targets, where the Service takes UDP only"
        ),
        mechanism: Mechanism::WrongPort,
        condition: (!of_nodes).then(|| format!("its pods do not listen by TCP at {number}")),
        remedies: check_remedies::checks_by_tcp(
            &by_tcp_elsewhere(cluster, service, of_nodes),
            of_nodes,
        ),
    })
}

/// The maximum number of other ports that are named.
const MAX_OTHERS: usize = 3;

/// Returns the ports at which targets take TCP, with the reason: those of the Service, and those that
/// containers declare, where the kubelet probes them first.
fn by_tcp_elsewhere(cluster: &Cluster, service: &Service, of_nodes: bool) -> Vec<(u16, String)> {
    let mut all: Vec<(u16, String)> = Vec::new();
    for port in service.ports.iter().filter(|port| port.protocol == Protocol::Tcp) {
        let because = format!("port {} of the Service leads there", port.port);
        if of_nodes {
            all.extend(port.node_port.map(|number| (number.number(), because)));
        } else {
            let ports = targets::pod_ports(cluster, service, port);
            all.extend(ports.into_iter().map(|number| (number.number(), because.clone())));
        }
    }
    let pods = cluster.selected(service);
    if let Some(pod) = pods.first().filter(|_| !of_nodes) {
        let declared = pod.spec.ports().filter(|port| port.protocol == Protocol::Tcp);
        let mut declared: Vec<_> = declared.map(|port| port.port).collect();
        declared.sort_by_key(|port| !pod.spec.is_probed(*port));
        let because = "their containers declare the port";
        all.extend(declared.into_iter().map(|port| (port.number(), because.to_owned())));
    }
    let mut seen = Vec::new();
    all.retain(|(number, _)| {
        let is_new = !seen.contains(number);
        seen.push(*number);
        is_new
    });
    all.truncate(MAX_OTHERS);
    all
}

/// Returns the question that health checks ask. Under policy Local, both controllers check nodes
/// over HTTP for endpoints of their own. A target group that sends PROXY headers sends them before
/// these requests too.
fn question(service: &Service, targets: Targets, has_header: bool) -> HealthQuestion {
    if service.external_policy == Policy::Cluster || targets == Targets::Pods {
        return HealthQuestion::Target;
    }
    let is_tcp = get(service, CHECK_PROTOCOL).is_some_and(|own| own.eq_ignore_ascii_case("tcp"));
    match (get(service, CHECK_PORT), is_tcp, has_header) {
        (Some("traffic-port"), ..) => HealthQuestion::Target,
        // kube-proxy accepts connections there whether or not the node has endpoints.
        (_, true, _) => HealthQuestion::ServiceProxy,
        (_, false, true) => HealthQuestion::LocalEndpointWithHeader,
        (_, false, false) => HealthQuestion::LocalEndpoint,
    }
}

/// Returns whether a Service gets a Network Load Balancer.
pub(super) fn is_nlb(service: &Service) -> bool {
    match &service.load_balancer_class {
        Some(class) => super::markers::MARKERS
            .load_balancer_classes
            .iter()
            .any(|(known, product)| *known == &**class && *product == NAME),
        None => super::markers::product(service) == Some(NAME),
    }
}

/// The controllers that make Network Load Balancers.
#[derive(PartialEq, Eq)]
pub(super) enum Controller {
    /// The in-tree controller of Kubernetes' cloud provider.
    InTree,
    /// AWS's own controller, which users install.
    Own,
    /// AWS's own controller as a part of EKS Auto Mode. It serves a Service only if the Service has
    /// its class.
    AutoMode,
}

/// The class of EKS Auto Mode.
pub(super) const AUTO_MODE_CLASS: &str = "eks.amazonaws.com/nlb";

impl Controller {
    /// Returns the controller that makes the load balancer of a Service: AWS's own if the Service
    /// has a class, a type of that controller, or annotations that only that controller reads.
    pub(super) fn of(service: &Service) -> Self {
        if service.load_balancer_class.as_deref() == Some(AUTO_MODE_CLASS) {
            return Self::AutoMode;
        }
        let is_own = service.load_balancer_class.is_some()
            || matches!(get(service, TYPE), Some("external" | "nlb-ip"))
            || (get(service, TYPE).is_none() && get(service, TARGET_TYPE).is_some());
        if is_own { Self::Own } else { Self::InTree }
    }
}

/// Returns the targets that a Service states. The in-tree controller supports nodes only, and does
/// not read these annotations.
fn stated_targets(service: &Service) -> Option<Targets> {
    let controller = Controller::of(service);
    if controller == Controller::InTree {
        return None;
    }
    match get(service, TARGET_TYPE) {
        Some("ip") => return Some(Targets::Pods),
        Some("instance") => return Some(Targets::Nodes),
        _ => {}
    }
    let is_legacy = controller == Controller::Own && get(service, TYPE) == Some("nlb-ip");
    is_legacy.then_some(Targets::Pods)
}

/// Returns the default targets if neither the Service nor the controller's arguments state them.
fn usual_targets(service: &Service) -> Targets {
    match Controller::of(service) {
        Controller::AutoMode => Targets::Pods,
        Controller::InTree | Controller::Own => Targets::Nodes,
    }
}

/// Returns the default targets in a cluster, where an argument of AWS's own controller may set
/// them.
fn default_targets(cluster: &Cluster, service: &Service) -> Targets {
    match Controller::of(service) {
        Controller::Own if are_pods_default(cluster) => Targets::Pods,
        _ => usual_targets(service),
    }
}
