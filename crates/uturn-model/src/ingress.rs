//! Ingresses.

use crate::service::LbIngress;
use crate::{Kind, Labels, Name, NamespacedName, ObjectRef, Origin, Port, Text, Unknown};

/// An Ingress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ingress {
    /// Its name.
    pub name: NamespacedName,
    /// Its annotations; the cloud's switches stand here.
    pub annotations: Labels,
    /// `spec.ingressClassName`, else the old annotation.
    pub class: Option<Text>,
    /// `spec.defaultBackend`.
    pub default_backend: Option<Backend>,
    /// Hosts that are served with TLS.
    pub tls: Vec<Tls>,
    /// Its rules, in order.
    pub rules: Vec<IngressRule>,
    /// `status.loadBalancer.ingress`.
    pub load_balancer: Vec<LbIngress>,
    /// What its flows depend on and cannot be judged.
    pub unjudged: Vec<Unknown>,
    /// Where it was written.
    pub origin: Origin,
}

impl Ingress {
    /// A reference to it.
    pub fn object(&self) -> ObjectRef {
        ObjectRef::namespaced(Kind::Ingress, &self.name)
    }
}

/// `spec.tls[]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The hosts of the certificate.
    pub hosts: Vec<Text>,
    /// The Secret it is in; its content is never read.
    pub secret: Option<Text>,
}

/// `spec.rules[]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressRule {
    /// The host; none means every host.
    pub host: Option<Text>,
    /// Its paths, in order.
    pub paths: Vec<IngressPath>,
}

/// `spec.rules[].http.paths[]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressPath {
    /// The path.
    pub path: Text,
    /// How it is compared.
    pub kind: PathKind,
    /// Where it leads.
    pub backend: Backend,
}

/// `pathType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathKind {
    /// The whole path.
    Exact,
    /// Its first elements.
    Prefix,
    /// As the controller pleases.
    ImplementationSpecific,
}

/// Where a rule leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// A port of a Service in the Ingress's namespace.
    Service {
        /// The Service.
        name: Name,
        /// Its port.
        port: BackendPort,
    },
    /// Some other object, which only its controller understands.
    Resource(Text),
}

/// Which port of the Service.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum BackendPort {
    /// By number.
    Number(Port),
    /// By name.
    Name(Text),
}

impl Backend {
    /// Whether it names no Service but an action that an annotation describes: the port's name
    /// says so to the controllers that know it.
    pub fn is_action(&self) -> bool {
        let Self::Service { port: BackendPort::Name(port), .. } = self else { return false };
        &**port == "use-annotation"
    }
}

impl std::fmt::Display for BackendPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(port) => port.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// An IngressClass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressClass {
    /// Its name.
    pub name: Name,
    /// `spec.controller`.
    pub controller: Text,
    /// Whether Ingresses that name no class belong to it.
    pub is_default: bool,
    /// Where it was written.
    pub origin: Origin,
}
