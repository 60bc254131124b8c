//! Which rule of a layer-7 listener serves a request: by host, then by path.
//!
//! An exact host wins over a wildcard, a wildcard over none. Among the rules of the best
//! host, an exact path wins, then the longest prefix.

use std::cmp::Reverse;
use std::collections::HashMap;

use uturn_model::ingress::PathKind;
use uturn_model::lb::Rule;

/// The rule for a request, if there is one. `host` may carry a port.
pub fn find<'a>(rules: &'a [Rule], host: &str, path: &str) -> Option<&'a Rule> {
    position(rules, host, path).map(|i| &rules[i])
}

/// The same, as a place in the list.
pub fn position(rules: &[Rule], host: &str, path: &str) -> Option<usize> {
    let host = without_port(host);
    let path = path.split(['?', '#']).next().unwrap_or(path);
    rules
        .iter()
        .enumerate()
        .filter_map(|(i, rule)| {
            let host_rank = host_rank(rule.host.as_deref(), host)?;
            let path_rank =
                path_rank(rule.path.as_ref().map(|(path, kind)| (&**path, *kind)), path)?;
            // The first of equals wins.
            Some(((host_rank, path_rank, Reverse(i)), i))
        })
        .max()
        .map(|(_, i)| i)
}

/// The rules of a listener, prepared for many requests: finds what [`position`] finds without
/// looking at every rule. A property test holds that.
#[derive(Clone, Debug, Default)]
pub struct Router {
    /// By host, in lower case.
    exact: HashMap<String, Paths>,
    /// By what follows the star and its dot, in lower case.
    wildcard: HashMap<String, Paths>,
    /// For every host.
    any: Paths,
}

/// The rules for a host.
#[derive(Clone, Debug, Default)]
struct Paths {
    exact: HashMap<String, usize>,
    /// The best comes first.
    prefixes: Vec<(Option<(String, PathKind)>, usize)>,
}

impl Router {
    /// Prepares the rules of a listener.
    pub fn new(rules: &[Rule]) -> Self {
        let mut router = Self::default();
        for (i, rule) in rules.iter().enumerate() {
            let host = rule.host.as_deref().unwrap_or_default().to_ascii_lowercase();
            if host.is_empty() {
                router.any.add(rule, i);
                continue;
            }
            if let Some(suffix) = host.strip_prefix("*.") {
                router.wildcard.entry(suffix.to_owned()).or_default().add(rule, i);
            }
            router.exact.entry(host).or_default().add(rule, i);
        }
        let groups = router.exact.values_mut().chain(router.wildcard.values_mut());
        groups.chain([&mut router.any]).for_each(Paths::sort);
        router
    }

    /// The place of the rule for a request. `host` may carry a port, `path` a query.
    pub fn position(&self, host: &str, path: &str) -> Option<usize> {
        let path = path.split(['?', '#']).next().unwrap_or(path);
        let host = without_port(host);
        let lower;
        let host = if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
            lower = host.to_ascii_lowercase();
            &lower
        } else {
            host
        };
        let exact = || self.exact.get(host)?.find(path);
        let wildcard = || {
            let (label, suffix) = host.split_once('.')?;
            self.wildcard.get(suffix).filter(|_| !label.is_empty())?.find(path)
        };
        exact().or_else(wildcard).or_else(|| self.any.find(path))
    }
}

impl Paths {
    fn add(&mut self, rule: &Rule, i: usize) {
        match &rule.path {
            Some((path, PathKind::Exact)) => {
                self.exact.entry(path.to_string()).or_insert(i);
            }
            path => {
                let path = path.as_ref().map(|(path, kind)| (path.to_string(), *kind));
                self.prefixes.push((path, i));
            }
        }
    }

    fn sort(&mut self) {
        let length = |path: &Option<(String, PathKind)>| match path {
            None => 0,
            Some((path, PathKind::Prefix)) => path.trim_end_matches('/').len(),
            Some((path, _)) => path.len(),
        };
        self.prefixes.sort_by_key(|(path, i)| (Reverse(length(path)), *i));
    }

    fn find(&self, path: &str) -> Option<usize> {
        let matches = |wanted: &Option<(String, PathKind)>| {
            path_rank(wanted.as_ref().map(|(path, kind)| (path.as_str(), *kind)), path).is_some()
        };
        let exact = (!self.exact.is_empty()).then(|| self.exact.get(path)).flatten().copied();
        exact.or_else(|| self.prefixes.iter().find(|(wanted, _)| matches(wanted)).map(|(_, i)| *i))
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => {
            if port.bytes().all(|b| b.is_ascii_digit()) { name } else { host }
        }
        _ => host,
    }
}

/// Whether a rule for `wanted`, which may begin with a star, is for this host. A dot at the end
/// makes no difference.
pub fn is_for_host(wanted: &str, host: &str) -> bool {
    let (wanted, host) = (wanted.trim_end_matches('.'), host.trim_end_matches('.'));
    !wanted.is_empty() && host_rank(Some(wanted), host).is_some()
}

/// 2 for the very host, 1 for a wildcard (one label, as Kubernetes means it), 0 for any.
fn host_rank(wanted: Option<&str>, host: &str) -> Option<u8> {
    let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty()) else { return Some(0) };
    if wanted.eq_ignore_ascii_case(host) {
        return Some(2);
    }
    let suffix = wanted.strip_prefix("*.")?;
    let (label, rest) = host.split_once('.')?;
    (!label.is_empty() && rest.eq_ignore_ascii_case(suffix)).then_some(1)
}

/// Exactness, then length.
fn path_rank(wanted: Option<(&str, PathKind)>, path: &str) -> Option<(bool, usize)> {
    let Some((wanted, kind)) = wanted else { return Some((false, 0)) };
    match kind {
        PathKind::Exact => (wanted == path).then_some((true, wanted.len())),
        PathKind::ImplementationSpecific => {
            path.starts_with(wanted).then_some((false, wanted.len()))
        }
        PathKind::Prefix => {
            let elements = wanted.trim_end_matches('/');
            let rest = path.strip_prefix(elements)?;
            (rest.is_empty() || rest.starts_with('/')).then_some((false, elements.len()))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uturn_model::{NamespacedName, ObjectKind, ObjectRef};

    use super::*;

    fn rules(specs: &[(&str, &str, PathKind)]) -> Vec<Rule> {
        let name = NamespacedName::new("shop", "front").unwrap();
        specs
            .iter()
            .map(|(host, path, kind)| Rule {
                host: (!host.is_empty()).then(|| (*host).into()),
                path: (!path.is_empty()).then(|| ((*path).into(), *kind)),
                service: name.clone(),
                owner: ObjectRef::namespaced(ObjectKind::Ingress, &name),
                targets: Vec::new(),
                redirect: None,
            })
            .collect()
    }

    #[test]
    fn the_closest_rule_wins() {
        use PathKind::{Exact, ImplementationSpecific, Prefix};
        let rules = rules(&[
            ("", "", Prefix),
            ("*.example.com", "/", Prefix),
            ("a.example.com", "/", Prefix),
            ("a.example.com", "/api", Prefix),
            ("a.example.com", "/api/v1", Exact),
            ("a.example.com", "/st", ImplementationSpecific),
        ]);
        for (host, path, rule) in [
            ("other.org", "/", 0),
            ("b.example.com", "/x", 1),
            ("x.y.example.com", "/", 0),
            ("A.example.com:8080", "/", 2),
            ("a.example.com", "/apis", 2),
            ("a.example.com", "/api/v2?x=/api/v1", 3),
            ("a.example.com", "/api/v1", 4),
            ("a.example.com", "/static", 5),
            ("[fd00::1]:80", "/", 0),
        ] {
            assert_eq!(position(&rules, host, path), Some(rule), "{host}{path}");
        }
        assert_eq!(position(&rules[2..], "b.example.com", "/"), None);
    }

    fn host() -> impl Strategy<Value = String> {
        prop_oneof![Just(String::new()), r"(\*\.)?([abA]\.){0,2}[abA]",]
    }

    fn path() -> impl Strategy<Value = String> {
        prop_oneof![Just(String::new()), "(/[ab]{0,2}){1,3}"]
    }

    fn kind() -> impl Strategy<Value = PathKind> {
        use PathKind::{Exact, ImplementationSpecific, Prefix};
        prop_oneof![Just(Exact), Just(ImplementationSpecific), Just(Prefix)]
    }

    proptest! {
        #[test]
        fn a_router_finds_what_a_look_at_every_rule_finds(
            specs in prop::collection::vec((host(), path(), kind()), 0..8),
            requests in prop::collection::vec((host(), path()), 1..20),
        ) {
            let specs: Vec<(&str, &str, PathKind)> =
                specs.iter().map(|(host, path, kind)| (&**host, &**path, *kind)).collect();
            let rules = rules(&specs);
            let router = Router::new(&rules);
            for (host, path) in &requests {
                prop_assert_eq!(
                    router.position(host, path),
                    position(&rules, host, path),
                    "{} {}", host, path
                );
            }
        }
    }
}
