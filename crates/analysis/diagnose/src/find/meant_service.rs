//! Finds the Service that is probably meant by a name that no Service has.

use std::fmt;

use uturn_model::service::ServiceKind;
use uturn_model::{Cluster, NamespacedName, Pod, Port, Protocol, Service};

use super::service_reference::inner;
use crate::typos::{are_names_alike, are_spelt_alike};

/// The only Service with the called port whose name is like the called one.
pub(crate) struct MeantService<'c> {
    pub(crate) service: &'c Service,
    /// The port, which was called.
    pub(crate) port: Port,
    /// Whether the Service has the called name, in another namespace.
    is_elsewhere: bool,
}

impl<'c> MeantService<'c> {
    /// Returns the Service that is meant by a host: one of the namespace that the host means, with a
    /// similar name, or one of another namespace with the same name. Each has the called port, and
    /// there is only one such Service.
    pub(crate) fn of(cluster: &'c Cluster, pod: &Pod, host: &str, port: Port) -> Option<Self> {
        let (inner, is_qualified) = inner(cluster, host)?;
        let own = pod.name.namespace.as_str();
        let (name, namespace) = match inner.split_once('.') {
            None if !is_qualified => (inner, own),
            Some((name, namespace)) if !namespace.contains('.') => (name, namespace),
            _ => return None,
        };
        let called = NamespacedName::new(namespace, name).ok()?;
        if cluster.services.contains_key(&called) || cluster.may_have_service(&called) {
            return None;
        }
        let has_port = |service: &&Service| {
            let mut ports = service.ports.iter();
            let is_alias = matches!(service.kind, ServiceKind::ExternalName(_));
            !is_alias
                && service.unjudged.is_empty()
                && ports.any(|own| own.port == port && own.protocol == Protocol::Tcp)
        };
        // A pod seldom means itself.
        let is_own = |service: &&Service| {
            let selector = service.selector.as_ref();
            service.name.namespace == pod.name.namespace
                && selector.is_some_and(|selector| selector.matches(&pod.spec.labels))
        };
        let is_at_home = |service: &&Service| service.name.namespace == called.namespace;
        let all = || cluster.services.values().filter(has_port);
        let like = all().filter(is_at_home).filter(|service| !is_own(service));
        let like = only(like.filter(|service| are_like(name, service.name.name.as_str())));
        let elsewhere = || only(all().filter(|service| service.name.name == called.name));
        match like {
            Some(service) => Some(Self { service, port, is_elsewhere: false }),
            None => elsewhere().map(|service| Self { service, port, is_elsewhere: true }),
        }
    }

    /// Returns the name with which the Service is called in place of a host.
    pub(crate) fn host(&self, cluster: &Cluster, host: &str) -> Option<String> {
        let (inner, _) = inner(cluster, host)?;
        let end = host.strip_prefix(inner)?;
        let NamespacedName { namespace, name } = &self.service.name;
        Some(match inner.split_once('.') {
            Some(_) => format!("{name}.{namespace}{end}"),
            None if self.is_elsewhere => format!("{name}.{namespace}{end}"),
            None => format!("{name}{end}"),
        })
    }
}

impl fmt::Display for MeantService<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.service.name;
        let object = self.service.object();
        if self.is_elsewhere {
            let (name, namespace) = (&name.name, &name.namespace);
            write!(f, "{object} of another namespace has this port, and is {name}.{namespace} here")
        } else {
            write!(f, "{object} has this port and is probably meant")
        }
    }
}

/// Ends of names that many components have.
const USUAL: [&str; 14] = [
    "api", "app", "backend", "frontend", "headless", "http", "internal", "public", "server",
    "service", "srv", "svc", "web", "worker",
];

/// Returns the only item.
fn only<T>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next()?;
    all.next().is_none().then_some(first)
}

/// Returns whether a name may be written for another one: a slip, or the name that another release
/// of a chart gives the same component.
fn are_like(called: &str, name: &str) -> bool {
    let component = called.rsplit_once('-').map(|(_, own)| own).filter(|own| says_something(own));
    let has_component = |own| name.rsplit_once('-').is_some_and(|(_, other)| own == other);
    let is_end =
        |short: &str, long: &str| long.strip_suffix(short).is_some_and(|rest| rest.ends_with('-'));
    are_spelt_alike(called, name)
        || are_names_alike(called, name)
        || is_end(called, name)
        || is_end(name, called)
        || component.is_some_and(has_component)
}

/// Returns whether the last part of a name tells one component of an application from others.
fn says_something(part: &str) -> bool {
    part.len() > 2 && !part.bytes().all(|byte| byte.is_ascii_digit()) && !USUAL.contains(&part)
}

#[cfg(test)]
mod tests {
    use super::are_like;

    #[test]
    fn names_that_are_written_for_others() {
        for (called, name) in [
            ("shop-dex", "test-dex"),
            ("dex", "test-dex"),
            ("test-dex", "dex"),
            ("redis", "redis-master"),
            ("postgers", "postgres"),
        ] {
            assert!(are_like(called, name), "{called} {name}");
        }
        for (called, name) in [
            ("shop", "cart"),
            ("web-1", "web-2"),
            ("dex", "index"),
            ("cart-service", "pay-service"),
        ] {
            assert!(!are_like(called, name), "{called} {name}");
        }
    }
}
