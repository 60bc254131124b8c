//! What is left of an Ingress of which a target meets a part.

use std::collections::BTreeSet;

use uturn_model::ingress::Backend;
use uturn_model::lb::Rule;
use uturn_model::{Ingress, NamespacedName};

/// An Ingress without any path but these; `None` is its default backend.
pub(super) fn with_places(ingress: &Ingress, kept: &BTreeSet<Option<(usize, usize)>>) -> Ingress {
    let mut ingress = ingress.clone();
    if !kept.contains(&None) {
        ingress.default_backend = None;
        for (at, rule) in ingress.rules.iter_mut().enumerate() {
            let mut number = 0..;
            rule.paths.retain(|_| kept.contains(&number.next().map(|number| (at, number))));
        }
        ingress.rules.retain(|rule| !rule.paths.is_empty());
    }
    ingress
}

/// An Ingress without any rule but one.
pub(super) fn with_only(ingress: &Ingress, rule: Option<&Rule>) -> Ingress {
    let mut ingress = ingress.clone();
    let wanted = rule.map(|rule| (&rule.host, rule.path.as_ref(), &rule.service));
    let mut met = false;
    for host_rule in &mut ingress.rules {
        let host = host_rule.host.clone();
        host_rule.paths.retain(|path| {
            let is_to = |service: &NamespacedName| match &path.backend {
                Backend::Service { name, .. } => service.name == *name,
                Backend::Services(all) => all.iter().any(|behind| behind.service == *service),
                Backend::Resource(_) | Backend::Redirect(_) => false,
            };
            let same = wanted.is_some_and(|(wanted, wanted_path, service)| {
                *wanted == host
                    && wanted_path
                        .is_some_and(|(text, kind)| *text == path.path && *kind == path.kind)
                    && is_to(service)
            });
            // The first of equals wins.
            same && !std::mem::replace(&mut met, true)
        });
    }
    ingress.rules.retain(|host_rule| !host_rule.paths.is_empty());
    if wanted.is_none_or(|(host, path, _)| host.is_some() || path.is_some()) {
        ingress.default_backend = None;
    }
    ingress
}
