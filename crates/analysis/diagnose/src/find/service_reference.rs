//! Recognises the names of Services, and of pods below headless Services, in hosts that people wrote.

use uturn_model::service::{ServiceKind, ServicePort};
use uturn_model::{Cluster, Name, NamespacedName, Port, Protocol, Service};

/// A host that is the name of a Service, or of a pod below a headless Service.
pub(crate) struct ServiceReference<'c> {
    pub(crate) service: &'c Service,
    /// Whether the name is that of a pod.
    pub(crate) is_of_pod: bool,
    /// Whether the host ends with `svc` or a domain below which Services are.
    pub(crate) is_qualified: bool,
}

/// Returns a host without the end that all names of Services have, and whether it has this end.
/// Returns `None` for a host of the cluster's domain that is no Service's.
pub(super) fn inner<'h>(cluster: &Cluster, host: &'h str) -> Option<(&'h str, bool)> {
    let host = host.trim_end_matches('.');
    if let Some(rest) = host.strip_suffix(cluster.dns.domain()) {
        return Some((rest.strip_suffix(".svc.")?, true));
    }
    Some(match host.strip_suffix(".svc.cluster.local").or(host.strip_suffix(".svc")) {
        Some(rest) => (rest, true),
        None => (host, false),
    })
}

impl<'c> ServiceReference<'c> {
    /// Returns the Service that a host names for clients of a namespace: `name`, `name.namespace`,
    /// `name.namespace.svc`, or this below the cluster's domain; and each of them after the name of
    /// a pod. Services of which something is not known are left out.
    pub(crate) fn of(cluster: &'c Cluster, namespace: &Name, host: &str) -> Option<Self> {
        let (inner, is_qualified) = inner(cluster, host)?;
        let labels: Vec<&str> = inner.split('.').collect();
        let own = namespace.as_str();
        let (name, namespace, pod) = match labels[..] {
            [name] if !is_qualified => (name, own, None),
            [name, namespace] if Self::service(cluster, name, namespace).is_some() => {
                (name, namespace, None)
            }
            [pod, name] if !is_qualified => (name, own, Some(pod)),
            [pod, name, namespace] => (name, namespace, Some(pod)),
            _ => return None,
        };
        let service = Self::service(cluster, name, namespace)?;
        let is_of_pod = pod.is_some();
        (!is_of_pod || service.headless).then_some(Self { service, is_of_pod, is_qualified })
    }

    fn service(cluster: &'c Cluster, name: &str, namespace: &str) -> Option<&'c Service> {
        let service = cluster.services.get(&NamespacedName::new(namespace, name).ok()?)?;
        let is_known = service.unjudged.is_empty();
        let is_alias = matches!(service.kind, ServiceKind::ExternalName(_));
        Some(service).filter(|_| is_known && !is_alias)
    }

    /// Returns the port of the Service that is called. Without a stated one, it is the first.
    pub(crate) fn port(&self, stated: Option<Port>) -> Option<(Port, Protocol)> {
        let of = |port: &ServicePort| (port.port, port.protocol);
        match stated {
            Some(port) => self.service.ports.iter().find(|own| own.port == port).map(of),
            None => self.service.ports.first().map(of),
        }
    }
}
