//! Finds Ingresses and routes that nothing serves, and Ingresses whose load balancer is not made.

use std::time::Duration;

use uturn_clouds::cloud::{IngressProduct, NoAddress};
use uturn_clouds::controller;
use uturn_model::gateway::AttachedRoute;
use uturn_model::ingress::{Backend, Unserved};
use uturn_model::{Cluster, Ingress, NamespacedName, Outcome, Share};
use uturn_path::Engine;

use super::object_faults::about;
use crate::clients::Clients;
use crate::finding::Finding;
use crate::{Code, Severity};

pub(crate) fn find(engine: &Engine<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    let all = cluster.ingresses.values().filter_map(|ingress| match &ingress.route {
        Some(route) => of_route(cluster, ingress, route),
        None => of_ingress(cluster, ingress),
    });
    all.collect()
}

/// Creates the finding that listeners of a Gateway do not take a route that asks for them.
fn of_route(cluster: &Cluster, ingress: &Ingress, route: &AttachedRoute) -> Option<Finding> {
    if route.refused.is_empty() {
        return None;
    }
    let why = route.refused.join("; ");
    let is_taken = !route.listeners.is_empty();
    let what = if is_taken {
        format!("{} takes it, but not at all listeners: {why}", route.gateway)
    } else {
        format!("{} takes it at no listener: {why}", route.gateway)
    };
    let mut finding =
        with_hosts(about(Code::IngressIgnored, ingress.object(), &ingress.origin, what), ingress);
    if !route.is_of_connections() {
        finding.outcome = Outcome::Status { code: 404, after: Duration::ZERO };
    }
    let is_elsewhere = || {
        let mut others = cluster.ingresses.values().filter_map(|other| other.route.as_ref());
        others.any(|other| other.object == route.object && !other.listeners.is_empty())
    };
    if is_taken || is_elsewhere() {
        finding.severity = Severity::Warning;
    }
    Some(finding)
}

fn of_ingress(cluster: &Cluster, ingress: &Ingress) -> Option<Finding> {
    if let Some(unserved) = &ingress.unserved {
        // Where no controller is recognised at all, one that is not may serve everything.
        let is_doubtful = unserved.condition.is_some() && cluster.controllers.is_empty();
        return (!is_doubtful).then(|| ignored(cluster, ingress, unserved));
    }
    let product = controller::product_of(ingress)?;
    if let Some(why) = refused(cluster, ingress, product) {
        return Some(not_made(ingress, Code::NoTargets, why.because, why.condition));
    }
    (ingress.is_pending && cluster.extent.services).then(|| {
        let why =
            format!("its status has no address: {} has not given it one (yet)", product.name());
        let mut finding = not_made(ingress, Code::Pending, why, None);
        finding.severity = Severity::Warning;
        finding
    })
}

/// Creates the finding that no controller serves an Ingress. Controllers that ignore it answer 404
/// for its hosts.
fn ignored(cluster: &Cluster, ingress: &Ingress, unserved: &Unserved) -> Finding {
    let what = format!("no controller serves it: {}", unserved.because);
    let mut finding =
        with_hosts(about(Code::IngressIgnored, ingress.object(), &ingress.origin, what), ingress);
    if !cluster.controllers.is_empty() {
        finding.outcome = Outcome::Status { code: 404, after: Duration::ZERO };
    }
    if let Some(condition) = &unserved.condition {
        finding.severity = Severity::Warning;
        finding.conditions.push(condition.clone());
    }
    finding
}

/// Creates the finding that the load balancer of an Ingress is not there.
fn not_made(
    ingress: &Ingress,
    code: Code,
    why: String,
    condition: Option<&'static str>,
) -> Finding {
    let mut finding = with_hosts(about(code, ingress.object(), &ingress.origin, why), ingress);
    if let Some(condition) = condition {
        finding.severity = Severity::Warning;
        finding.conditions.push(condition.into());
    }
    finding
}

/// Completes a finding that no call of an Ingress is answered.
pub(super) fn with_hosts(mut finding: Finding, ingress: &Ingress) -> Finding {
    let hosts = ingress.rules.iter().map(|rule| rule.host.as_deref().unwrap_or("*"));
    for host in hosts {
        let target = host.to_owned();
        if !finding.targets.contains(&target) {
            finding.targets.push(target);
        }
    }
    finding.clients = Clients::other(Clients::OF_HOSTS);
    finding.share_failing = Share::ALL;
    finding.outcome = Outcome::Unreachable;
    finding
}

/// Returns why the controller of a product makes no load balancer for an Ingress.
fn refused(
    cluster: &Cluster,
    ingress: &Ingress,
    product: &dyn IngressProduct,
) -> Option<NoAddress> {
    let paths = ingress.rules.iter().flat_map(|rule| &rule.paths).map(|path| &path.backend);
    let mut backends = paths.chain(&ingress.default_backend).filter(|backend| !backend.is_action());
    backends.find_map(|backend| {
        let Backend::Service { name, .. } = backend else { return None };
        let namespace = ingress.name.namespace.clone();
        let service = cluster.services.get(&NamespacedName { namespace, name: name.clone() })?;
        product.refuses(cluster, ingress, service)
    })
}
