//! Recognises the names of Services, and of pods below headless Services, in hosts that people wrote.

use uturn_model::service::{ServiceKind, ServicePort};
use uturn_model::{Cluster, Name, NamespacedName, Port, Protocol, Service};

/// A host that is the name of a Service, or of a pod below a headless Service.
pub(super) struct ServiceReference<'c> {
    pub(super) service: &'c Service,
    /// Whether the name is that of a pod.
    pub(super) is_of_pod: bool,
}

impl<'c> ServiceReference<'c> {
    /// Returns the Service that a host names for clients of a namespace: `name`, `name.namespace`,
    /// `name.namespace.svc`, or this below the cluster's domain; and each of them after the name of
    /// a pod. Services of which something is not known are left out.
    pub(super) fn of(cluster: &'c Cluster, namespace: &Name, host: &str) -> Option<Self> {
        let host = host.trim_end_matches('.');
        let (inner, is_qualified) = match host.strip_suffix(cluster.dns.domain()) {
            Some(rest) => (rest.strip_suffix(".svc.")?, true),
            None => match host.strip_suffix(".svc.cluster.local").or(host.strip_suffix(".svc")) {
                Some(rest) => (rest, true),
                None => (host, false),
            },
        };
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
        (pod.is_none() || service.headless).then_some(Self { service, is_of_pod: pod.is_some() })
    }

    fn service(cluster: &'c Cluster, name: &str, namespace: &str) -> Option<&'c Service> {
        let service = cluster.services.get(&NamespacedName::new(namespace, name).ok()?)?;
        let is_known = service.unjudged.is_empty();
        let is_alias = matches!(service.kind, ServiceKind::ExternalName(_));
        Some(service).filter(|_| is_known && !is_alias)
    }

    /// Returns the port of the Service that is called. Without a stated one, it is the first.
    pub(super) fn port(&self, stated: Option<Port>) -> Option<(Port, Protocol)> {
        let of = |port: &ServicePort| (port.port, port.protocol);
        match stated {
            Some(port) => self.service.ports.iter().find(|own| own.port == port).map(of),
            None => self.service.ports.first().map(of),
        }
    }
}
