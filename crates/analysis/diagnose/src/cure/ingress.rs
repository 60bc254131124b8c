//! Cures of an Ingress: its rules and backends.

use uturn_document::edit::{At, Change, Tree};
use uturn_model::ingress::{Backend, BackendPort, Ingress};
use uturn_model::{Mechanism, NamespacedName, ObjectKind, ObjectRef};

use super::{Case, Proposal, way};

pub(super) fn propose(case: &Case<'_>) -> Vec<Proposal> {
    let Some(ingress) = owner(case) else { return Vec::new() };
    let mut all = Vec::new();
    if case.has(Mechanism::NoRuleForPath) {
        all.extend(rule(case, ingress));
    }
    if case.has(Mechanism::NoEndpoint) {
        all.extend(backends(case, ingress));
    }
    all
}

/// Returns the Ingress for which the load balancer was made, or whose rule a controller applied.
fn owner<'c>(case: &Case<'c>) -> Option<&'c Ingress> {
    let is_ingress = |object: &&ObjectRef| object.kind == ObjectKind::Ingress;
    let of_balancer = case.aim.owner.as_ref().filter(is_ingress);
    let owner = of_balancer.or_else(|| case.met.rule_of.as_ref().filter(is_ingress))?;
    case.cluster().ingresses.get(&owner.namespaced_name()?)
}

/// Proposes a rule for the requested host and path, to the only backend that there is.
fn rule(case: &Case<'_>, ingress: &Ingress) -> Option<Proposal> {
    let mut backends: Vec<&Backend> =
        ingress.rules.iter().flat_map(|rule| &rule.paths).map(|path| &path.backend).collect();
    backends.dedup();
    let [backend @ Backend::Service { name, port }] = backends.as_slice() else { return None };
    let number = match port {
        BackendPort::Number(number) => ("number", Tree::number(number.number())),
        BackendPort::Name(name) => ("name", Tree::text(&**name)),
    };
    let service = Tree::map([("name", Tree::text(name.as_str())), ("port", Tree::map([number]))]);
    let asked = case.aim.path.as_deref().unwrap_or("/");
    let asked = asked.split(['?', '#']).next().unwrap_or("/");
    let path = Tree::map([
        ("path", Tree::text(asked)),
        ("pathType", Tree::text("Prefix")),
        ("backend", Tree::map([("service", service)])),
    ]);
    let host = case.aim.host.as_deref();
    let matched = format!("{}{asked}", host.unwrap_or("any host, "));
    let known = ingress.rules.iter().position(|rule| rule.host.as_deref() == host);
    let (way, tree) = match (known, host) {
        (Some(at), _) => (way!["spec", "rules", at, "http", "paths"], path),
        (None, host) => {
            let http = ("http", Tree::map([("paths", Tree::List(vec![path]))]));
            let tree = match host {
                Some(host) => Tree::map([("host", Tree::text(host)), http]),
                None => Tree::map([http]),
            };
            (way!["spec", "rules"], tree)
        }
    };
    let Backend::Service { name, .. } = backend else { return None };
    Some(
        Proposal::new(
            "ingress-rule",
            15,
            format!("a rule for {matched} to {name} in ingress/{}", ingress.name),
        )
        .edit(ingress.object(), way, Change::Append(tree))
        .costs("every client that asks for that now gets this backend: make sure that it is meant for them")
        .trial(),
    )
}

/// Proposes existing Services and ports for backends whose Service or port does not exist.
fn backends(case: &Case<'_>, ingress: &Ingress) -> Vec<Proposal> {
    let cluster = case.cluster();
    let mut all = Vec::new();
    for (rule, paths) in ingress.rules.iter().map(|rule| &rule.paths).enumerate() {
        for (at, path) in paths.iter().enumerate() {
            let Backend::Service { name, port } = &path.backend else { continue };
            let full =
                NamespacedName { namespace: ingress.name.namespace.clone(), name: name.clone() };
            let to = |field: &str| -> Vec<At> {
                way!["spec", "rules", rule, "http", "paths", at, "backend", "service", field]
            };
            let Some(service) = cluster.services.get(&full) else {
                let near = cluster.services.values().filter(|service| {
                    service.name.namespace == full.namespace
                        && is_near(service.name.name.as_str(), name.as_str())
                });
                all.extend(near.map(|service| {
                    Proposal::new(
                        "ingress-backend",
                        12,
                        format!("svc/{} instead of {full}, which does not exist", service.name),
                    )
                    .edit(
                        ingress.object(),
                        to("name"),
                        Change::Set(Tree::text(service.name.name.as_str())),
                    )
                    .trial()
                }));
                continue;
            };
            let has = service.ports.iter().any(|service_port| match port {
                BackendPort::Number(number) => service_port.port == *number,
                BackendPort::Name(name) => service_port.name.as_ref() == Some(name),
            });
            if has {
                continue;
            }
            // The form of `networking.k8s.io/v1beta1` and before.
            let old = way!["spec", "rules", rule, "http", "paths", at, "backend", "servicePort"];
            let is_old = case.manifests.text_at(&ingress.object(), &old).is_some();
            all.extend(service.ports.iter().map(|service_port| {
                let by_name = match port {
                    BackendPort::Name(_) => service_port.name.as_deref(),
                    BackendPort::Number(_) => None,
                };
                let (shown, key, tree) = match by_name {
                    Some(name) => (name.to_owned(), "name", Tree::text(name)),
                    None => {
                        let number = service_port.port;
                        (number.to_string(), "number", Tree::number(number.number()))
                    }
                };
                let title = format!(
                    "port {shown} of svc/{} instead of {port}, which it does not have",
                    service.name
                );
                let made = Proposal::new("ingress-backend", 12, title).trial();
                if is_old {
                    made.edit(ingress.object(), old.clone(), Change::Set(tree))
                } else {
                    let tree = Tree::map([(key, tree)]);
                    made.edit(ingress.object(), to("port"), Change::Set(tree))
                }
            }));
        }
    }
    all
}

/// Returns whether one name is probably a typo of the other: one letter too many, missing or wrong,
/// or two swapped.
pub(super) fn is_near(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let first = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let last =
        a[first..].iter().rev().zip(b[first..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[first..a.len() - last], &b[first..b.len() - last]);
    a.len() + b.len() <= 1
        || a.len() == 1 && b.len() == 1
        || matches!((a, b), ([c, d], [e, f]) if c == f && d == e)
}
