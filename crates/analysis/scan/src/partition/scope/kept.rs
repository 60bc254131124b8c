//! Reduces an Ingress to the part that a target meets.

use std::collections::BTreeSet;

use uturn_model::ingress::{Backend, IngressPath, IngressRule};
use uturn_model::lb::Rule;
use uturn_model::{Ingress, NamespacedName, Text};

/// Returns an Ingress with only these paths; `None` is its default backend.
pub(super) fn with_places(ingress: &Ingress, kept: &BTreeSet<Option<(usize, usize)>>) -> Ingress {
    if kept.contains(&None) {
        return ingress.clone();
    }
    let is_kept = |rule: usize, path: usize| kept.contains(&Some((rule, path)));
    Ingress { rules: rules(ingress, is_kept), default_backend: None, ..without_rules(ingress) }
}

/// Returns an Ingress with only this rule.
pub(super) fn with_only(ingress: &Ingress, rule: Option<&Rule>) -> Ingress {
    let wanted = rule.map(|rule| (&rule.host, rule.path.as_ref(), &rule.service));
    let is_wanted = |host: &Option<Text>, path: &IngressPath| {
        let is_to = |service: &NamespacedName| match &path.backend {
            Backend::Service { name, .. } => service.name == *name,
            Backend::Services(all) => all.iter().any(|behind| behind.service == *service),
            Backend::Resource(_) | Backend::Redirect(_) => false,
        };
        wanted.is_some_and(|(wanted, wanted_path, service)| {
            wanted == host
                && wanted_path.is_some_and(|(text, kind)| *text == path.path && *kind == path.kind)
                && is_to(service)
        })
    };
    let all = ingress.rules.iter().enumerate();
    // The first of equal paths wins.
    let first = all.into_iter().find_map(|(at, own)| {
        Some((at, own.paths.iter().position(|path| is_wanted(&own.host, path))?))
    });
    let default_backend = match wanted {
        Some((None, None, _)) => ingress.default_backend.clone(),
        _ => None,
    };
    let rules = rules(ingress, |rule, path| first == Some((rule, path)));
    Ingress { rules, default_backend, ..without_rules(ingress) }
}

/// Returns the rules of an Ingress with only the paths that are kept, by the places of both.
fn rules(ingress: &Ingress, is_kept: impl Fn(usize, usize) -> bool) -> Vec<IngressRule> {
    let kept = |(at, rule): (usize, &IngressRule)| {
        let paths = rule.paths.iter().enumerate().filter(|(path, _)| is_kept(at, *path));
        let paths: Vec<IngressPath> = paths.map(|(_, path)| path.clone()).collect();
        (!paths.is_empty()).then(|| IngressRule { host: rule.host.clone(), paths })
    };
    ingress.rules.iter().enumerate().filter_map(kept).collect()
}

/// Returns an Ingress without its rules, of which there may be thousands.
fn without_rules(ingress: &Ingress) -> Ingress {
    Ingress {
        name: ingress.name.clone(),
        annotations: ingress.annotations.clone(),
        class_settings: ingress.class_settings.clone(),
        class: ingress.class.clone(),
        default_backend: ingress.default_backend.clone(),
        tls: ingress.tls.clone(),
        rules: Vec::new(),
        load_balancer: ingress.load_balancer.clone(),
        is_pending: ingress.is_pending,
        controller: ingress.controller.clone(),
        possible_controllers: ingress.possible_controllers.clone(),
        unserved: ingress.unserved.clone(),
        product: ingress.product.clone(),
        route: ingress.route.clone(),
        unjudged: ingress.unjudged.clone(),
        origin: ingress.origin.clone(),
    }
}
