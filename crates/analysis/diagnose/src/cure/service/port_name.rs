//! Cures of endpoints that people write: they belong to a Service's port by the port's name.

use uturn_document::edit::{At, Change, Tree};
use uturn_model::service::ServicePort;
use uturn_model::{EndpointSlice, ObjectKind, ObjectRef, Service};

use crate::cure::{Case, Proposal, way};

/// The maximum number of items of a list that are looked at.
const MAX: usize = 50;

/// Proposes the same name for the Service's port and the endpoints' port.
pub(super) fn propose(case: &Case<'_>, service: &Service, port: &ServicePort) -> Vec<Proposal> {
    let slices = case.cluster().slices(&service.name);
    let of_slices = slices.iter().flat_map(|slice| &slice.ports);
    let has_name = of_slices.clone().any(|own| name_of(own.name.as_deref()) == name_of_port(port));
    let mut others = of_slices.filter(|own| own.protocol == port.protocol);
    let Some(other) = others.next().filter(|_| service.selector.is_none() && !has_name) else {
        return Vec::new();
    };
    let same = |own: &uturn_model::EndpointPort| own.name == other.name;
    if !others.all(same) {
        return Vec::new();
    }
    let of_service = in_service(service, port, name_of(other.name.as_deref()));
    of_service.into_iter().chain(in_endpoints(case, service, port, slices)).collect()
}

/// Returns a name; empty if there is none.
fn name_of(name: Option<&str>) -> &str {
    name.unwrap_or_default()
}

fn name_of_port(port: &ServicePort) -> &str {
    name_of(port.name.as_deref())
}

/// Describes a name: `named web`, `without a name`.
fn described(name: &str) -> String {
    if name.is_empty() { "without a name".to_owned() } else { format!("named {name}") }
}

/// Proposes the endpoints' name for the Service's port.
fn in_service(service: &Service, port: &ServicePort, name: &str) -> Option<Proposal> {
    // The ports of a Service with several need names.
    if name.is_empty() && service.ports.len() > 1 {
        return None;
    }
    let at = service.ports.iter().position(|own| own == port)?;
    let title = format!(
        "port {} of svc/{} {}, as its endpoints' port is",
        port.port,
        service.name,
        described(name)
    );
    let path = way!["spec", "ports", at, "name"];
    Some(
        Proposal::new("port-name", 11, title)
            .edit(service.object(), path, Change::Set(Tree::text(name)))
            .costs("an Ingress or a pod that names the port has to use the new name")
            .trial(),
    )
}

/// Proposes the name of the Service's port for the port of its endpoints.
fn in_endpoints(
    case: &Case<'_>,
    service: &Service,
    port: &ServicePort,
    slices: &[EndpointSlice],
) -> Option<Proposal> {
    let name = name_of_port(port);
    let set = || Change::Set(Tree::text(name));
    let old = ObjectRef::namespaced(ObjectKind::Endpoints, &service.name);
    let is_old = case.manifests.has(&old);
    let what = if is_old { "Endpoints" } else { "EndpointSlices" };
    let title = format!("the port in {what} {} {}", service.name, described(name));
    let mut made = Proposal::new("port-name", 12, title).trial();
    let count = |object: &ObjectRef, path: &[At]| {
        case.manifests.items_at(object, path).unwrap_or_default().min(MAX)
    };
    let mut is_edited = false;
    if is_old {
        for subset in 0..count(&old, &[At::from("subsets")]) {
            let list = way!["subsets", subset, "ports"];
            for at in 0..count(&old, &list) {
                made = made.edit(old.clone(), way!["subsets", subset, "ports", at, "name"], set());
                is_edited = true;
            }
        }
    }
    for slice in slices {
        let object = ObjectRef::namespaced(ObjectKind::EndpointSlice, &slice.name);
        if !case.manifests.has(&object) {
            continue;
        }
        for at in 0..count(&object, &[At::from("ports")]) {
            let path = way!["ports", at, "name"];
            // Kubernetes copies Endpoints to slices.
            made = if is_old {
                made.follow(object.clone(), path, set())
            } else {
                made.edit(object.clone(), path, set())
            };
            is_edited = true;
        }
    }
    (is_edited && service.ports.len() == 1).then_some(made)
}
