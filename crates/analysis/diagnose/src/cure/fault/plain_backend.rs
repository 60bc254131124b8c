//! Cures of Services that Kong calls in plain HTTP at a port that looks like one with TLS.

use uturn_document::edit::{Change, Tree};
use uturn_model::ingress::Backend;
use uturn_model::{NamespacedName, Service};

use super::super::{Case, Proposal, way};
use super::ingress_of;
use crate::Finding;
use crate::find::plain_backends::{PROTOCOLS, is_plain_by_mistake};

/// The maximum number of Services for which the annotation is proposed.
const MAX: usize = 4;

pub(super) fn propose(case: &Case<'_>, fault: &Finding) -> Vec<Proposal> {
    let Some(ingress) = ingress_of(case, fault) else { return Vec::new() };
    let cluster = case.cluster();
    let paths = ingress.rules.iter().flat_map(|rule| &rule.paths).map(|path| &path.backend);
    let mut services: Vec<&Service> = Vec::new();
    for backend in paths.chain(&ingress.default_backend) {
        let Backend::Service { name, port } = backend else { continue };
        let namespace = ingress.name.namespace.clone();
        let named = NamespacedName { namespace, name: name.clone() };
        let Some(service) = cluster.services.get(&named) else { continue };
        let is_it = service
            .port_named(port)
            .is_some_and(|port| is_plain_by_mistake(cluster, service, port));
        if is_it && !services.iter().any(|own| own.name == service.name) {
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
