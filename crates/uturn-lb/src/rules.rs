//! Which rule of a layer-7 listener serves a request: by host, then by path.
//!
//! An exact host wins over a wildcard, a wildcard over none. Among the rules of the best
//! host, an exact path wins, then the longest prefix.

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
            Some(((host_rank, path_rank, std::cmp::Reverse(i)), i))
        })
        .max()
        .map(|(_, i)| i)
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
}
