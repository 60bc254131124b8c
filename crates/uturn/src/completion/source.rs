//! Sources of names: the inputs of `-f` and `--bundle`, or the API server.

use uturn_cli::completion::Line;
use uturn_model::{Cluster, NamespacedName, ObjectKind, WorkloadKind};
use uturn_snapshot::Manifests;

/// A namespace, if the kind has any, and a name.
pub(super) type ObjectName = (Option<String>, String);

/// A source of names.
pub(super) enum Source {
    Cluster(Box<Cluster>),
    #[cfg(feature = "live")]
    Api(uturn_live::Access),
}

impl Source {
    /// Opens the source that the line names. Returns `None` if it cannot be read.
    pub(super) fn of(line: &Line) -> Option<Self> {
        let is_api = line.is_live || line.kubeconfig.is_some() || line.context.is_some();
        if is_api || line.files.is_empty() && line.bundles.is_empty() {
            return Self::api(line);
        }
        // Standard input is the terminal.
        if line.files.iter().any(|path| path.as_os_str() == "-") {
            return None;
        }
        let (manifests, _) = Manifests::gather(&line.files, &line.bundles);
        manifests.into_loaded().ok().map(|loaded| Self::Cluster(Box::new(loaded.cluster)))
    }

    #[cfg(feature = "live")]
    fn api(line: &Line) -> Option<Self> {
        Some(Self::Api(uturn_live::Access {
            kubeconfig: line.kubeconfig.clone(),
            context: line.context.clone(),
            ..uturn_live::Access::default()
        }))
    }

    #[cfg(not(feature = "live"))]
    fn api(_: &Line) -> Option<Self> {
        None
    }

    pub(super) fn namespaces(&self) -> Vec<String> {
        match self {
            Self::Cluster(cluster) => {
                let services = cluster.services.keys().chain(cluster.ingresses.keys());
                let all = services.chain(cluster.pods.keys());
                let mut all: Vec<String> = all.map(|name| name.namespace.to_string()).collect();
                all.sort_unstable();
                all.dedup();
                all
            }
            #[cfg(feature = "live")]
            Self::Api(access) => {
                let found = uturn_live::names(access, uturn_live::Named::Namespaces);
                found.names.into_iter().map(|(_, name)| name).collect()
            }
        }
    }

    /// Returns the objects of a kind, in a namespace or in all of them, and whether there are more.
    pub(super) fn names(
        &self,
        kind: ObjectKind,
        namespace: Option<&str>,
    ) -> (Vec<ObjectName>, bool) {
        match self {
            Self::Cluster(cluster) => {
                let is_wanted = |name: &ObjectName| {
                    namespace.is_none_or(|namespace| name.0.as_deref() == Some(namespace))
                };
                (names_in(cluster, kind).into_iter().filter(is_wanted).collect(), false)
            }
            #[cfg(feature = "live")]
            Self::Api(access) => {
                let namespace = namespace.map(str::to_owned);
                let named = uturn_live::Named::Objects(kind.as_str(), namespace);
                let found = uturn_live::names(access, named);
                (found.names, found.has_more)
            }
        }
    }

    /// Returns the texts that may follow the name of a target: ports of a Service or a pod, hosts
    /// and paths of an Ingress.
    pub(super) fn parts(&self, kind: ObjectKind, name: &NamespacedName) -> Vec<String> {
        match self {
            Self::Cluster(cluster) => parts_in(cluster, kind, name),
            #[cfg(feature = "live")]
            Self::Api(access) => {
                let (namespace, name) = (name.namespace.as_str(), name.name.as_str());
                let object = uturn_live::object(access, kind.as_str(), namespace, name);
                object.map(|object| parts_of(kind, &object)).unwrap_or_default()
            }
        }
    }
}

fn names_in(cluster: &Cluster, kind: ObjectKind) -> Vec<ObjectName> {
    let split = |name: &NamespacedName| (Some(name.namespace.to_string()), name.name.to_string());
    match kind {
        ObjectKind::Pod => cluster.pods.keys().map(split).collect(),
        ObjectKind::Service => cluster.services.keys().map(split).collect(),
        ObjectKind::Ingress => cluster.ingresses.keys().map(split).collect(),
        ObjectKind::Node => cluster.nodes.keys().map(|name| (None, name.to_string())).collect(),
        _ => {
            let is_it = |known: &WorkloadKind| ObjectKind::from(*known) == kind;
            let own = cluster.workloads.keys().filter(|(known, _)| is_it(known));
            own.map(|(_, name)| split(name)).collect()
        }
    }
}

fn parts_in(cluster: &Cluster, kind: ObjectKind, name: &NamespacedName) -> Vec<String> {
    match kind {
        ObjectKind::Service => {
            let ports = cluster.services.get(name).map(|service| &service.ports);
            ports.into_iter().flatten().map(|port| port.port.to_string()).collect()
        }
        ObjectKind::Ingress => {
            let rules = cluster.ingresses.get(name).map(|ingress| &ingress.rules);
            let paths = rules.into_iter().flatten().flat_map(|rule| {
                let host = rule.host.as_deref().unwrap_or_default();
                rule.paths.iter().map(move |path| format!("{host}{}", path.path))
            });
            paths.collect()
        }
        _ => {
            let containers = cluster.pods.get(name).map(|pod| &pod.spec.containers);
            let ports = containers.into_iter().flatten().flat_map(|container| &container.ports);
            ports.map(|port| port.port.to_string()).collect()
        }
    }
}

/// Returns the same as `parts_in`, for an object as the API server writes it.
#[cfg(feature = "live")]
fn parts_of(kind: ObjectKind, object: &serde_json::Value) -> Vec<String> {
    use serde_json::Value;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let spec = &object["spec"];
    match kind {
        ObjectKind::Service => {
            list(&spec["ports"]).iter().map(|port| port["port"].to_string()).collect()
        }
        ObjectKind::Ingress => {
            let of = |rule: &Value| {
                let host = rule["host"].as_str().unwrap_or_default().to_owned();
                let paths = list(&rule["http"]["paths"]);
                let path = |path: &Value| path["path"].as_str().unwrap_or("/").to_owned();
                paths.iter().map(|known| format!("{host}{}", path(known))).collect::<Vec<_>>()
            };
            list(&spec["rules"]).iter().flat_map(of).collect()
        }
        _ => {
            let ports = |container: &Value| list(&container["ports"]);
            let ports = list(&spec["containers"]).iter().flat_map(ports).collect::<Vec<_>>();
            ports.iter().map(|port| port["containerPort"].to_string()).collect()
        }
    }
}
