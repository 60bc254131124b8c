//! Cures of a Service: its ports, selector, policy and type.

mod readiness;
mod selector;

use uturn_document::edit::{Change, Tree};
use uturn_model::service::{Policy, ServiceKind, ServicePort, TargetPort};
use uturn_model::{
    Destination, Flow, IpNet, Mechanism, NamespacedName, Pod, Port, Service, Text, WorkloadKind,
    gateway_ports, mesh,
};

use super::name::with_port;
use super::{Case, Proposal, controller, endpoints, way};

pub(super) fn propose(case: &Case<'_>) -> Vec<Proposal> {
    let mut all = Vec::new();
    all.extend(publish_not_ready(case));
    // If a controller answers, the Service behind the controller fails.
    let failing = if controller::answers(case) {
        controller::backend(case).map(|(service, port)| (service, Some(port)))
    } else {
        case.service().map(|service| (service, case.aim.port.as_ref()))
    };
    if case.has(Mechanism::Firewall) {
        all.extend(source_ranges(case));
    }
    let Some((service, port)) = failing else { return all };
    if let Some(port) =
        port.filter(|_| case.has(Mechanism::WrongPort) || case.has(Mechanism::NoEndpoint))
    {
        if service.headless {
            all.extend(headless_port(case, service, port));
        } else {
            all.extend(target_port(case, service, port));
            all.extend(undeclared_port(case, service, port));
        }
    }
    if case.has(Mechanism::NoEndpoint) {
        all.extend(selector::propose(case, service));
        all.extend(readiness::propose(case, service));
        all.extend(node_port(case, service));
        all.extend(internal_policy(service));
    }
    all
}

/// Proposes that pods may call a Service by the address of its load balancer.
fn source_ranges(case: &Case<'_>) -> Option<Proposal> {
    let service = case.service()?;
    let pods = &case.cluster().network.pod_cidrs.value;
    let is_missing = |net: &&IpNet| !service.source_ranges.iter().any(|own| own.contains(*net));
    let missing: Vec<&IpNet> = pods.iter().filter(is_missing).collect();
    if service.source_ranges.is_empty() || !case.is_from_inside() || missing.is_empty() {
        return None;
    }
    let ranges: Vec<String> = missing.iter().map(ToString::to_string).collect();
    let title =
        format!("{} in loadBalancerSourceRanges of svc/{}", ranges.join(", "), service.name);
    let made = Proposal::new("source-ranges", 11, title)
        .costs(
            "every pod may call the Service by its load balancer's address, as by its cluster IP",
        )
        .trial();
    let append = |made: Proposal, range: &String| {
        let way = way!["spec", "loadBalancerSourceRanges"];
        made.edit(service.object(), way, Change::Append(Tree::text(&**range)))
    };
    Some(ranges.iter().fold(made, append))
}

/// Returns a Service with another target of one of its ports.
pub(super) fn with_target(service: &Service, at: usize, target: TargetPort) -> Service {
    let mut after = service.clone();
    after.ports[at].target = target;
    after
}

/// Proposes target ports that the pods have.
fn target_port(case: &Case<'_>, service: &Service, port: &ServicePort) -> Vec<Proposal> {
    let Some(at) = service.ports.iter().position(|service_port| service_port == port) else {
        return Vec::new();
    };
    let pods = case.cluster().selected(service);
    // The controller opens the port with the first host that asks for TLS.
    let mut controllers = case.cluster().controllers.iter();
    if controllers.any(|own| own.is_shut_behind(&service.name, port.port)) {
        return Vec::new();
    }
    // What a gateway's proxy opens is said by its Gateways, not by its containers.
    if pods.iter().any(|pod| mesh::is_gateway(&pod.spec)) {
        return Vec::new();
    }
    let takes_tls = |number: Port| {
        let mut of = pods.iter().filter_map(|pod| case.cluster().controller_of(pod));
        of.find_map(|own| own.listener(number.number())).map(|listener| listener.tls)
    };
    let old = endpoints::target_of(port, &pods);
    let mut seen: Vec<(Option<Text>, Port)> = Vec::new();
    for own in pods.iter().flat_map(|pod| pod.spec.ports()) {
        let known = (own.name.clone(), own.port);
        let is_own = pods.iter().any(|pod| gateway_ports::is_own(pod, own.port.number()));
        if own.protocol == port.protocol && !is_own && !seen.contains(&known) {
            seen.push(known);
        }
    }
    let others = seen.into_iter().filter(|(name, number)| match &port.target {
        TargetPort::Number(old) => old != number,
        TargetPort::Name(old) => name.as_ref() != Some(old),
    });
    // Clients that speak TLS would get a port that does not.
    let was_tls = old.map_or(port.port.number() == 443, |old| takes_tls(old) == Some(true));
    let others = others.filter(|(_, number)| !(was_tls && takes_tls(*number) == Some(false)));
    let made = others.map(|(name, number)| {
        let (value, tree, target) = match &name {
            Some(name) => {
                let value = format!("{name} ({number})");
                (value, Tree::text(&**name), TargetPort::Name(name.clone()))
            }
            None => (number.to_string(), Tree::number(number.number()), TargetPort::Number(number)),
        };
        let made = Proposal::new("target-port", 10, title(service, port, &value))
            .edit(service.object(), way!["spec", "ports", at, "targetPort"], Change::Set(tree))
            .costs("the pods' containers declare that port; whether they listen on it is not known")
            .trial();
        endpoints::follow(case, made, &with_target(service, at, target), &pods)
    });
    made.collect()
}

pub(super) fn title(service: &Service, port: &ServicePort, value: &str) -> String {
    format!(
        "targetPort {value} instead of {} for svc/{} port {}",
        port.target, service.name, port.port
    )
}

/// Proposes the number of a port that pods do not declare, in place of a name that they do not
/// have: a number of their command lines, environment or probes, or else the Service's own.
fn undeclared_port(case: &Case<'_>, service: &Service, port: &ServicePort) -> Option<Proposal> {
    let at = service.ports.iter().position(|service_port| service_port == port)?;
    let TargetPort::Name(name) = &port.target else { return None };
    let pods = case.cluster().selected(service);
    let first = pods.first()?;
    let declares = |pod: &&Pod| pod.spec.ports().any(|own| own.protocol == port.protocol);
    if pods.iter().any(declares) {
        return None;
    }
    let is_told = |number: Port| {
        let mut containers = first.spec.containers.iter();
        first.spec.is_probed(number) || containers.any(|own| own.mentions(number))
    };
    let number = port.port;
    let (what, because) = (format!("the pods listen on {number}"), format!("{}", first.name));
    let mut made = Proposal::new("target-port", 11, title(service, port, &number.to_string()))
        .edit(
            service.object(),
            way!["spec", "ports", at, "targetPort"],
            Change::Set(Tree::number(number.number())),
        )
        .trial();
    made = if is_told(number) {
        made.when(
            what,
            true,
            format!("the command line, environment or a probe of {because} has it"),
        )
    } else {
        made.ask(
            what,
            format!(
                "it is the Service's own port, and {because} declares none: look at its settings"
            ),
        )
    };
    made = made.costs(format!(
        "or name that port {name:?} in the container: containerPort {number}, which changes its pods"
    ));
    let after = with_target(service, at, TargetPort::Number(number));
    Some(endpoints::follow(case, made, &after, &pods))
}

/// Proposes that a headless Service's port is that of its pods: nothing translates it.
fn headless_port(case: &Case<'_>, service: &Service, port: &ServicePort) -> Option<Proposal> {
    let at = service.ports.iter().position(|service_port| service_port == port)?;
    let pods = case.cluster().selected(service);
    let number = match &port.target {
        TargetPort::Number(number) => *number,
        TargetPort::Name(name) => pods.first()?.spec.named_port(name, port.protocol)?,
    };
    if number == port.port || service.ports.iter().any(|other| other.port == number) {
        return None;
    }
    let to = with_port(&case.walked()?.to, number)?;
    let title = format!("port {number} instead of {} for svc/{}", port.port, service.name);
    let mut made = Proposal::new("headless-port", 20, title)
        .edit(
            service.object(),
            way!["spec", "ports", at, "port"],
            Change::Set(Tree::number(number.number())),
        )
        .costs(format!("a name leads to pods, so callers have to use {number} as well: {to}"))
        .trial();
    made.then = Some(Flow { to, ..case.walked()?.clone() });
    Some(made)
}

/// Proposes that the name of a StatefulSet's governing Service leads to pods before they are ready,
/// so that they find each other.
fn publish_not_ready(case: &Case<'_>) -> Option<Proposal> {
    if !(case.has(Mechanism::NameUnresolved) || case.has(Mechanism::NoEndpoint)) {
        return None;
    }
    let service = governing(case)?;
    let pods = case.cluster().selected(service);
    let is_peer = |pod: &&Pod| {
        pod.owner.as_ref().is_some_and(|owner| owner.kind == WorkloadKind::StatefulSet.into())
    };
    let waits = pods.iter().any(|pod| !pod.ready);
    if !service.headless || service.publishes_not_ready || !pods.iter().all(is_peer) || !waits {
        return None;
    }
    let title = format!("publishNotReadyAddresses for svc/{}", service.name);
    let made = Proposal::new("publish-not-ready", 12, title)
        .ask(
            "its pods become ready only after they have found each other",
            "members of one system do: databases, queues, elections",
        )
        .edit(
            service.object(),
            way!["spec", "publishNotReadyAddresses"],
            Change::Set(Tree::bare("true")),
        )
        .costs("the Service's name leads to all its pods, ready or not: clients should call another Service")
        .trial();
    let after = Service { publishes_not_ready: true, ..service.clone() };
    Some(endpoints::follow(case, made, &after, &pods))
}

/// Returns the Service that is called, or below whose name a pod is called.
fn governing<'c>(case: &Case<'c>) -> Option<&'c Service> {
    let flow = case.walked()?;
    let host = match &flow.to {
        Destination::Host(host, _) | Destination::Url { host, .. } => &**host,
        _ => return case.service(),
    };
    let own = case.client_namespace();
    let parts: Vec<&str> = host.split('.').collect();
    let known = |namespace: &str, name: &str| {
        let name = NamespacedName::new(namespace, name).ok()?;
        case.cluster().services.get(&name)
    };
    let below = match parts.as_slice() {
        [_, service, namespace, ..] => known(namespace, service),
        [_, service] => own.and_then(|own| known(own.as_str(), service)),
        _ => None,
    };
    let itself = || match parts.as_slice() {
        [service, namespace, ..] => known(namespace, service),
        [service] => own.and_then(|own| known(own.as_str(), service)),
        [] => None,
    };
    below.or_else(itself)
}

/// Proposes that calls from inside may use endpoints of other nodes.
fn internal_policy(service: &Service) -> Option<Proposal> {
    let title = format!("internalTrafficPolicy Cluster for svc/{}", service.name);
    let field = way!["spec", "internalTrafficPolicy"];
    (service.internal_policy == Policy::Local).then(|| {
        Proposal::new("internal-policy", 12, title)
            .edit(service.object(), field, Change::Set(Tree::text("Cluster")))
            .costs("calls from inside may leave their node: make sure that none has to stay there")
    })
}

/// Proposes a NodePort, if a load balancer needs one to have targets.
fn node_port(case: &Case<'_>, service: &Service) -> Option<Proposal> {
    if service.kind != ServiceKind::ClusterIp || case.aim.vip.is_none() || service.headless {
        return None;
    }
    Some(
        Proposal::new("node-port", 25, format!("type NodePort for svc/{}", service.name))
            .edit(service.object(), way!["spec", "type"], Change::Set(Tree::text("NodePort")))
            .costs("the Service gets a port on every node")
            .trial(),
    )
}
