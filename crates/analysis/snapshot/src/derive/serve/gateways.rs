//! Converts routes of the Gateway API that are attached to Gateways to Ingresses, one for each
//! Gateway of a route, so that the analysis of Ingresses applies to them.

mod attach;
mod contest;

use uturn_model::gateway::{AttachedRoute, RouteBackend, RouteListener, RouteRedirect};
use uturn_model::ingress::{Backend, IngressPath, IngressRule, PathKind, Unserved};
use uturn_model::{Ingress, Name, NamespacedName, ObjectKind, ObjectRef, Text, Unknown};

use crate::decode::gateway::Gateway;
use crate::decode::gateway_route::{
    PathMatch, Route, RouteBackend as Written, RouteMatch, RouteRule,
};
use crate::decode::objects::Objects;
use crate::derive::Assumptions;
use crate::derive::populate::Population;
use crate::derive::unjudged::Gaps;

/// Makes an Ingress for each route and each Gateway to which it is attached, and lists the routes
/// that are not judged.
pub(super) fn complete(
    population: &mut Population,
    gaps: &mut Gaps,
    assumptions: &mut Assumptions,
) {
    let routes: Vec<Route> = population.routes.0.values().cloned().collect();
    let mut attached: Vec<Attached> = Vec::new();
    let mut detached: Vec<Attached> = Vec::new();
    for route in routes {
        let object = ObjectRef::namespaced(route.kind, &route.name);
        let mut gateways: Vec<&NamespacedName> =
            route.parents.iter().map(|parent| &parent.gateway).collect();
        gateways.sort();
        gateways.dedup();
        for (number, name) in gateways.into_iter().enumerate() {
            let Some(gateway) = population.gateways.0.get(name).cloned() else {
                let because = format!("Gateway {name} is not in the input");
                let unknown = Unknown::Controller(format!("Gateway {name}").into());
                gaps.add(object.clone(), unknown, because.into(), "give the Gateway".into());
                continue;
            };
            let (listeners, mut refused) = attach::listeners(&route, &gateway, assumptions);
            // Of several Gateways with this name, another may take the route.
            if population.gateways.1.contains(name) {
                refused.clear();
            }
            let is_attached = !listeners.is_empty();
            let route = route.clone();
            let one = Attached { route, gateway, number, listeners, refused, doubt: None };
            if is_attached {
                attached.push(one);
            } else if !one.refused.is_empty() {
                detached.push(one);
            }
        }
    }
    contest::settle(&mut attached, gaps);
    for one in attached.into_iter().chain(detached) {
        let (route, gateway) = (one.route.clone(), one.gateway.clone());
        let made = ingress(population, one, assumptions);
        let Some(made) = made.filter(|made| !population.ingresses.0.contains_key(&made.name))
        else {
            let unknown = Unknown::Controller(format!("Gateway {}", gateway.name).into());
            let because = "an Ingress has the name by which it would be called here";
            let settle = "name the Ingress differently";
            let object = ObjectRef::namespaced(route.kind, &route.name);
            gaps.add(object, unknown, because.into(), settle.into());
            continue;
        };
        population.serving().ingresses.insert(made.name.clone(), made);
    }
}

/// A route that is attached to listeners of one of its Gateways, or to none of them; `number` is the index of the
/// Gateway.
struct Attached {
    route: Route,
    gateway: Gateway,
    number: usize,
    listeners: Vec<RouteListener>,
    /// The reasons why listeners that it asks for do not take it.
    refused: Vec<Text>,
    /// The reason why it is not known whether the route gets the connections at these listeners.
    doubt: Option<Text>,
}

/// Returns the name of the Ingress that stands for a route: the route's name and kind, and for
/// further Gateways also the Gateway's name.
fn called(route: &Route, gateway: &Gateway, number: usize) -> Option<NamespacedName> {
    let kind = route.kind.as_str().to_ascii_lowercase();
    let own = &route.name.name;
    let name = match number {
        0 => format!("{own}.{kind}"),
        _ => format!("{own}.{kind}.{}.{}", gateway.name.namespace, gateway.name.name),
    };
    Some(NamespacedName { namespace: route.name.namespace.clone(), name: Name::new(name).ok()? })
}

fn ingress(
    objects: &Objects,
    attached: Attached,
    assumptions: &mut Assumptions,
) -> Option<Ingress> {
    let Attached { route, gateway, number, listeners, refused, doubt } = attached;
    let mut hosts: Vec<Option<Text>> = Vec::new();
    for host in listeners.iter().flat_map(|listener| &listener.hosts) {
        if !hosts.contains(host) {
            hosts.push(host.clone());
        }
    }
    if listeners.is_empty() {
        hosts = match route.hostnames.as_slice() {
            [] => vec![None],
            names => names.iter().cloned().map(Some).collect(),
        };
    }
    let unserved = listeners.is_empty().then(|| Unserved {
        because: format!(
            "Gateway {} takes it at no listener: {}",
            gateway.name,
            refused.join("; ")
        )
        .into(),
        condition: None,
        served: Vec::new(),
    });
    let object = ObjectRef::namespaced(route.kind, &route.name);
    let mut paths = paths(objects, &route, &object, assumptions);
    let doubt = doubt.or_else(|| {
        let has_several = route.kind.is_route_of_connections() && paths.len() > 1;
        has_several.then(|| "it has several rules, and each is for every connection".into())
    });
    if doubt.is_some() {
        paths.truncate(1);
    }
    let rule = |host| IngressRule { host, paths: paths.clone() };
    Some(Ingress {
        name: called(&route, &gateway, number)?,
        annotations: route.annotations,
        class: Some(gateway.class),
        default_backend: None,
        tls: Vec::new(),
        rules: hosts.into_iter().map(rule).collect(),
        load_balancer: gateway.addresses,
        is_pending: false,
        controller: None,
        possible_controllers: Vec::new(),
        unserved,
        class_settings: uturn_model::Labels::new(),
        product: None,
        route: Some(AttachedRoute {
            object,
            gateway: ObjectRef::namespaced(ObjectKind::Gateway, &gateway.name),
            listeners,
            refused,
            doubt,
        }),
        unjudged: Vec::new(),
        origin: route.origin,
    })
}

/// Returns the paths of a route, without those for special headers, parameters or methods.
fn paths(
    objects: &Objects,
    route: &Route,
    object: &ObjectRef,
    assumptions: &mut Assumptions,
) -> Vec<IngressPath> {
    let mut all = Vec::new();
    let mut left_out = 0;
    for rule in &route.rules {
        let backend = backend(objects, route, rule);
        if rule.matches.is_empty() {
            all.push(IngressPath { path: "/".into(), kind: PathKind::Prefix, backend });
            continue;
        }
        for RouteMatch { path, asks_more } in &rule.matches {
            if *asks_more {
                left_out += 1;
                continue;
            }
            let (path, kind) = match path {
                None => ("/".into(), PathKind::Prefix),
                Some((path, PathMatch::Is(kind))) => (path.clone(), *kind),
                Some((path, PathMatch::RegularExpression)) => {
                    (format!("~^({path})$").into(), PathKind::ImplementationSpecific)
                }
            };
            all.push(IngressPath { path, kind, backend: backend.clone() });
        }
    }
    if left_out > 0 {
        assumptions.assume(
            format!("requests of {object}"),
            "they have no header, parameter or method that a rule asks for",
            format!("{left_out} of its matches ask for one"),
            "trace to the Services behind those rules",
        );
    }
    all
}

fn backend(objects: &Objects, route: &Route, rule: &RouteRule) -> Backend {
    if let Some(filter) = &rule.unread {
        return Backend::Resource(format!("a filter {filter}").into());
    }
    if let Some(redirect) = &rule.redirect {
        return if redirect.changes_path {
            Backend::Resource("a redirect to another path".into())
        } else {
            Backend::Redirect(RouteRedirect {
                code: redirect.code,
                tls: redirect.tls,
                host: redirect.host.clone(),
                port: redirect.port,
            })
        };
    }
    let is_other = |written: &Written| written.service.is_none() && written.weight > 0;
    if rule.backends.iter().any(is_other) {
        return Backend::Resource("an object that is no Service".into());
    }
    let services = rule.backends.iter().filter_map(|written| {
        let service = written.service.clone()?;
        let is_granted = is_granted(objects, route, &service);
        Some(RouteBackend { service, port: written.port?, weight: written.weight, is_granted })
    });
    Backend::Services(services.collect())
}

/// Returns whether a route may lead to a Service. Returns `None` if it is not known.
fn is_granted(objects: &Objects, route: &Route, service: &NamespacedName) -> Option<bool> {
    let own = &route.name.namespace;
    if service.namespace == *own {
        return Some(true);
    }
    let grants = objects.reference_grants.0.values();
    let mut grants = grants.filter(|grant| grant.name.namespace == service.namespace);
    let is_granted = grants.any(|grant| {
        let is_from =
            grant.from.iter().any(|(kind, from)| **kind == *route.kind.as_str() && from == own);
        let mut to = grant.to.iter();
        is_from && to.any(|to| to.as_ref().is_none_or(|to| *to == service.name))
    });
    if is_granted {
        return Some(true);
    }
    let resolved = || {
        let all = route.statuses.iter().filter_map(|status| status.resolved);
        all.reduce(|all, one| all && one)
    };
    if objects.has_all("ReferenceGrants") || !objects.reference_grants.0.is_empty() {
        Some(false)
    } else {
        resolved()
    }
}
