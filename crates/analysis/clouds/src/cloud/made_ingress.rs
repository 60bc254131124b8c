//! The listeners, rules and targets that the controller of an [`IngressProduct`] makes.

use uturn_model::gateway::RouteBackend;
use uturn_model::ingress::{Backend, BackendPort};
use uturn_model::lb::{Listener, Rule, Target};
use uturn_model::{Cluster, Family, Ingress, NamespacedName};

use super::ingress_product::IngressProduct;
use super::made::{is_target, targets_of};
use super::{RuleAction, WantedListener, WantedRule, of_route};

/// Returns the listeners of an Ingress, with their targets of a family.
pub(crate) fn listeners(
    product: &dyn IngressProduct,
    cluster: &Cluster,
    ingress: &Ingress,
    family: Family,
) -> Vec<Listener> {
    let listener = |wanted: WantedListener<'_>| {
        let rule = |rule: WantedRule<'_>| made(product, cluster, ingress, rule, family);
        Listener {
            port: wanted.port,
            protocol: wanted.protocol,
            profile: product.profile(ingress, family),
            rules: wanted.rules.into_iter().filter_map(rule).collect(),
        }
    };
    let wanted = match &ingress.route {
        Some(route) => of_route(ingress, route),
        None => product.wanted(ingress),
    };
    wanted.into_iter().map(listener).collect()
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
