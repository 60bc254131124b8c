//! Cures of health checks that cannot pass, as objects show it: what makes them ask for something that
//! targets answer.

use uturn_clouds::controller;
use uturn_document::edit::{Change, Tree};
use uturn_model::{Ingress, Service};

use super::super::annotation::annotated;
use super::super::{Case, Proposal, way};
use super::{announcing, service_of};
use crate::Finding;
use crate::find::stated_checks;

pub(super) fn propose(case: &Case<'_>, fault: &Finding) -> Vec<Proposal> {
    match service_of(case, fault) {
        Some(service) => of_service(case, service),
        None => {
            let ingress = case.cluster().ingress_of(&fault.subject);
            let made = ingress.and_then(|own| asking(case, own).or_else(|| of_ingress(case, own)));
            made.into_iter().collect()
        }
    }
}

/// Proposes that health checks of the backends of an Ingress ask for the pages of the pods' probes.
fn asking(case: &Case<'_>, ingress: &Ingress) -> Option<Proposal> {
    let (cluster, product) = (case.cluster(), controller::product_of(ingress)?);
    let services = controller::backends(cluster, ingress).into_iter();
    let other = services.filter_map(|service| {
        let page = product.page_asked(cluster, ingress, service)?;
        let probed =
            stated_checks::probed_page(cluster, service).filter(|own| *own != page.path)?;
        Some((product.asks_for(service, &probed)?, service.object().short(), probed))
    });
    let other: Vec<_> = other.collect();
    let (first, ..) = other.first()?;
    let named: Vec<String> =
        other.iter().map(|(_, service, path)| format!("{service} for {path}")).collect();
    let title = format!("{} {}: health checks ask {}", first.kind, first.name, named.join(", "));
    let mut made = Proposal::new("answerable-checks", RANK, title)
        .ask("the page answers 200 to everybody", "it is that of the readiness probe");
    made.objects.extend(other.into_iter().map(|(object, ..)| announcing::new_object(object)));
    Some(made)
}

/// The rank of a page for health checks. It serves all clients, unlike what one of them may call instead.
const RANK: u8 = 5;

/// A path that many servers have.
const PATH: &str = "/healthz";

/// Proposes that health checks of all backends of an Ingress ask for another page.
fn of_ingress(case: &Case<'_>, ingress: &Ingress) -> Option<Proposal> {
    let check = controller::product_of(ingress)?.other_check(ingress, PATH)?;
    let (key, value) = check.annotation;
    let services = controller::backends(case.cluster(), ingress);
    // What another object states is not written over.
    if services.is_empty() || services.iter().any(|own| own.annotations.get(key).is_some()) {
        return None;
    }
    let (kind, name) = (check.object.kind, &check.object.name);
    let names: Vec<String> = services.iter().map(|own| own.object().short()).collect();
    let title = format!(
        "health checks of {} ask for {PATH}: {kind} {name}, named in {key}",
        names.join(", ")
    );
    let mut made = Proposal::new("answerable-checks", RANK, title).ask(
        format!("the servers answer {PATH} with 200"),
        "the path is made up: name one that answers 200, without a redirect or a login (the same path in \
         the readiness probe does where no such object is)",
    );
    for service in services {
        let set = Change::Set(Tree::text(value.as_str()));
        made = made.edit(service.object(), way!["metadata", "annotations", key], set);
    }
    let (key, value) = check.report;
    let set = Change::Set(Tree::text(value));
    made = made.follow(ingress.object(), way!["metadata", "annotations", key], set);
    made.objects.push(announcing::new_object(check.object));
    Some(made)
}

/// Returns the remedies of the first port whose health checks cannot pass.
fn of_service(case: &Case<'_>, service: &Service) -> Vec<Proposal> {
    let mut ports = service.ports.iter();
    let check = ports.find_map(|port| stated_checks::unanswered(case.cluster(), service, port));
    let remedies = check.map(|check| check.remedies).unwrap_or_default();
    let ranks = 20..;
    remedies
        .iter()
        .zip(ranks)
        .map(|(remedy, rank)| annotated(&service.object(), remedy, "answerable-checks", rank))
        .collect()
}
