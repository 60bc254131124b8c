//! Rules of Ingresses.

use uturn_model::ingress::{Backend, PathKind};
use uturn_model::{Ingress, IngressController, NamespacedName, Text};

use super::{BackendRef, ControllerRule, RuleBackend, annotations};
use uturn_lb::rules;

/// Returns the rules of an Ingress as a controller reads them.
pub(super) fn rules_of(controller: &IngressController, ingress: &Ingress) -> Vec<ControllerRule> {
    let read = annotations::read(controller, ingress);
    if read.is_canary {
        return Vec::new();
    }
    let has_tls = |host: Option<&Text>| {
        let Some(host) = host else { return false };
        let hosts = || ingress.tls.iter().flat_map(|tls| &tls.hosts);
        let covers = |known: &Text| rules::is_for_host(known, host);
        hosts().any(covers)
    };
    let rule = |host: Option<&Text>, path, place, backend: &Backend| ControllerRule {
        host: host.cloned(),
        path,
        place,
        backends: vec![RuleBackend {
            to: match backend {
                Backend::Service { name, port } => {
                    let namespace = ingress.name.namespace.clone();
                    BackendRef::Service(
                        NamespacedName { namespace, name: name.clone() },
                        port.clone(),
                    )
                }
                Backend::Resource(_) | Backend::Services(_) | Backend::Redirect(_) => {
                    BackendRef::Other
                }
            },
            weight: 1,
        }],
        ports: None,
        entry_points: read.entry_points.clone(),
        asks_for_tls: read.asks_for_tls,
        is_of_connections: false,
        is_plain_only: read.is_plain_only,
        redirect: None,
        tls: has_tls(host) || read.is_tls_only,
        behaviour: read.behaviour.clone(),
        backend_tls: read.backend_tls,
        unknown: read.unknown.clone(),
        owner: ingress.object(),
    };
    let mut all = Vec::new();
    for (at, of_host) in ingress.rules.iter().enumerate() {
        let mut has_root = false;
        for (number, path) in of_host.paths.iter().enumerate() {
            has_root |= &*path.path == "/" && path.kind != PathKind::Exact;
            let conditions = Some((annotations::path(&read, path), path.kind));
            all.push(rule(of_host.host.as_ref(), conditions, Some((at, number)), &path.backend));
        }
        // The default backend of the Ingress serves requests that match no path of the host.
        if let Some(backend) = ingress.default_backend.as_ref().filter(|_| !has_root) {
            all.push(rule(of_host.host.as_ref(), None, None, backend));
        }
    }
    if let Some(backend) = &ingress.default_backend {
        all.push(rule(None, None, None, backend));
    }
    all
}
