//! A kind of layer 7 load balancer that a cloud's controller makes for Ingresses, as data: its
//! listeners, its behaviour and its targets, read from the Ingress and its Services.
//! [`made`](super::made) makes rules and targets from it.

use std::time::Duration;

use uturn_model::ingress::{IngressPath, PathKind};
use uturn_model::lb::{HealthQuestion, Profile};
use uturn_model::{Cluster, Family, Ingress, Service, Text};

use super::product::{Targets, check, passing, replaced};
use super::{ALL, AskedPage, ByDefault, NewObject, NoAddress, OpenEnd, OtherCheck, WantedListener};

/// A kind of layer 7 load balancer that a cloud's controller makes for Ingresses.
pub trait IngressProduct: Sync {
    /// Returns the vendor's name for the load balancer.
    fn name(&self) -> &'static str;

    /// Returns the listeners that an Ingress asks for, HTTP before HTTPS.
    fn wanted<'i>(&self, ingress: &'i Ingress) -> Vec<WantedListener<'i>>;

    /// Returns a path of an Ingress as the controller reads it, which may differ from the
    /// Kubernetes definition of the path's type.
    fn path(&self, path: &IngressPath) -> (Text, PathKind);

    /// Returns the behaviour of a listener of an Ingress, at an address of a family.
    fn profile(&self, ingress: &Ingress, family: Family) -> Profile;

    /// Returns the kind of the targets of an Ingress's rule whose backend is a Service.
    fn targets(&self, cluster: &Cluster, ingress: &Ingress, service: &Service) -> Targets;

    /// Returns why the controller makes no load balancer for an Ingress with this Service behind it,
    /// if objects show it.
    fn refuses(
        &self,
        cluster: &Cluster,
        ingress: &Ingress,
        service: &Service,
    ) -> Option<NoAddress> {
        let _ = (cluster, ingress, service);
        None
    }

    /// Returns the annotation of an Ingress, and its value, with which pods are the targets.
    fn with_pods_as_targets(&self) -> Option<(String, &'static str)> {
        None
    }

    /// Returns whether an Ingress asks for a load balancer that is reachable from the private
    /// network only.
    fn is_private(&self, ingress: &Ingress) -> bool;

    /// Returns the security groups that an Ingress gives its load balancer, by id or by name, as a
    /// list with commas.
    fn security_groups<'i>(&self, ingress: &'i Ingress) -> Option<&'i str> {
        let _ = ingress;
        None
    }

    /// Returns the backends of an Ingress that the controller's own report calls unhealthy, and whether
    /// these are all. Empty if it reports none.
    fn reported_unhealthy(&self, ingress: &Ingress) -> (Vec<String>, bool) {
        let _ = ingress;
        (Vec::new(), false)
    }

    /// Returns what makes health checks of the backends of an Ingress ask for another page.
    fn other_check(&self, ingress: &Ingress, path: &str) -> Option<OtherCheck> {
        let _ = (ingress, path);
        None
    }

    /// Returns the page that health checks of a Service behind an Ingress ask for, whatever the probes of
    /// its pods ask for, if no object that is known says another.
    fn page_asked(
        &self,
        cluster: &Cluster,
        ingress: &Ingress,
        service: &Service,
    ) -> Option<AskedPage> {
        let _ = (cluster, ingress, service);
        None
    }

    /// Returns the object with which health checks of a Service ask for a page.
    fn asks_for(&self, service: &Service, path: &str) -> Option<NewObject> {
        let _ = (service, path);
        None
    }

    /// Returns the end of the way to the targets that the object leaves to others.
    fn open_end(&self, cluster: &Cluster, ingress: &Ingress) -> Option<OpenEnd> {
        let _ = (cluster, ingress);
        None
    }

    /// Returns why a load balancer is reachable from the private network only, if that is so because
    /// nothing asks for the other.
    fn private_by_default(&self, ingress: &Ingress) -> Option<ByDefault> {
        let _ = ingress;
        None
    }

    /// Returns whether a private load balancer sends from the address at which clients call it.
    fn sends_from_its_address(&self) -> bool {
        false
    }

    /// Returns whether an Ingress asks for addresses of both families.
    fn is_dual_stack(&self, ingress: &Ingress) -> bool {
        let _ = ingress;
        false
    }

    /// Returns whether the action of an annotation is known, for paths that name the action as
    /// their backend.
    fn reads_action(&self, ingress: &Ingress, name: &str) -> bool {
        let _ = (ingress, name);
        false
    }

    /// Returns an annotation of the Ingress that affects the outcome of a call and is not modelled.
    fn unread<'i>(&self, ingress: &'i Ingress) -> Option<&'i str> {
        let _ = ingress;
        None
    }
}

/// Returns the product with this name, if it is described.
pub fn ingress_product(name: &str) -> Option<&'static dyn IngressProduct> {
    let mut all = ALL.into_iter().flat_map(|entry| entry.ingress_products);
    all.find(|product| product.name() == name).copied()
}

/// Returns the profile of a load balancer that terminates requests and makes its own to targets,
/// which see its address. `interval` and `timeout` of its health checks are in seconds.
pub(crate) fn asking(name: &str, family: Family, (interval, timeout): (u64, u64)) -> Profile {
    let mut profile = passing(name, replaced(family));
    profile.connect_timeout = Duration::from_secs(10);
    profile.panic_threshold = None;
    profile.health_check = Some(check(HealthQuestion::Target, (interval, timeout)));
    profile
}

/// Returns a path whose type leaves its meaning to the controller: a `*` at its end matches
/// anything, and a path without one is exact. If `is_wild`, a `*` elsewhere and a `?` are wildcards
/// too.
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
