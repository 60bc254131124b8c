//! Names of objects.

use std::fmt;
use std::str::FromStr;

use crate::{Text, WorkloadKind};

/// An object's name: one or more DNS labels, at most 253 characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Text);

impl Name {
    /// Checks a name.
    ///
    /// # Errors
    /// Returns an error if the text is not a Kubernetes object name.
    pub fn new(text: impl Into<Text>) -> Result<Self, InvalidName> {
        let text = text.into();
        // Colons occur in names of RBAC objects, which uturn does not read.
        let label = |label: &str| {
            let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
            !label.is_empty()
                && label.bytes().all(inner)
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        if text.len() <= 253 && text.split('.').all(label) {
            Ok(Self(text))
        } else {
            Err(InvalidName)
        }
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl FromStr for Name {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::new(text)
    }
}

impl std::borrow::Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// The error that a text is not a Kubernetes name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidName;

impl fmt::Display for InvalidName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "not a Kubernetes name: expected lower-case letters, digits, '-' and '.', \
             at most 253, each part beginning and ending with a letter or digit",
        )
    }
}

impl std::error::Error for InvalidName {}

/// A name within a namespace, `shop/front`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamespacedName {
    /// The namespace.
    pub namespace: Name,
    /// The name.
    pub name: Name,
}

impl NamespacedName {
    /// Checks both parts.
    ///
    /// # Errors
    /// Returns an error if one of them is not a Kubernetes object name.
    pub fn new(namespace: &str, name: &str) -> Result<Self, InvalidName> {
        Ok(Self { namespace: Name::new(namespace)?, name: Name::new(name)? })
    }
}

impl fmt::Display for NamespacedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl FromStr for NamespacedName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (namespace, name) = text.split_once('/').ok_or(InvalidName)?;
        Self::new(namespace, name)
    }
}

/// The kinds of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the Kubernetes kind of that name")]
pub enum ObjectKind {
    Node,
    Pod,
    /// A kind that creates pods from a template.
    Workload(WorkloadKind),
    Service,
    EndpointSlice,
    Endpoints,
    Ingress,
    IngressClass,
    Gateway,
    HttpRoute,
    GrpcRoute,
    TcpRoute,
    TlsRoute,
    ConfigMap,
    /// An object of a cloud, by the cloud's spelling of its kind.
    CloudObject(&'static str),
    NetworkPolicy,
    ValidatingWebhookConfiguration,
    MutatingWebhookConfiguration,
    ApiService,
    CustomResourceDefinition,
    PersistentVolume,
    Facts,
    LoadBalancer,
    SecurityGroup,
}

impl From<WorkloadKind> for ObjectKind {
    fn from(kind: WorkloadKind) -> Self {
        Self::Workload(kind)
    }
}

impl ObjectKind {
    /// Parses the kind of a client or target as kubectl accepts it: `po`, `pod`, `pods`. Kinds of
    /// workloads: [`WorkloadKind::from_word`].
    pub fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "pod" | "pods" | "po" => Self::Pod,
            "node" | "nodes" | "no" => Self::Node,
            "service" | "services" | "svc" => Self::Service,
            "ingress" | "ingresses" | "ing" => Self::Ingress,
            "httproute" | "httproutes" => Self::HttpRoute,
            "grpcroute" | "grpcroutes" => Self::GrpcRoute,
            "tcproute" | "tcproutes" => Self::TcpRoute,
            "tlsroute" | "tlsroutes" => Self::TlsRoute,
            _ => return None,
        })
    }

    /// Returns whether it is a route of the Gateway API.
    pub fn is_route(self) -> bool {
        matches!(self, Self::HttpRoute | Self::GrpcRoute) || self.is_route_of_connections()
    }

    /// Returns whether it is a route of the Gateway API that forwards connections of any protocol.
    pub fn is_route_of_connections(self) -> bool {
        matches!(self, Self::TcpRoute | Self::TlsRoute)
    }

    /// Returns the value of `kind:`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Node => "Node",
            Self::Pod => "Pod",
            Self::Workload(kind) => kind.as_str(),
            Self::Service => "Service",
            Self::EndpointSlice => "EndpointSlice",
            Self::Endpoints => "Endpoints",
            Self::Ingress => "Ingress",
            Self::IngressClass => "IngressClass",
            Self::Gateway => "Gateway",
            Self::HttpRoute => "HTTPRoute",
            Self::GrpcRoute => "GRPCRoute",
            Self::TcpRoute => "TCPRoute",
            Self::TlsRoute => "TLSRoute",
            Self::ConfigMap => "ConfigMap",
            Self::CloudObject(kind) => kind,
            Self::NetworkPolicy => "NetworkPolicy",
            Self::ValidatingWebhookConfiguration => "ValidatingWebhookConfiguration",
            Self::MutatingWebhookConfiguration => "MutatingWebhookConfiguration",
            Self::ApiService => "APIService",
            Self::PersistentVolume => "PersistentVolume",
            Self::CustomResourceDefinition => "CustomResourceDefinition",
            Self::Facts => "Facts",
            Self::LoadBalancer => "LoadBalancer",
            Self::SecurityGroup => "SecurityGroup",
        }
    }
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A reference to an object by kind and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    /// Its kind.
    pub kind: ObjectKind,
    /// Its namespace, if its kind has one.
    pub namespace: Option<Name>,
    /// Its name.
    pub name: Text,
}

impl ObjectRef {
    /// Makes a reference to a namespaced object.
    pub fn namespaced(kind: ObjectKind, name: &NamespacedName) -> Self {
        Self { kind, namespace: Some(name.namespace.clone()), name: name.name.as_str().into() }
    }

    /// Makes a reference to a cluster-scoped object.
    pub fn global(kind: ObjectKind, name: impl Into<Text>) -> Self {
        Self { kind, namespace: None, name: name.into() }
    }

    /// Returns the namespaced name; `None` for a cluster-scoped object.
    pub fn namespaced_name(&self) -> Option<NamespacedName> {
        let name = Name::new(&*self.name).ok()?;
        Some(NamespacedName { namespace: self.namespace.clone()?, name })
    }

    /// Returns the form used on the command line: `svc/shop/front`.
    pub fn short(&self) -> String {
        let word = match self.kind {
            ObjectKind::Service => "svc",
            ObjectKind::Ingress => "ingress",
            ObjectKind::HttpRoute => "httproute",
            ObjectKind::GrpcRoute => "grpcroute",
            ObjectKind::TcpRoute => "tcproute",
            ObjectKind::TlsRoute => "tlsroute",
            other => other.as_str(),
        };
        match &self.namespace {
            Some(namespace) => format!("{word}/{namespace}/{}", self.name),
            None => format!("{word}/{}", self.name),
        }
    }
}

impl fmt::Display for ObjectRef {
    /// Formats the reference: `Service shop/front`, `Node n1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_dns_labels() {
        for good in ["a", "n1", "front-1", "kube-proxy.v1", "10.0.0.1"] {
            assert!(Name::new(good).is_ok(), "{good}");
        }
        let long = "a".repeat(254);
        for bad in ["", "-a", "a-", "A", "a..b", ".", "a b", "ä", long.as_str()] {
            assert!(Name::new(bad).is_err(), "{bad}");
        }
    }
}
