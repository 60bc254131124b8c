//! Gateways of a service mesh.

use crate::pod::PodSpec;
use crate::{Labels, NamespacedName, ObjectKind, ObjectRef, Origin, Port, Text};

/// A Gateway of a service mesh: the proxies that it selects open its ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeshGateway {
    /// Its name.
    pub name: NamespacedName,
    /// The labels of the pods that it configures.
    pub selector: Labels,
    /// The numbers of its servers: ports of a Service of the pods, or of the pods themselves.
    pub ports: Vec<Port>,
    /// Where it was written.
    pub origin: Origin,
}

impl MeshGateway {
    /// Returns a reference to the Gateway.
    pub fn object(&self) -> ObjectRef {
        ObjectRef::namespaced(ObjectKind::Gateway, &self.name)
    }

    /// Returns whether the Gateway configures pods with this spec.
    pub fn selects(&self, spec: &PodSpec) -> bool {
        self.selector.iter().all(|(key, value)| spec.labels.is(key, value))
    }
}

/// The name of the container that runs a proxy.
const PROXY: &str = "istio-proxy";

/// Routes of a service mesh that its gateways read, by host: a VirtualService.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeshRoute {
    /// Its name.
    pub name: NamespacedName,
    /// Its hosts: names, or `*` with or without an end.
    pub hosts: Vec<Text>,
    /// The Gateways that read it. A name without a namespace is one of its own namespace.
    pub gateways: Vec<NamespacedName>,
    /// Whether proxies beside the programs of pods read it, too.
    pub is_for_mesh: bool,
    /// Where it was written.
    pub origin: Origin,
}

impl MeshRoute {
    /// Returns whether it may be for requests with this host.
    pub fn may_be_for(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        self.hosts.iter().any(|own| match own.strip_prefix('*') {
            Some(end) => host.ends_with(&end.to_ascii_lowercase()),
            // A short name is completed by its namespace and the cluster's domain.
            None => !own.contains('.') || host == own.to_ascii_lowercase(),
        })
    }
}

/// The labels of gateways that the mesh itself makes for Gateways of the Gateway API.
const MADE: [&str; 2] = ["gateway.networking.k8s.io/gateway-name", "istio.io/gateway-name"];

/// Returns whether pods with this spec have a proxy of a mesh: a gateway's, or one beside their own
/// containers.
pub fn has_proxy(spec: &PodSpec) -> bool {
    let is_made = MADE.iter().any(|label| spec.labels.get(label).is_some());
    let has_container = || spec.containers.iter().any(|own| &*own.name == PROXY);
    is_made || is_gateway(spec) || has_container()
}

/// Returns whether pods with this spec are gateways of a mesh that users make.
pub fn is_gateway(spec: &PodSpec) -> bool {
    if MADE.iter().any(|label| spec.labels.get(label).is_some()) {
        return false;
    }
    let is_injected = |templates: &str| templates.split(',').any(|one| one.trim() == "gateway");
    spec.annotations.get("inject.istio.io/templates").is_some_and(is_injected)
        || spec.containers.iter().any(|container| {
            let is_proxy = &*container.name == PROXY || container.image.contains("/proxyv2");
            is_proxy && container.arguments.iter().any(|argument| &**argument == "router")
        })
}
