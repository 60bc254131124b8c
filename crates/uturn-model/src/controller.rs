//! Controllers in the cluster whose pods serve Ingresses: what is known of each, as data.
//!
//! A request to such a controller ends at one of its pods, which makes a connection of its own to
//! an endpoint of the Service behind the rule.

use std::time::Duration;

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
    /// Whether it speaks TLS.
    pub tls: bool,
    /// Whether connections there begin with a PROXY header.
    pub proxy_header: ProxyExpectation,
    /// The Services that lead there, with their ports.
    pub services: Vec<(NamespacedName, Port)>,
}

/// What a program expects of the first bytes of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ProxyExpectation {
    /// A PROXY header has to be there: the connection is closed if it is not. Only on connections
    /// from these ranges; without any, on all.
    Required(Vec<IpNet>),
    /// A PROXY header may be there, on connections from these ranges; without any, on all.
    Accepted(Vec<IpNet>),
    /// None may be there: it is taken for a broken request.
    NotExpected,
    /// It is not known. The text says what would tell.
    Unknown(Text),
}

/// What a controller does with a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ControllerBehaviour {
    /// How long its pods wait for a connection to an endpoint. `None` if that is not known.
    pub connect_timeout: Option<Duration>,
    /// How many endpoints they try at most. `None` if that is not known.
    pub tries: Option<u32>,
    /// The status where the last endpoint that was tried refused.
    pub refused: u16,
    /// The status where the last endpoint that was tried did not answer.
    pub timed_out: u16,
    /// The status where a Service has no endpoint.
    pub no_endpoint: u16,
    /// Whether rules for other hosts serve a host whose own rules have no such path.
    pub goes_on_to_other_hosts: bool,
    /// Whether it sends clients of hosts with TLS from HTTP to HTTPS.
    pub redirects_to_tls: TlsRedirect,
    /// Whether hosts without TLS are served by HTTPS too, with a certificate of the controller's
    /// own.
    pub has_default_certificate: bool,
    /// Whether cluster IPs of Services are dialled, and not their endpoints.
    pub dials_services: bool,
}

/// Whether a controller sends clients of hosts with TLS from HTTP to HTTPS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TlsRedirect {
    /// It serves them by HTTP too.
    Never,
    /// With this status.
    With(u16),
    /// It is not known.
    Unknown,
}
