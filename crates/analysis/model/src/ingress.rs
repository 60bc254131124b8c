//! Ingresses.

use crate::gateway::{AttachedRoute, RouteBackend, RouteRedirect};
use crate::service::LbIngress;
use crate::{Labels, Name, NamespacedName, ObjectKind, ObjectRef, Origin, Port, Text, Unknown};

/// An Ingress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ingress {
    /// Its name.
    pub name: NamespacedName,
    /// Its annotations, including the cloud's parameters.
    pub annotations: Labels,
    /// The settings of its class's parameters, by the annotation that each corresponds to. They
    /// take precedence over annotations.
    pub class_settings: Labels,
    /// `spec.ingressClassName`, else the deprecated annotation.
    pub class: Option<Text>,
    /// `spec.defaultBackend`.
    pub default_backend: Option<Backend>,
    /// The hosts with TLS.
    pub tls: Vec<Tls>,
    /// Its rules, in order.
    pub rules: Vec<IngressRule>,
    /// `status.loadBalancer.ingress`.
    pub load_balancer: Vec<LbIngress>,
    /// Whether its status is given and has no address.
    pub is_pending: bool,
    /// The workload of the controller in the cluster whose pods serve it, if it is known.
    pub controller: Option<ObjectRef>,
    /// Workloads of controllers in the cluster whose pods may or may not serve it.
    pub possible_controllers: Vec<ObjectRef>,
    /// The reason why nothing in the cluster serves it. `None` if something does, or if that is not
    /// known.
    pub unserved: Option<Unserved>,
    /// The kind of load balancer that a cloud's controller makes for it, by the name of the
    /// product, if that is described.
    pub product: Option<Text>,
    /// The route of the Gateway API that it represents.
    pub route: Option<AttachedRoute>,
    /// The reasons why its flows cannot be judged.
    pub unjudged: Vec<Unknown>,
    /// Where it was written.
    pub origin: Origin,
}

impl Ingress {
    /// Returns a reference to the Ingress, or to the route that it represents.
    pub fn object(&self) -> ObjectRef {
        match &self.route {
            Some(route) => route.object.clone(),
            None => ObjectRef::namespaced(ObjectKind::Ingress, &self.name),
        }
    }

    /// Returns the rule for a call. Without a host, this is the rule for every host, if it has the
    /// path; else the first rule that has it.
    pub fn rule_for(&self, host: Option<&Text>, path: Option<&Text>) -> Option<&IngressRule> {
        let has_path = |rule: &&IngressRule| {
            path.is_none_or(|path| rule.paths.iter().any(|own| own.path == *path))
        };
        let of = |host: Option<&Text>| {
            let mut rules = self.rules.iter().filter(|rule| rule.host.as_ref() == host);
            rules.find(has_path)
        };
        match host {
            Some(_) => of(host).or(self.rules.iter().find(|rule| rule.host.as_ref() == host)),
            None => of(None).or(self.rules.iter().find(has_path)).or(self.rules.first()),
        }
    }

    /// Returns whether nothing in the cluster serves it, without a condition.
    pub fn is_unserved(&self) -> bool {
        self.unserved.as_ref().is_some_and(|unserved| unserved.condition.is_none())
    }

    /// Returns whether calls through its load balancer are not judged, or its address is not known
    /// to lead to its controller.
    pub fn is_open(&self) -> bool {
        self.unjudged.iter().any(Unknown::is_of_balancer)
    }
}

/// The reason why nothing in the cluster serves an Ingress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unserved {
    /// The reason.
    pub because: Text,
    /// The condition under which it holds. `None` if given objects show all of it.
    pub condition: Option<Text>,
    /// The classes of which controllers in the cluster would serve it.
    pub served: Vec<ServedClass>,
}

/// A class of Ingresses that a controller in the cluster serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedClass {
    /// Its name.
    pub name: Text,
    /// The workload of the controller.
    pub controller: ObjectRef,
}

/// `spec.tls[]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The hosts of the certificate.
    pub hosts: Vec<Text>,
    /// The Secret that contains it, whose content is never read.
    pub secret: Option<Text>,
}

/// `spec.rules[]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressRule {
    /// The host; `None` for all hosts.
    pub host: Option<Text>,
    /// Its paths, in order.
    pub paths: Vec<IngressPath>,
}

/// `spec.rules[].http.paths[]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressPath {
    /// The path.
    pub path: Text,
    /// The way in which the path is matched.
    pub kind: PathKind,
    /// Its backend.
    pub backend: Backend,
}

/// `pathType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathKind {
    /// Matches the whole path.
    Exact,
    /// Matches the first elements of the path.
    Prefix,
    /// Matching depends on the controller.
    ImplementationSpecific,
}

/// The backend of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// A port of a Service in the Ingress's namespace.
    Service {
        /// The Service.
        name: Name,
        /// Its port.
        port: BackendPort,
    },
    /// Another object, which only its controller understands.
    Resource(Text),
    /// Services of any namespace, by their weights.
    Services(Vec<RouteBackend>),
    /// A redirect to another URL.
    Redirect(RouteRedirect),
}

/// The port of the Service behind a rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum BackendPort {
    /// A port number.
    Number(Port),
    /// A port name.
    Name(Text),
}

impl Backend {
    /// Returns whether the backend refers to an action in an annotation rather than to a Service.
    /// The port's name tells this to controllers that support it.
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
    /// Whether it is the default class.
    pub is_default: bool,
    /// `spec.parameters`: the kind and the name of the object with more settings.
    pub parameters: Option<(Text, Name)>,
    /// Where it was written.
    pub origin: Origin,
}
