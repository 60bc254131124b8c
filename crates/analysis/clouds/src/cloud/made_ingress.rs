//! The listeners, rules and targets that the controller of an [`IngressProduct`] makes.

use std::collections::BTreeSet;

use uturn_model::gateway::RouteBackend;
use uturn_model::ingress::{Backend, BackendPort};
use uturn_model::lb::{HealthQuestion, Listener, Rule, Target};
use uturn_model::{Cluster, Family, Ingress, Mechanism, NamespacedName, Service};

use super::ingress_product::IngressProduct;
use super::made::{is_target, targets_of};
use super::{RuleAction, WantedListener, WantedRule, of_route};
use crate::targets::has_endpoint;

/// Returns the listeners of an Ingress, with their targets of a family.
pub(crate) fn listeners(
    product: &dyn IngressProduct,
    cluster: &Cluster,
    ingress: &Ingress,
    family: Family,
) -> Vec<Listener> {
    let reported = reported_unhealthy(product, cluster, ingress);
    let are_all = reported.is_some_and(|reported| reported.are_all);
    let listener = |wanted: WantedListener<'_>| {
        let rule = |rule: WantedRule<'_>| made(product, cluster, ingress, rule, family);
        let mut profile = product.profile(ingress, family);
        if let Some(check) = profile.health_check.as_mut().filter(|_| are_all) {
            check.question = HealthQuestion::Unanswered(Mechanism::ProbeBlackhole);
        }
        Listener {
            port: wanted.port,
            protocol: wanted.protocol,
            profile,
            rules: wanted.rules.into_iter().filter_map(rule).collect(),
        }
    };
    let wanted = match &ingress.route {
        Some(route) => of_route(ingress, route),
        None => product.wanted(ingress),
    };
    wanted.into_iter().map(listener).collect()
}

/// The backends that a controller's own report calls unhealthy.
pub struct Unhealthy {
    /// The backends, by the controller's names.
    pub backends: Vec<String>,
    /// Whether they are all backends of the Ingress.
    pub are_all: bool,
}

/// Returns the backends of an Ingress that its controller reports as unhealthy, although all Services
/// that the Ingress names have endpoints.
pub(crate) fn reported_unhealthy(
    product: &dyn IngressProduct,
    cluster: &Cluster,
    ingress: &Ingress,
) -> Option<Unhealthy> {
    let (backends, are_all) = product.reported_unhealthy(ingress);
    let have_endpoints =
        || self::backends(cluster, ingress).iter().all(|service| has_endpoint(cluster, service));
    (!backends.is_empty() && have_endpoints()).then_some(Unhealthy { backends, are_all })
}

/// Returns the Services that an Ingress names, each once.
pub(crate) fn backends<'c>(cluster: &'c Cluster, ingress: &Ingress) -> Vec<&'c Service> {
    let paths = ingress.rules.iter().flat_map(|rule| &rule.paths).map(|path| &path.backend);
    let names = paths.chain(&ingress.default_backend).flat_map(|backend| match backend {
        Backend::Service { name, .. } => {
            let namespace = ingress.name.namespace.clone();
            vec![NamespacedName { namespace, name: name.clone() }]
        }
        Backend::Services(all) => all.iter().map(|one| one.service.clone()).collect(),
        _ => Vec::new(),
    });
    let names: BTreeSet<NamespacedName> = names.collect();
    names.iter().filter_map(|name| cluster.services.get(name)).collect()
}

/// Makes a rule with its targets. Returns `None` if its backend is not a Service.
fn made(
    product: &dyn IngressProduct,
    cluster: &Cluster,
    ingress: &Ingress,
    rule: WantedRule<'_>,
    family: Family,
) -> Option<Rule> {
    let WantedRule { host, path, action } = rule;
    let (service, targets, redirect) = match action {
        RuleAction::Redirect(redirect) => (ingress.name.clone(), Vec::new(), Some(redirect)),
        RuleAction::Serve(Backend::Resource(_) | Backend::Redirect(_)) => return None,
        // Routes with several Services are not judged.
        RuleAction::Serve(Backend::Services(all)) => {
            let RouteBackend { service, port, .. } = all.first()?;
            let port = BackendPort::Number(*port);
            let targets = targets_behind(product, cluster, ingress, (service, &port), family);
            (service.clone(), targets, None)
        }
        RuleAction::Serve(Backend::Service { name, port }) => {
            let namespace = ingress.name.namespace.clone();
            let service = NamespacedName { namespace, name: name.clone() };
            let targets = targets_behind(product, cluster, ingress, (&service, port), family);
            (service, targets, None)
        }
    };
    Some(Rule { host, path, service, owner: ingress.object(), targets, redirect })
}

/// Returns the targets of a port of a Service. Returns an empty list if there is no such Service or
/// port.
fn targets_behind(
    product: &dyn IngressProduct,
    cluster: &Cluster,
    ingress: &Ingress,
    (name, port): (&NamespacedName, &BackendPort),
    family: Family,
) -> Vec<Target> {
    let Some(service) = cluster.services.get(name) else { return Vec::new() };
    let Some(port) = service.port_named(port) else { return Vec::new() };
    let targets = product.targets(cluster, ingress, service);
    targets_of(cluster, service, port, family, targets, &is_target)
}
