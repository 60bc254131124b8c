//! Cures of health checks that cannot pass, as objects show it: what makes them ask for something that
//! targets answer.

use uturn_model::Service;

use super::super::annotation::annotated;
use super::super::{Case, Proposal};
use super::service_of;
use crate::Finding;
use crate::find::stated_checks;

pub(super) fn propose(case: &Case<'_>, fault: &Finding) -> Vec<Proposal> {
    match service_of(case, fault) {
        Some(service) => of_service(case, service),
        None => Vec::new(),
    }
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
        .map(|(remedy, rank)| annotated(service, remedy, "answerable-checks", rank))
        .collect()
}
