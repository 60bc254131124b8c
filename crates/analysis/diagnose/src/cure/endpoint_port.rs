//! Cures of endpoints that somebody wrote and that belong to no port of their Service: a port of a
//! Service takes the endpoints under its own name.

use uturn_document::edit::{At, Change, Tree};
use uturn_model::service::{ServicePort, TargetPort};
use uturn_model::{EndpointSlice, Mechanism, ObjectKind, ObjectRef, Service, Text};

use super::{Case, Proposal, way};

/// The maximum number of ports of an object that are looked through.
const MAX: usize = 100;

pub(super) fn propose(case: &Case<'_>) -> Vec<Proposal> {
    if !case.has(Mechanism::NoEndpoint) {
        return Vec::new();
    }
    let (Some(service), Some(port)) = (case.service(), &case.aim.port) else { return Vec::new() };
    // Kubernetes writes the names for Services with a selector.
    if service.selector.is_some() {
        return Vec::new();
    }
    let slices = case.cluster().slices(&service.name).iter();
    let slices: Vec<&EndpointSlice> =
        slices.filter(|slice| slice.endpoints.iter().any(|own| own.ready)).collect();
    if slices.iter().any(|slice| slice.ports.iter().any(|own| own.name == port.name)) {
        return Vec::new();
    }
    let all = [in_endpoints(case, service, port, &slices), in_service(service, port, &slices)];
    all.into_iter().flatten().collect()
}

/// Proposes the name of the Service's port in what lists the endpoints.
fn in_endpoints(
    case: &Case<'_>,
    service: &Service,
    port: &ServicePort,
    slices: &[&EndpointSlice],
) -> Option<Proposal> {
    let old = ObjectRef::namespaced(ObjectKind::Endpoints, &service.name);
    let written = slices.iter().filter(|slice| !slice.derived);
    let written: Vec<ObjectRef> = written
        .map(|slice| ObjectRef::namespaced(ObjectKind::EndpointSlice, &slice.name))
        .filter(|object| case.manifests.has(object))
        .collect();
    let is_old = case.manifests.has(&old);
    let object = if is_old { &old } else { written.first()? };
    let title = format!("port {} in {object}, as in svc/{}", called(&port.name), service.name);
    let mut made = Proposal::new("endpoint-port", 10, title).trial();
    let mut is_made = false;
    if is_old {
        let ports = way!["subsets", 0, "ports"];
        let path = name_of(case, &old, &ports, slices, port)?;
        made = made.edit(old.clone(), path, named(&port.name));
        is_made = true;
    }
    let ports = way!["ports"];
    for object in &written {
        let Some(path) = name_of(case, object, &ports, slices, port) else { continue };
        // Kubernetes copies Endpoints into slices.
        made = if is_old {
            made.follow(object.clone(), path, named(&port.name))
        } else {
            made.edit(object.clone(), path, named(&port.name))
        };
        is_made = true;
    }
    is_made.then_some(made)
}

/// Returns the place of the name of a port: of the port that the Service asks for, or of the only
/// one.
fn name_of(
    case: &Case<'_>,
    object: &ObjectRef,
    ports: &[At],
    slices: &[&EndpointSlice],
    port: &ServicePort,
) -> Option<Vec<At>> {
    let below =
        |at: usize, key: &str| -> Vec<At> { ports.iter().cloned().chain(way![at, key]).collect() };
    let number = |at: usize| case.manifests.text_at(object, &below(at, "port"));
    let numbers: Vec<String> = (0..MAX).map_while(number).collect();
    let wanted = match &port.target {
        TargetPort::Number(number) => number.to_string(),
        TargetPort::Name(_) => port.port.to_string(),
    };
    let known = |text: &String| {
        slices.iter().flat_map(|own| &own.ports).any(|own| own.port.to_string() == *text)
    };
    let at = match numbers.iter().position(|number| *number == wanted) {
        Some(at) => at,
        None => (numbers.len() == 1 && known(&numbers[0])).then_some(0)?,
    };
    Some(below(at, "name"))
}

/// Proposes the name of the endpoints' port in the Service, if it has one port only.
fn in_service(
    service: &Service,
    port: &ServicePort,
    slices: &[&EndpointSlice],
) -> Option<Proposal> {
    let [only] = service.ports.as_slice() else { return None };
    let [slice, ..] = slices else { return None };
    let [own] = slice.ports.as_slice() else { return None };
    let title =
        format!("port {} in svc/{}, as its endpoints have it", called(&own.name), service.name);
    let made = Proposal::new("endpoint-port", 11, title)
        .edit(service.object(), way!["spec", "ports", 0, "name"], named(&own.name))
        .costs("what calls the Service's port by its name (Ingresses, SRV records) has to follow")
        .trial();
    (only == port).then_some(made)
}

fn called(name: &Option<Text>) -> String {
    match name {
        Some(name) => format!("name {name}"),
        None => "without a name".to_owned(),
    }
}

fn named(name: &Option<Text>) -> Change {
    match name {
        Some(name) => Change::Set(Tree::text(&**name)),
        None => Change::Remove,
    }
}
