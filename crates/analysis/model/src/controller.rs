//! The known properties of controllers in the cluster whose pods serve Ingresses, as data.
//!
//! A request to such a controller ends at one of its pods, which makes a connection of its own to
//! an endpoint of the Service behind the rule.

use std::time::Duration;

use crate::gateway::RouteRedirect;
use crate::{IpNet, Name, NamespacedName, ObjectRef, Origin, Pod, Port, Selector, Text};

/// A controller whose pods accept requests.
#[derive(Clone, Debug, PartialEq)]
pub struct IngressController {
    /// The product: `ingress-nginx`.
    pub product: Text,
    /// The workload that runs its pods. It identifies the controller.
    pub workload: ObjectRef,
    /// The namespace of its pods.
    pub namespace: Name,
    /// The selector of its pods.
    pub pods: Selector,
    /// The ConfigMap with its settings, if its arguments name one that is given.
    pub settings: Option<NamespacedName>,
    /// The ports on which its pods accept requests.
    pub listeners: Vec<ControllerListener>,
    /// Those of its ports that it does not open: Contour has Envoy listen for TLS only once something
    /// asks for TLS.
    pub shut: Vec<Port>,
    /// Its treatment of requests.
    pub behaviour: ControllerBehaviour,
    /// The kind of objects that may contain rules too: given but not read, or not given.
    pub other_rules: Option<Text>,
    /// Where it was written.
    pub origin: Origin,
}

impl IngressController {
    /// Returns whether a pod belongs to the controller.
    pub fn has_pod(&self, pod: &Pod) -> bool {
        pod.name.namespace == self.namespace && self.pods.matches(&pod.spec.labels)
    }

    /// Returns whether it does not open a port of its pods.
    pub fn is_shut(&self, port: u16) -> bool {
        self.shut.iter().any(|own| own.number() == port)
    }

    /// Returns whether it does not open the port of its pods to which a Service's port leads.
    pub fn is_shut_behind(&self, service: &NamespacedName, port: Port) -> bool {
        let is_it = |listener: &&ControllerListener| {
            listener.services.iter().any(|(name, own)| name == service && *own == port)
        };
        self.listeners.iter().find(is_it).is_some_and(|own| self.is_shut(own.port.number()))
    }

    /// Returns the listener of its pods on a port.
    pub fn listener(&self, port: u16) -> Option<&ControllerListener> {
        self.listeners.iter().find(|listener| listener.port.number() == port)
    }
}

/// A port of a controller's pods on which they accept requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ControllerListener {
    /// The port of the pods.
    pub port: Port,
    /// Whether it expects TLS, and terminates it.
    pub tls: bool,
    /// The traffic that its rules match.
    pub takes: Takes,
    /// Whether connections there begin with a PROXY header.
    pub proxy_header: ProxyExpectation,
    /// The controller's name for the port, if it has rules for only some of its ports.
    pub entry_point: Option<EntryPoint>,
    /// The Services that lead to the port, with their ports.
    pub services: Vec<(NamespacedName, Port)>,
    /// The port at which nodes lead to it: the port itself in the nodes' network, a host port, or the
    /// node port if only one Service has one. `None` if there is none, or several.
    pub at_nodes: Option<Port>,
}

/// The traffic that a controller's rules match on one of its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Takes {
    /// HTTP requests, by host and path.
    Requests,
    /// Connections of any protocol.
    Connections,
    /// Connections that begin with TLS: by the name that the client asks for (SNI).
    NamedConnections,
    /// Connections that begin with TLS, by the name that the client asks for, and requests for the
    /// names without such a rule.
    NamedConnectionsOrRequests,
    /// Connections, but no rule for them is known: whether it accepts any is not known.
    Nothing,
}

impl Takes {
    /// Returns whether rules match requests.
    pub fn has_requests(self) -> bool {
        matches!(self, Self::Requests | Self::NamedConnectionsOrRequests)
    }

    /// Returns whether rules match the name that the client asks for when it begins TLS.
    pub fn has_names(self) -> bool {
        matches!(self, Self::NamedConnections | Self::NamedConnectionsOrRequests)
    }
}

/// A port of a controller that rules may ask for by its name. Each connection may use TLS or not,
/// and each rule is for one of the two.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EntryPoint {
    /// Its name.
    pub name: Text,
    /// Whether it serves the rules that ask for no entry point.
    pub is_default: bool,
    /// Whether its rules are for TLS by default.
    pub tls: bool,
    /// The redirect for all requests of its kind.
    pub redirect: EntryRedirect,
}

/// The redirect of an entry point, whatever rules there are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum EntryRedirect {
    /// There is none.
    None,
    /// A redirect to another URL.
    To(RouteRedirect),
    /// It is not known.
    Unknown,
}

/// A program's expectation of the first bytes of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ProxyExpectation {
    /// A PROXY header is required on connections from these ranges: without one, the connection is
    /// closed. No ranges means on all connections.
    Required(Vec<IpNet>),
    /// A PROXY header is accepted on connections from these ranges. No ranges means on all
    /// connections.
    Accepted(Vec<IpNet>),
    /// A PROXY header is rejected as a malformed request.
    NotExpected,
    /// No given object asks for a header. The text names an object that could, and that may exist
    /// elsewhere.
    Unasked(Text),
    /// It is not known. The text says how to find out.
    Unknown(Text),
}

/// A controller's treatment of requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ControllerBehaviour {
    /// The connect timeout of its pods to an endpoint. `None` if it is not known.
    pub connect_timeout: Option<Duration>,
    /// The largest number of endpoints that they try. `None` if it is not known.
    pub tries: Option<u32>,
    /// The largest number of endpoints that they try for a connection that they forward unread.
    /// `None` if it is not known.
    pub connection_tries: Option<u32>,
    /// The status if the last endpoint that was tried refused.
    pub refused: u16,
    /// The status if the last endpoint that was tried did not answer.
    pub timed_out: u16,
    /// The status if a Service has no endpoint.
    pub no_endpoint: u16,
    /// The status if a Service, or its port, does not exist.
    pub no_service: u16,
    /// Its treatment of Services of type ExternalName.
    pub aliases: Aliases,
    /// Whether it tries the rules of other hosts if those of the request's host have no matching
    /// path.
    pub goes_on_to_other_hosts: bool,
    /// Whether it redirects clients of hosts with TLS from HTTP to HTTPS.
    pub redirects_to_tls: TlsRedirect,
    /// Whether hosts without TLS are served by HTTPS too, with the controller's own certificate.
    pub has_default_certificate: bool,
    /// Whether it connects to the cluster IPs of Services instead of their endpoints.
    pub dials_services: bool,
}

/// A controller's treatment of rules that lead to a Service of type ExternalName.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Aliases {
    /// It connects to the external name, which is not followed.
    Followed,
    /// It drops the rule if the Service has no such port; else it connects to the external name.
    FollowedByPort,
    /// It drops the rule.
    Dropped,
}

/// Whether a controller redirects clients of hosts with TLS from HTTP to HTTPS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TlsRedirect {
    /// It serves them by HTTP too.
    Never,
    /// It redirects with this status.
    With(u16),
    /// It answers this status by HTTP, without another URL.
    Refuses(u16),
    /// It is not known.
    Unknown,
}
