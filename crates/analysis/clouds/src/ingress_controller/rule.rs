//! Rules of an ingress controller, and their backends.

use uturn_model::controller::{ControllerBehaviour, ControllerListener, EntryPoint};
use uturn_model::gateway::RouteRedirect;
use uturn_model::ingress::{BackendPort, PathKind};
use uturn_model::{NamespacedName, ObjectRef, Port, Text};

use uturn_lb::rules::Conditions;

/// The status of requests whose route has no valid backend, as the Gateway API prescribes it.
const INVALID_BACKEND: u16 = 500;

/// A rule of a controller: one path of an Ingress.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerRule {
    /// The host; `None` for all hosts.
    pub host: Option<Text>,
    /// The path; `None` for all paths.
    pub path: Option<(Text, PathKind)>,
    /// The position of the rule in its Ingress: the index of the Ingress's rule, and of the path in
    /// that rule. `None` for the default backend.
    pub place: Option<(usize, usize)>,
    /// The backends of the rule, with weights.
    pub backends: Vec<RuleBackend>,
    /// The ports of the Gateway's listeners to which the rule belongs; `None` if the rule applies
    /// to all ports.
    pub ports: Option<Vec<Port>>,
    /// The entry points of the rule; `None` for those that accept rules without entry points.
    pub entry_points: Option<Vec<Text>>,
    /// Whether the rule is for requests over TLS, whatever its entry point is set to.
    pub asks_for_tls: bool,
    /// Whether the rule is for requests without TLS only.
    pub is_plain_only: bool,
    /// Whether the rule is for connections of any application protocol, without reading requests.
    pub is_of_connections: bool,
    /// A redirect to send instead of forwarding.
    pub redirect: Option<RouteRedirect>,
    /// Whether the host of the rule has TLS.
    pub tls: bool,
    /// The controller's behaviour for requests that match the rule.
    pub behaviour: ControllerBehaviour,
    /// Whether connections to endpoints use TLS.
    pub backend_tls: bool,
    /// The part of the rule that is not modelled.
    pub unknown: Option<Text>,
    /// The Ingress that contains the rule.
    pub owner: ObjectRef,
}

/// A backend of a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleBackend {
    /// The object to which the backend refers.
    pub to: BackendRef,
    /// The weight of the backend among the backends of the rule.
    pub weight: u32,
}

/// The object to which a backend of a rule refers.
#[derive(Clone, Debug, PartialEq)]
pub enum BackendRef {
    /// A port of a Service.
    Service(NamespacedName, BackendPort),
    /// A Service that the rule may not refer to: no ReferenceGrant allows it.
    NotGranted(NamespacedName),
    /// A Service to which the rule may refer only if there is a ReferenceGrant, which is not known.
    GrantUnknown(NamespacedName),
    /// Another object.
    Other,
}

impl BackendRef {
    /// Returns the Service, if requests are known to be forwarded to it.
    pub fn service(&self) -> Option<&NamespacedName> {
        match self {
            Self::Service(name, _) => Some(name),
            Self::NotGranted(_) | Self::GrantUnknown(_) | Self::Other => None,
        }
    }
}

impl ControllerRule {
    /// Returns the status of requests if the Service or its port does not exist.
    pub fn missing_backend(&self) -> u16 {
        match self.ports {
            Some(_) => INVALID_BACKEND,
            None => self.behaviour.no_service,
        }
    }

    /// Returns whether the rule applies to requests at a port of the controller's pods, with or
    /// without TLS.
    pub(super) fn applies_at(&self, listener: &ControllerListener, tls: bool) -> bool {
        if let Some(entry) = listener.entry_point.as_ref().filter(|_| self.ports.is_none()) {
            let (asked, asks_for_tls) = (self.entry_points.as_deref(), self.asks_for_tls);
            return has_rule(entry, asked) && speaks_tls(entry, asks_for_tls) == tls;
        }
        let Some(ports) = &self.ports else { return !(tls && self.is_plain_only) };
        let mut called = listener.services.iter().map(|(_, port)| port);
        ports.contains(&listener.port) || called.any(|port| ports.contains(port))
    }
}

/// Returns whether an entry point accepts rules that ask for these entry points, or for none.
pub(super) fn has_rule(entry: &EntryPoint, asked: Option<&[Text]>) -> bool {
    match asked {
        Some(names) => names.iter().any(|name| name.eq_ignore_ascii_case(&entry.name)),
        None => entry.is_default,
    }
}

/// Returns whether a rule is for requests over TLS at an entry point.
pub(super) fn speaks_tls(entry: &EntryPoint, asks_for_tls: bool) -> bool {
    entry.tls || asks_for_tls
}

impl Conditions for ControllerRule {
    fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    fn path(&self) -> Option<(&str, PathKind)> {
        self.path.as_ref().map(|(path, kind)| (&**path, *kind))
    }
}
