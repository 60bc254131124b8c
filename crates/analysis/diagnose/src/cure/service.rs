//! Cures of a Service: its ports, selector, policy and type.

use uturn_document::edit::{Change, Tree};
use uturn_model::service::{Policy, ServiceKind, ServicePort, TargetPort};
use uturn_model::{Mechanism, ObjectKind, ObjectRef, Pod, Selector, Service};

use super::{Case, Proposal, controller, way};

pub(super) fn propose(case: &Case<'_>) -> Vec<Proposal> {
    // If a controller answers, the Service behind the controller fails.
    let failing = if controller::answers(case) {
        controller::backend(case).map(|(service, port)| (service, Some(port)))
    } else {
        case.service().map(|service| (service, case.aim.port.as_ref()))
    };
    let Some((service, port)) = failing else { return Vec::new() };
    let mut all = Vec::new();
    if let Some(port) =
        port.filter(|_| case.has(Mechanism::WrongPort) || case.has(Mechanism::NoEndpoint))
    {
        all.extend(target_port(case, service, port));
    }
    if case.has(Mechanism::NoEndpoint) {
        all.extend(selector(case, service));
        all.extend(node_port(case, service));
        all.extend(internal_policy(service));
    }
    all
}

/// Proposes target ports that the pods have.
fn target_port(case: &Case<'_>, service: &Service, port: &ServicePort) -> Vec<Proposal> {
    let Some(at) = service.ports.iter().position(|service_port| service_port == port) else {
        return Vec::new();
    };
    let mut seen: Vec<(Option<String>, u16)> = Vec::new();
    for pod in case.cluster().selected(service) {
        for container_port in
            pod.spec.ports().filter(|container_port| container_port.protocol == port.protocol)
        {
            let known = (
                container_port.name.as_ref().map(ToString::to_string),
                container_port.port.number(),
            );
            if !seen.contains(&known) {
                seen.push(known);
            }
        }
    }
    let others = seen.into_iter().filter(|(name, number)| match &port.target {
        TargetPort::Number(old) => old.number() != *number,
        TargetPort::Name(old) => name.as_deref() != Some(&**old),
    });
    let made = others.map(|(name, number)| {
        let (value, tree) = match &name {
            Some(name) => (format!("{name} ({number})"), Tree::text(&**name)),
            None => (number.to_string(), Tree::number(number)),
        };
        let mut made = Proposal::new(
            "target-port",
            10,
            format!(
                "targetPort {value} instead of {} for svc/{} port {}",
                port.target, service.name, port.port
            ),
        )
        .edit(service.object(), way!["spec", "ports", at, "targetPort"], Change::Set(tree))
        .costs("the pods' containers declare that port; whether they listen on it is not known")
        .trial();
        for slice in case.cluster().slices(&service.name).iter().filter(|slice| !slice.derived) {
            let Some(at) = slice.ports.iter().position(|slice_port| slice_port.name == port.name)
            else {
                continue;
            };
            let object = ObjectRef::namespaced(ObjectKind::EndpointSlice, &slice.name);
            made =
                made.follow(object, way!["ports", at, "port"], Change::Set(Tree::number(number)));
        }
        made
    });
    made.collect()
}

/// Proposes a selector that selects pods.
fn selector(case: &Case<'_>, service: &Service) -> Vec<Proposal> {
    let Some(old) = &service.selector else { return Vec::new() };
    if !case.cluster().selected(service).is_empty() || has_workload(case, service, old) {
        return Vec::new();
    }
    let fits = |pod: &&Pod| {
        pod.name.namespace == service.name.namespace
            && pod.is_alive()
            && pod.ready
            && service.ports.iter().all(|port| match &port.target {
                TargetPort::Number(number) => {
                    pod.spec.ports().any(|container_port| container_port.port == *number)
                }
                TargetPort::Name(name) => pod.spec.named_port(name, port.protocol).is_some(),
            })
    };
    let mut found: Vec<Vec<(String, String)>> = Vec::new();
    for pod in case.cluster().pods.values().filter(fits) {
        let wanted: Option<Vec<(String, String)>> = old
            .labels
            .iter()
            .map(|(key, _)| Some((key.to_owned(), pod.spec.labels.get(key)?.to_owned())))
            .collect();
        if let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty())
            && !found.contains(&wanted)
        {
            found.push(wanted);
        }
    }
    // With several candidates, it is not known which one is meant.
    let [labels] = found.as_slice() else { return Vec::new() };
    let selected: Vec<String> =
        labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let tree =
        Tree::Map(labels.iter().map(|(key, value)| (key.clone(), Tree::text(&**value))).collect());
    let title = format!("select {} for svc/{}", selected.join(","), service.name);
    vec![
        Proposal::new("selector", 11, title)
            .edit(service.object(), way!["spec", "selector"], Change::Set(tree))
            .costs("these are the only pods of the namespace that have those labels' keys and the ports: make sure that they are meant")
            .trial(),
    ]
}

/// Returns whether a workload creates pods that a Service selects, even if it has none now: then
/// the selector is as intended.
fn has_workload(case: &Case<'_>, service: &Service, selector: &Selector) -> bool {
    let mut workloads = case.cluster().workloads.values();
    workloads.any(|workload| {
        workload.name.namespace == service.name.namespace
            && selector.matches(&workload.template.labels)
    })
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
