//! Cures of Ingresses with a backend that does not exist: a Service or port that does.

use std::collections::BTreeMap;

use uturn_document::edit::{At, Change, Tree};
use uturn_model::ingress::{Backend, BackendPort};
use uturn_model::service::ServicePort;
use uturn_model::{Ingress, NamespacedName, Service};

use super::super::ingress::is_near;
use super::super::{Case, Proposal, way};
use super::ingress_of;
use crate::Finding;

pub(super) fn propose(case: &Case<'_>, fault: &Finding) -> Vec<Proposal> {
    // The backends of a route stand elsewhere.
    let Some(ingress) = ingress_of(case, fault).filter(|ingress| ingress.route.is_none()) else {
        return Vec::new();
    };
    let backends = by_name(ingress);
    backends.into_iter().flat_map(|(of, places)| of_backend(case, ingress, &of, &places)).collect()
}

/// A Service and its port, as an Ingress names them.
type Named<'i> = (&'i str, &'i BackendPort);

/// A backend, and the places that name it, as paths from the root of the object.
type Placed<'i> = (Named<'i>, Vec<Vec<At>>);

/// Returns the places of each backend.
fn by_name(ingress: &Ingress) -> Vec<Placed<'_>> {
    let mut all: BTreeMap<(&str, String), Placed<'_>> = BTreeMap::new();
    let rules = ingress.rules.iter().enumerate();
    let listed = rules.flat_map(|(rule, own)| {
        own.paths.iter().enumerate().map(move |(at, path)| {
            (&path.backend, way!["spec", "rules", rule, "http", "paths", at, "backend"])
        })
    });
    let default = ingress.default_backend.iter();
    let default = default.map(|backend| (backend, way!["spec", "defaultBackend"]));
    for (backend, place) in listed.chain(default) {
        if let Backend::Service { name, port } = backend
            && !backend.is_action()
        {
            let named = (name.as_str(), port);
            let known = all.entry((name.as_str(), port.to_string())).or_insert((named, Vec::new()));
            known.1.push(place);
        }
    }
    all.into_values().collect()
}

fn of_backend(
    case: &Case<'_>,
    ingress: &Ingress,
    (name, port): &Named<'_>,
    places: &[Vec<At>],
) -> Vec<Proposal> {
    let services = &case.cluster().services;
    let Ok(full) = NamespacedName::new(ingress.name.namespace.as_str(), name) else {
        return Vec::new();
    };
    if let Some(service) = services.get(&full) {
        if service.port_named(port).is_some() {
            return Vec::new();
        }
        let to = |own: &ServicePort| {
            let shown = named_as(own, port).map_or_else(|| own.port.to_string(), str::to_owned);
            let title =
                format!("port {shown} of svc/{full} instead of {port}, which it does not have");
            let made = Proposal::new("ingress-backend", 12, title);
            with_port(case, ingress, made, places, (own, port))
        };
        return service.ports.iter().map(to).collect();
    }
    let at_home = || services.values().filter(|own| own.name.namespace == full.namespace);
    let has_port = |own: &&Service| own.port_named(port).is_some();
    let mut found: Vec<&Service> =
        at_home().filter(|own| is_near(own.name.name.as_str(), name)).collect();
    if found.is_empty() {
        let mut with_port = at_home().filter(has_port);
        let only = with_port.next().filter(|_| with_port.next().is_none());
        found.extend(only.or_else(|| {
            let mut all = at_home();
            all.next().filter(|_| all.next().is_none())
        }));
    }
    let to = |own: &&Service| {
        let title = format!("svc/{} instead of {full}, which does not exist", own.name);
        let mut made = Proposal::new("ingress-backend", 12, title);
        for place in places {
            let path = field(case, ingress, place, "name");
            let value = Tree::text(own.name.name.as_str());
            made = made.edit(ingress.object(), path, Change::Set(value));
        }
        if !has_port(own) {
            let [only] = own.ports.as_slice() else { return None };
            made = with_port(case, ingress, made, places, (only, port));
        }
        Some(made.costs(format!(
            "requests get to the pods of svc/{}: make sure that they are meant",
            own.name
        )))
    };
    found.iter().filter_map(to).collect()
}

/// Returns the name of a port, if a backend is written with a name and the port has one.
fn named_as<'s>(own: &'s ServicePort, written: &BackendPort) -> Option<&'s str> {
    match written {
        BackendPort::Name(_) => own.name.as_deref(),
        BackendPort::Number(_) => None,
    }
}

fn with_port(
    case: &Case<'_>,
    ingress: &Ingress,
    mut made: Proposal,
    places: &[Vec<At>],
    (own, written): (&ServicePort, &BackendPort),
) -> Proposal {
    let (key, port) = match named_as(own, written) {
        Some(name) => ("name", Tree::text(name)),
        None => ("number", Tree::number(own.port.number())),
    };
    for place in places {
        let path = field(case, ingress, place, "port");
        let is_old = path.last() == Some(&At::from("servicePort"));
        let value = if is_old { port.clone() } else { Tree::map([(key, port.clone())]) };
        made = made.edit(ingress.object(), path, Change::Set(value));
    }
    made
}

/// Returns the path of a field of a backend, which has another form in old versions of the API.
fn field(case: &Case<'_>, ingress: &Ingress, place: &[At], name: &str) -> Vec<At> {
    let below = |keys: &[&str]| -> Vec<At> {
        let keys = keys.iter().map(|key| At::from(*key));
        place.iter().cloned().chain(keys).collect()
    };
    let is_old = case.manifests.text_at(&ingress.object(), &below(&["serviceName"])).is_some();
    match (is_old, name) {
        (true, "name") => below(&["serviceName"]),
        (true, _) => below(&["servicePort"]),
        (false, name) => below(&["service", name]),
    }
}
