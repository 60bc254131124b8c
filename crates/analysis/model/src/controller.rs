//! Controllers in the cluster whose pods serve Ingresses: what is known of each, as data.
//!
//! A request to such a controller ends at one of its pods, which makes a connection of its own to
//! an endpoint of the Service behind the rule.

use std::time::Duration;

use crate::gateway::RouteRedirect;
use crate::{IpNet, Name, NamespacedName, ObjectRef, Origin, Pod, Port, Selector, Text};

/// A controller whose pods take requests.
#[derive(Clone, Debug, PartialEq)]
pub struct IngressController {
    /// The product: `ingress-nginx`.
    pub product: Text,
    /// What runs its pods: it identifies the controller.
    pub workload: ObjectRef,
    /// The namespace of its pods.
    pub namespace: Name,
    /// Selects its pods.
    pub pods: Selector,
    /// The ports on which its pods take requests.
    pub listeners: Vec<ControllerListener>,
    /// What it does with a request.
    pub behaviour: ControllerBehaviour,
    /// Objects of its own kinds that are given and not read: they may have rules too.
    pub other_rules: Option<Text>,
    /// Where it was written.
    pub origin: Origin,
}

impl IngressController {
    /// Whether a pod is one of its own.
    pub fn has_pod(&self, pod: &Pod) -> bool {
        pod.name.namespace == self.namespace && self.pods.matches(&pod.spec.labels)
    }

    /// What its pods do on one of their ports.
    pub fn listener(&self, port: u16) -> Option<&ControllerListener> {
        self.listeners.iter().find(|listener| listener.port.number() == port)
    }
}

/// A port of a controller's pods on which they take requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ControllerListener {
    /// The port of the pods.
    pub port: Port,
    /// Whether it expects TLS, and ends it.
    pub tls: bool,
    /// What its rules are for.
    pub takes: Takes,
    /// Whether connections there begin with a PROXY header.
    pub proxy_header: ProxyExpectation,
    /// What the controller calls the port, where it has rules for some of its ports only.
    pub entry_point: Option<EntryPoint>,
    /// The Services that lead there, with their ports.
    pub services: Vec<(NamespacedName, Port)>,
}

/// What a controller's rules are for at one of its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Takes {
    /// Requests of HTTP: by host and path.
    Requests,
    /// Connections, whatever is spoken on them.
    Connections,
    /// Connections that begin with TLS: by the name that the client asks for (SNI).
    NamedConnections,
    /// Connections that begin with TLS, by the name that the client asks for, and requests for the names
    /// that no such rule has.
    NamedConnectionsOrRequests,
    /// Connections, but no rule is known of: whether it takes any is not known.
    Nothing,
}

impl Takes {
    /// Whether rules are for requests.
    pub fn has_requests(self) -> bool {
        matches!(self, Self::Requests | Self::NamedConnectionsOrRequests)
    }

    /// Whether rules are for the name that the client asks for when it begins TLS.
    pub fn has_names(self) -> bool {
        matches!(self, Self::NamedConnections | Self::NamedConnectionsOrRequests)
    }
}

/// A port of a controller that rules may ask for by its name. Whether TLS is spoken there, each
/// connection decides: rules are for one of the two.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EntryPoint {
    /// Its name.
    pub name: Text,
    /// Whether it has the rules that ask for no entry point.
    pub is_default: bool,
    /// Whether its rules are for TLS unless they say otherwise.
    pub tls: bool,
    /// Where it sends all requests of its kind.
    pub redirect: EntryRedirect,
}

/// Where an entry point sends requests, whatever rules there are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum EntryRedirect {
    /// Nowhere.
    None,
    /// To another URL.
    To(RouteRedirect),
    /// It is not known.
    Unknown,
}

/// What a program expects of the first bytes of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ProxyExpectation {
    /// A PROXY header has to be there: the connection is closed if it is not. Only on connections
    /// from these ranges; without any, on all.
    Required(Vec<IpNet>),
    /// A PROXY header may be there, on connections from these ranges; without any, on all.
    Accepted(Vec<IpNet>),
    /// None may be there: the program would reject it as a malformed request.
    NotExpected,
    /// Nothing that is given asks for one. The text names an object that could, and that may exist
    /// elsewhere.
    Unasked(Text),
    /// It is not known. The text says how to find out.
    Unknown(Text),
}

/// What a controller does with a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ControllerBehaviour {
    /// How long its pods wait for a connection to an endpoint. `None` if that is not known.
    pub connect_timeout: Option<Duration>,
    /// How many endpoints they try at most. `None` if that is not known.
    pub tries: Option<u32>,
    /// How many endpoints they try at most for a connection that they pass on as it is. `None` if that
    /// is not known.
    pub connection_tries: Option<u32>,
    /// The status where the last endpoint that was tried refused.
    pub refused: u16,
    /// The status where the last endpoint that was tried did not answer.
    pub timed_out: u16,
    /// The status where a Service has no endpoint.
    pub no_endpoint: u16,
    /// Whether it tries the rules of other hosts if those of the request's host have no matching path.
    pub goes_on_to_other_hosts: bool,
    /// Whether it redirects clients of hosts with TLS from HTTP to HTTPS.
    pub redirects_to_tls: TlsRedirect,
    /// Whether hosts without TLS are served by HTTPS too, with a certificate of the controller's
    /// own.
    pub has_default_certificate: bool,
    /// Whether it connects to the cluster IPs of Services instead of their endpoints.
    pub dials_services: bool,
}

/// Whether a controller redirects clients of hosts with TLS from HTTP to HTTPS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TlsRedirect {
    /// It serves them by HTTP too.
    Never,
    /// With this status.
    With(u16),
    /// It answers this status by HTTP, without another URL.
    Refuses(u16),
    /// It is not known.
    Unknown,
}
