//! Cures of load balancers in pods that drop what they should forward: a release that forwards it, or a
//! policy with which they send elsewhere.

use uturn_clouds::cloud::{Product, Undelivered};
use uturn_clouds::on_nodes;
use uturn_document::edit::{At, Change, Tree};
use uturn_model::{Mechanism, Pod, Service};

use super::template::Template;
use super::{Case, Proposal, way};

/// The maximum number of pods whose image changes.
const MAX: usize = 100;

/// Proposes what helps calls that may have been dropped in the pods of a load balancer.
pub(super) fn propose(case: &Case<'_>) -> Vec<Proposal> {
    if !case.has(Mechanism::Firewall) {
        return Vec::new();
    }
    let all = on_nodes::all(case.cluster());
    let of_each = all.iter().flat_map(|balancer| of_service(case, balancer.service));
    of_each.map(Proposal::trial).collect()
}

/// Proposes what makes the pods of a Service's load balancer forward.
pub(super) fn of_service(case: &Case<'_>, service: &Service) -> Vec<Proposal> {
    let all = on_nodes::all(case.cluster());
    let Some(balancer) = all.iter().find(|own| own.service.name == service.name) else {
        return Vec::new();
    };
    let drops = |pod: &&&Pod| {
        let mut ports = service.ports.iter();
        ports.any(|port| balancer.product.drops_forwarded(pod, service, port).is_some())
    };
    let pods: Vec<&Pod> = balancer.pods.iter().filter(drops).copied().collect();
    if pods.is_empty() || pods.len() > MAX {
        return Vec::new();
    }
    newer(case, balancer.product, service, &pods).into_iter().chain([policy(service)]).collect()
}

/// Proposes the first release that forwards.
fn newer(
    case: &Case<'_>,
    product: &dyn Product,
    service: &Service,
    pods: &[&Pod],
) -> Option<Proposal> {
    let pod = *pods.first()?;
    let mut found: Vec<Undelivered> = Vec::new();
    for port in &service.ports {
        let new = product.drops_forwarded(pod, service, port);
        let is_known =
            |own: &Undelivered| found.iter().any(|known| known.container == own.container);
        found.extend(new.filter(|own| !is_known(own)));
    }
    let template = Template::of_pod(case, pod)?;
    let title = format!("{} in {}", found.first()?.image, template.object);
    let mut made = Proposal::new("newer-relay", 15, title).costs(
        "the distribution writes this object: take a release of it that has this image, or it goes back",
    );
    for own in found {
        let container = At::Where("name".to_owned(), own.container.to_string());
        let path = way!["spec", "containers", container, "image"];
        made = template.edit(case, made, &path, &Change::Set(Tree::text(own.image)))?;
    }
    Some(made)
}

/// Proposes the policy with which the pods send to the Service's own address.
fn policy(service: &Service) -> Proposal {
    let path = way!["spec", "externalTrafficPolicy"];
    Proposal::new("policy-cluster", 20, format!("policy Cluster for svc/{}", service.name))
        .edit(service.object(), path, Change::Set(Tree::text("Cluster")))
        .costs("servers see an address of a node in place of the client's")
}
