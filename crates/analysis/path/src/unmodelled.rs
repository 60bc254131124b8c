//! Load balancers that are not modelled: which addresses and names lead to them.

use uturn_lb::rules::is_for_host;
use uturn_model::service::LbIngress;
use uturn_model::{Cluster, Ingress, ObjectRef, Origin, Service, Unknown};

/// An object whose load balancer is not modelled.
pub(crate) struct Unmodelled<'a> {
    pub(crate) object: ObjectRef,
    pub(crate) origin: &'a Origin,
    pub(crate) unknown: &'a Unknown,
    pub(crate) entries: &'a [LbIngress],
    pub(crate) service: Option<&'a Service>,
    ingress: Option<&'a Ingress>,
}

/// The annotation that external-dns reads names from.
pub(crate) const EXTERNAL_DNS: &str = "external-dns.alpha.kubernetes.io/hostname";

impl Unmodelled<'_> {
    /// Returns whether this is a name of the load balancer itself.
    pub(crate) fn is_called(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.');
        let is_it = |name: &str| name.trim_end_matches('.').eq_ignore_ascii_case(host);
        self.entries.iter().any(|entry| entry.hostname.as_deref().is_some_and(is_it))
    }

    /// Returns whether this host leads to the load balancer by name, because no address of it is
    /// known.
    pub(crate) fn serves_by_name(&self, host: &str) -> bool {
        let is_named = |entry: &LbIngress| entry.ip.is_none() && entry.hostname.is_some();
        if self.entries.is_empty() || !self.entries.iter().all(is_named) {
            return false;
        }
        let written = self.service.and_then(|service| service.annotations.get(EXTERNAL_DNS));
        let mut written = written.into_iter().flat_map(|names| names.split(','));
        let mut rules = self.ingress.into_iter().flat_map(|ingress| &ingress.rules);
        written.any(|name| is_for_host(name.trim(), host))
            || rules.any(|rule| rule.host.as_deref().is_some_and(|name| is_for_host(name, host)))
    }
}

/// Returns all objects whose load balancer is not modelled.
pub(crate) fn unmodelled(cluster: &Cluster) -> impl Iterator<Item = Unmodelled<'_>> {
    let services = cluster.services.values().filter_map(|service| {
        let unknown = service.unjudged.iter().find(|unknown| unknown.is_of_balancer())?;
        Some(Unmodelled {
            object: service.object(),
            origin: &service.origin,
            unknown,
            entries: &service.load_balancer,
            service: Some(service),
            ingress: None,
        })
    });
    let ingresses = cluster.ingresses.values().filter_map(|ingress| {
        let unknown = ingress.unjudged.iter().find(|unknown| unknown.is_of_balancer())?;
        Some(Unmodelled {
            object: ingress.object(),
            origin: &ingress.origin,
            unknown,
            entries: &ingress.load_balancer,
            service: None,
            ingress: Some(ingress),
        })
    });
    services.chain(ingresses)
}
