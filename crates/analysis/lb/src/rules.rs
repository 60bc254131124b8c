//! The choice of the layer 7 listener's rule that serves a request: by host, then by path.
//!
//! An exact host wins over a wildcard, a wildcard over a regular expression, and an expression over
//! a rule for any host. Among regular expressions, that of the first rule wins. Among the rules of
//! the best host, an exact path wins, then the longest prefix after `^~`, then the first regular
//! expression, then the longest prefix. Only paths of the type `ImplementationSpecific` are regular
//! expressions or begin with `^~`.
//!
//! Regular expressions are compiled when a [`Router`] is made, and cost nothing if no rule has one.
//! An invalid one matches nothing.

use std::cmp::Reverse;
use std::collections::HashMap;

use uturn_model::Text;
use uturn_model::ingress::PathKind;
use uturn_model::lb::{Listener, Rule};

use crate::pattern::{Pattern, is_pattern, known};
use crate::request_path::{RefusedPath, Routed, route};

/// Returns the rule of a listener for a request, if there is one and the path is not refused.
/// `host` may contain a port.
pub fn find<'a>(listener: &'a Listener, host: &str, path: &str) -> Option<&'a Rule> {
    routed(listener, host, path).ok()?.rule.map(|i| &listener.rules[i])
}

/// Returns the index of a listener's rule for a request, and the path with which the request is
/// forwarded.
///
/// # Errors
/// Returns an error if the listener refuses the path.
pub fn routed<'p>(
    listener: &Listener,
    host: &str,
    path: &'p str,
) -> Result<Routed<'p>, RefusedPath> {
    let how = listener.profile.path_normalization;
    route(how, path, |path| position(&listener.rules, host, path))
}

/// Does the same as [`routed`] with the prepared rules of the listener.
///
/// # Errors
/// Returns an error if the listener refuses the path.
pub fn routed_by<'p>(
    router: &Router,
    listener: &Listener,
    host: &str,
    path: &'p str,
) -> Result<Routed<'p>, RefusedPath> {
    route(listener.profile.path_normalization, path, |path| router.position(host, path))
}

/// Returns the index of the rule for a request in a list. The path is compared unchanged.
pub fn position<R: Conditions>(rules: &[R], host: &str, path: &str) -> Option<usize> {
    best(rules, host, path).map(|(_, i)| i)
}

/// Does the same as [`position`] with only the rules for the best matching host: if none of them
/// has the path, rules for other hosts do not serve the request.
pub fn position_in_host<R: Conditions>(rules: &[R], host: &str, path: &str) -> Option<usize> {
    let bare = without_port(host);
    let of_host = rules.iter().filter_map(|rule| host_rank(rule.host(), bare)).max()?;
    best(rules, host, path).filter(|(rank, _)| *rank == of_host).map(|(_, i)| i)
}

/// The conditions under which a rule serves a request.
pub trait Conditions {
    /// Returns the host. Returns `None` for all hosts.
    fn host(&self) -> Option<&str>;
    /// Returns the path. Returns `None` for all paths.
    fn path(&self) -> Option<(&str, PathKind)>;
}

impl Conditions for Rule {
    fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    fn path(&self) -> Option<(&str, PathKind)> {
        self.path.as_ref().map(|(path, kind)| (&**path, *kind))
    }
}

impl<R: Conditions> Conditions for &R {
    fn host(&self) -> Option<&str> {
        (*self).host()
    }

    fn path(&self) -> Option<(&str, PathKind)> {
        (*self).path()
    }
}

/// Returns the best matching rule, after the rank of its host.
fn best<R: Conditions>(rules: &[R], host: &str, path: &str) -> Option<(u8, usize)> {
    let host = without_port(host);
    let path = path.split(['?', '#']).next().unwrap_or(path);
    rules
        .iter()
        .enumerate()
        .filter_map(|(i, rule)| {
            let host_rank = host_rank(rule.host(), host)?;
            let path_rank = path_rank(rule.path(), path)?;
            let group = match host_rank {
                PATTERN => rules.iter().position(|other| other.host() == rule.host()),
                _ => None,
            };
            // The first of equals wins.
            Some(((host_rank, Reverse(group), path_rank, Reverse(i)), i))
        })
        .max()
        .map(|((rank, ..), i)| (rank, i))
}

/// The rules of a listener, prepared for many requests: a router finds the same rule as
/// [`position`] without looking at every rule. A property test checks this.
#[derive(Clone, Debug, Default)]
pub struct Router {
    /// Rules by host, in lower case.
    exact: HashMap<String, Paths>,
    /// Rules for wildcards, by the part after `*.`, in lower case.
    wildcard: HashMap<String, Paths>,
    /// Rules by regular expressions, in the order of the rules.
    patterns: Vec<(Pattern, Paths)>,
    /// Rules for every host.
    any: Paths,
}

/// The rules for a host.
#[derive(Clone, Debug, Default)]
struct Paths {
    exact: HashMap<String, usize>,
    /// Rules with a prefix after `^~`; the best comes first.
    first: Vec<(String, usize)>,
    /// Rules with a regular expression, in order, with the texts of the expressions.
    patterns: Vec<(Text, Pattern, usize)>,
    /// Rules with a prefix; the best comes first.
    prefixes: Vec<(Option<(String, PathKind)>, usize)>,
}

impl Router {
    /// Prepares the rules of a listener.
    pub fn new(rules: &[Rule]) -> Self {
        let mut router = Self::default();
        let mut patterns: HashMap<&str, usize> = HashMap::new();
        for (i, rule) in rules.iter().enumerate() {
            let host = rule.host.as_deref().unwrap_or_default().to_ascii_lowercase();
            if host.is_empty() {
                router.any.add(rule, i);
                continue;
            }
            if let Some(suffix) = host.strip_prefix("*.") {
                router.wildcard.entry(suffix.to_owned()).or_default().add(rule, i);
            }
            if let Some(text) = rule.host.as_deref().filter(|host| is_pattern(host))
                && let Ok(pattern) = Pattern::host(text)
            {
                let count = router.patterns.len();
                let place = *patterns.entry(text).or_insert(count);
                if place == count {
                    router.patterns.push((pattern, Paths::default()));
                }
                router.patterns[place].1.add(rule, i);
            }
            router.exact.entry(host).or_default().add(rule, i);
        }
        let groups = router.exact.values_mut().chain(router.wildcard.values_mut());
        let groups = groups.chain(router.patterns.iter_mut().map(|(_, paths)| paths));
        groups.chain([&mut router.any]).for_each(Paths::sort);
        router
    }

    /// Returns the index of the rule for a request. `host` may contain a port, `path` a query.
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
        let pattern = || {
            let mut matching = self.patterns.iter().filter(|(pattern, _)| pattern.matches(host));
            matching.find_map(|(_, paths)| paths.find(path))
        };
        exact().or_else(wildcard).or_else(pattern).or_else(|| self.any.find(path))
    }
}

impl Paths {
    fn add(&mut self, rule: &Rule, i: usize) {
        match &rule.path {
            Some((path, PathKind::Exact)) => {
                self.exact.entry(path.to_string()).or_insert(i);
            }
            Some((path, PathKind::ImplementationSpecific)) if is_pattern(path) => {
                self.patterns.extend(Pattern::path(path).map(|own| (path.clone(), own, i)));
            }
            Some((path, PathKind::ImplementationSpecific)) if first_prefix(path).is_some() => {
                self.first.extend(first_prefix(path).map(|prefix| (prefix.to_owned(), i)));
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
        self.first.sort_by_key(|(prefix, i)| (Reverse(prefix.len()), *i));
        self.prefixes.sort_by_key(|(path, i)| (Reverse(length(path)), *i));
    }

    fn find(&self, path: &str) -> Option<usize> {
        let matches = |wanted: &Option<(String, PathKind)>| {
            path_rank(wanted.as_ref().map(|(path, kind)| (path.as_str(), *kind)), path).is_some()
        };
        let exact = (!self.exact.is_empty()).then(|| self.exact.get(path)).flatten().copied();
        let first = || self.first.iter().find(|(prefix, _)| path.starts_with(prefix.as_str()));
        // A path that equals the text of the expression matches, too.
        let is_its =
            |(text, own, _): &&(Text, Pattern, usize)| **text == *path || own.matches(path);
        let pattern = || self.patterns.iter().find(is_its);
        let exact = exact.or_else(|| first().map(|(_, i)| *i));
        let exact = exact.or_else(|| pattern().map(|(_, _, i)| *i));
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

/// Returns whether a rule for `wanted`, which may begin with a `*`, is for this host. A dot at the
/// end is ignored.
pub fn is_for_host(wanted: &str, host: &str) -> bool {
    let (wanted, host) = (wanted.trim_end_matches('.'), host.trim_end_matches('.'));
    !wanted.is_empty() && host_rank(Some(wanted), host).is_some()
}

/// The rank of hosts by a regular expression.
const PATTERN: u8 = 1;

/// Returns the rank of a matching host: 3 for the same host, 2 for a wildcard (one label, as
/// Kubernetes defines it), 1 for a regular expression, 0 for any host.
fn host_rank(wanted: Option<&str>, host: &str) -> Option<u8> {
    let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty()) else { return Some(0) };
    if wanted.eq_ignore_ascii_case(host) {
        return Some(3);
    }
    if is_pattern(wanted) {
        return known::host_matches(wanted, host).then_some(PATTERN);
    }
    let suffix = wanted.strip_prefix("*.")?;
    let (label, rest) = host.split_once('.')?;
    (!label.is_empty() && rest.eq_ignore_ascii_case(suffix)).then_some(2)
}

/// Returns the prefix after `^~`.
fn first_prefix(wanted: &str) -> Option<&str> {
    wanted.strip_prefix("^~").map(str::trim_start)
}

/// Returns the rank of a matching path: 3 for the same path, 2 for a prefix after `^~`, 1 for a
/// regular expression, 0 for a prefix; then the length.
fn path_rank(wanted: Option<(&str, PathKind)>, path: &str) -> Option<(u8, usize)> {
    let Some((wanted, kind)) = wanted else { return Some((0, 0)) };
    match kind {
        PathKind::Exact => (wanted == path).then_some((3, wanted.len())),
        PathKind::ImplementationSpecific if is_pattern(wanted) => {
            // A path that equals the text of the expression matches, too.
            known::path_matches(wanted, path).then_some((1, 0))
        }
        PathKind::ImplementationSpecific => {
            let first = first_prefix(wanted);
            let prefix = first.unwrap_or(wanted);
            let rank = if first.is_some() { 2 } else { 0 };
            path.starts_with(prefix).then_some((rank, prefix.len()))
        }
        PathKind::Prefix => {
            let elements = wanted.trim_end_matches('/');
            let rest = path.strip_prefix(elements)?;
            (rest.is_empty() || rest.starts_with('/')).then_some((0, elements.len()))
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
        prop_oneof![Just(String::new()), r"(\*\.)?([abA]\.){0,2}[abA]", r"~\^?[abA](\.|\\.)?",]
    }

    fn path() -> impl Strategy<Value = String> {
        prop_oneof![
            Just(String::new()),
            "(/[ab]{0,2}){1,3}",
            r"(~|~\*|\^~) ?/[abA]",
            r"~\* [abA]\$",
        ]
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
