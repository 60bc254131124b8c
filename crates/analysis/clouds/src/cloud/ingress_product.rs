//! A kind of load balancer on layer 7 that a cloud's controller makes for Ingresses, as data: its
//! listeners, how it behaves, and who its targets are, read from the Ingress and the Services behind
//! it. [`made`](super::made) makes rules and targets of it.

use std::time::Duration;

use uturn_model::ingress::{IngressPath, PathKind};
use uturn_model::lb::{HealthQuestion, Profile};
use uturn_model::{Cluster, Family, Ingress, Service, Text};

use super::product::{Targets, check, passing, replaced};
use super::{ALL, WantedListener};

/// A kind of load balancer on layer 7 that a cloud's controller makes for Ingresses.
pub trait IngressProduct: Sync {
    /// What its vendor calls it.
    fn name(&self) -> &'static str;

    /// The listeners that an Ingress asks for, HTTP before HTTPS.
    fn wanted<'i>(&self, ingress: &'i Ingress) -> Vec<WantedListener<'i>>;

    /// A path of an Ingress as its controller reads it, where that differs from what Kubernetes
    /// says of its type.
    fn path(&self, path: &IngressPath) -> (Text, PathKind);

    /// How a listener of an Ingress behaves, at an address of a family.
    fn profile(&self, ingress: &Ingress, family: Family) -> Profile;

    /// Who the targets of a rule of an Ingress are that leads to a Service.
    fn targets(&self, cluster: &Cluster, ingress: &Ingress, service: &Service) -> Targets;

    /// Whether an Ingress asks for one that only the private network reaches.
    fn is_private(&self, ingress: &Ingress) -> bool;

    /// Whether an Ingress asks for addresses of both families.
    fn is_dual_stack(&self, ingress: &Ingress) -> bool {
        let _ = ingress;
        false
    }

    /// Whether it is known what a path leads to whose backend is an action in an annotation.
    fn reads_action(&self, ingress: &Ingress, name: &str) -> bool {
        let _ = (ingress, name);
        false
    }

    /// An annotation of the Ingress that decides what becomes of a call, and that is not modelled.
    fn unread<'i>(&self, ingress: &'i Ingress) -> Option<&'i str> {
        let _ = ingress;
        None
    }
}

/// The product with this name, if it is described.
pub fn ingress_product(name: &str) -> Option<&'static dyn IngressProduct> {
    let mut all = ALL.into_iter().flat_map(|entry| entry.ingress_products);
    all.find(|product| product.name() == name).copied()
}

/// A load balancer that ends requests and makes its own to targets: they see its address. Its
/// health checks are made as often, in seconds, and wait as long.
pub(crate) fn asking(name: &str, family: Family, (interval, timeout): (u64, u64)) -> Profile {
    let mut profile = passing(name, replaced(family));
    profile.connect_timeout = Duration::from_secs(10);
    profile.panic_threshold = None;
    profile.health_check = Some(check(HealthQuestion::Target, (interval, timeout)));
    profile
}

/// A path whose type leaves it to the controller, where a star at its end stands for anything and
/// without one it is exact. A star elsewhere, and a question mark, are `wild` for some.
pub(crate) fn with_stars(path: &str, is_wild: bool) -> (Text, PathKind) {
    let before = path.strip_suffix('*');
    let rest = before.unwrap_or(path);
    if is_wild && rest.contains(['*', '?']) {
        let escaped = path.chars().map(|c| match c {
            '*' => ".*".to_owned(),
            '?' => ".".to_owned(),
            c if c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-') => c.to_string(),
            c if c.is_ascii() => format!("\\{c}"),
            c => c.to_string(),
        });
        let pattern = format!("~^{}$", escaped.collect::<String>());
        return (pattern.into(), PathKind::ImplementationSpecific);
    }
    match before {
        Some(before) => (before.into(), PathKind::ImplementationSpecific),
        None => (path.into(), PathKind::Exact),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        let read = |path| with_stars(path, true);
        let loose = PathKind::ImplementationSpecific;
        assert_eq!(read("/*"), ("/".into(), loose));
        assert_eq!(read("/shop/*"), ("/shop/".into(), loose));
        assert_eq!(read("/shop"), ("/shop".into(), PathKind::Exact));
        assert_eq!(read("/v?/a.b/*/c"), ("~^/v./a\\.b/.*/c$".into(), loose));
        assert_eq!(with_stars("/a*b", false), ("/a*b".into(), PathKind::Exact));
    }
}
