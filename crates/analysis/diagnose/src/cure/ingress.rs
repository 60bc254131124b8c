//! Cures of an Ingress: its rules.

use uturn_document::edit::{Change, Tree};
use uturn_model::ingress::{Backend, BackendPort, Ingress};
use uturn_model::{Mechanism, ObjectKind, ObjectRef};

use super::{Case, Proposal, way};

pub(super) fn propose(case: &Case<'_>) -> Vec<Proposal> {
    if let Some(made) = with_tls(case) {
        return vec![made];
    }
    let Some(ingress) = owner(case) else { return Vec::new() };
    if !case.has(Mechanism::NoRuleForPath) {
        return Vec::new();
    }
    rule(case, ingress).into_iter().collect()
}

/// Proposes TLS for the called host, if its controller listens with TLS only once a host has it.
fn with_tls(case: &Case<'_>) -> Option<Proposal> {
    if !case.has(Mechanism::WrongPort) || !case.is_tls() {
        return None;
    }
    let (cluster, host) = (case.cluster(), case.aim.host.as_deref()?);
    let is_it = |ingress: &&Ingress| {
        let is_shut = cluster.controller_for(ingress).is_some_and(|own| !own.shut.is_empty());
        let mut hosts = ingress.rules.iter().filter_map(|rule| rule.host.as_deref());
        is_shut && ingress.tls.is_empty() && hosts.any(|own| own.eq_ignore_ascii_case(host))
    };
    let ingress = cluster.ingresses.values().find(is_it)?;
    let (object, namespace) = (ingress.object(), &ingress.name.namespace);
    let secret = format!("{}-tls", ingress.name.name);
    let tree = Tree::map([
        ("hosts", Tree::List(vec![Tree::text(host)])),
        ("secretName", Tree::text(&*secret)),
    ]);
    let title = format!("tls for {host} in {}, with Secret {secret}", object.short());
    let get = format!("kubectl -n {namespace} get secret {secret}");
    Some(
        Proposal::new("ingress-tls", 12, title)
            .edit(object, way!["spec", "tls"], Change::Set(Tree::List(vec![tree])))
            .ask(format!("Secret {namespace}/{secret} has a certificate for {host}"), get),
    )
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
