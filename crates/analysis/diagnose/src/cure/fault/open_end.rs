//! Cures of what an object leaves open on the ways of its load balancer: an annotation that asks its
//! controller for it, or what somebody does in the cloud.

use uturn_clouds::cloud::Opening;
use uturn_document::edit::{Change, Tree};
use uturn_model::shell::Advice;

use super::super::annotation::annotated;
use super::super::facts::{document, facts};
use super::super::{Case, Proposal, way};
use crate::find::open_ends;
use crate::{Code, Finding};

/// The rank of these cures.
const RANK: u8 = 12;

pub(super) fn propose(case: &Case<'_>, fault: &Finding) -> Vec<Proposal> {
    let Some(left) = open_ends::left(case.cluster(), &fault.subject) else { return Vec::new() };
    let is_default = fault.code == Code::NoRoute && fault.conditions.is_empty();
    let made = match (left.end, left.default) {
        (_, Some(default)) if is_default => {
            annotated(&fault.subject, &default.remedy, "internet-facing", RANK)
        }
        (Some(end), _) if !is_default => match end.opening {
            Opening::Annotation(remedy) => annotated(&fault.subject, &remedy, "open-groups", RANK),
            Opening::PodRoutes(title, command) => pod_routes(case, title, command),
        },
        _ => return Vec::new(),
    };
    vec![made]
}

/// Proposes routes to the pods of every node, with the fact that they are there.
fn pod_routes(case: &Case<'_>, title: &str, command: &'static str) -> Proposal {
    let made = Proposal::new("pod-routes", RANK, title)
        .types(Advice::sentence(command))
        .costs("what else is in that table applies to the other subnet too");
    if case.manifests.has(&facts()) {
        let path = way!["nodes", "*", "podRoutes"];
        return made.edit(facts(), path, Change::Set(Tree::bare("true")));
    }
    let routed = Tree::map([("podRoutes", Tree::bare("true"))]);
    let spec = Tree::map([("nodes", Tree::map([("*", routed)]))]);
    let mut made = made.costs("the Facts say that it is done: no object of the cluster shows it");
    made.objects.push(("facts.yaml".to_owned(), facts(), document(spec)));
    made
}
