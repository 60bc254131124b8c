//! Cures of Services that Kong calls in plain HTTP at a port that looks like one with TLS.

use uturn_document::edit::{Change, Tree};
use uturn_model::Service;

use super::super::{Case, Proposal, way};
use super::ingress_of;
use crate::Finding;
use crate::find::plain_backends::{PROTOCOLS, called_plainly};

/// The maximum number of Services for which the annotation is proposed.
const MAX: usize = 4;

pub(super) fn propose(case: &Case<'_>, fault: &Finding) -> Vec<Proposal> {
    let Some(ingress) = ingress_of(case, fault) else { return Vec::new() };
    let mut services: Vec<&Service> = Vec::new();
    for (service, _) in called_plainly(case.cluster(), ingress) {
        if !services.iter().any(|own| own.name == service.name) {
            services.push(service);
        }
    }
    let made = services.into_iter().take(MAX).map(|service| {
        let (key, short) = (PROTOCOLS[0], service.object().short());
        Proposal::new("kong-protocol", 10, format!("{key}: https for {short}"))
            .ask(
                format!("the pods of {short} speak TLS at this port"),
                "curl -k it by https in the cluster",
            )
            .edit(
                service.object(),
                way!["metadata", "annotations", key],
                Change::Set(Tree::text("https")),
            )
            .costs("Kong speaks TLS to all ports of this Service")
    });
    made.collect()
}
