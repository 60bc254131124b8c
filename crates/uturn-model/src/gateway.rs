//! What of the Gateway API an [`Ingress`](crate::Ingress) may stand for: a route that is attached to
//! a Gateway.

use crate::{NamespacedName, ObjectRef, Port, Text};

/// A route that is attached to a Gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedRoute {
    /// The route.
    pub object: ObjectRef,
    /// The Gateway.
    pub gateway: ObjectRef,
    /// The listeners that it is attached to.
    pub listeners: Vec<RouteListener>,
}

/// A listener of a Gateway, for one route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteListener {
    /// Its port.
    pub port: Port,
    /// Whether TLS ends there.
    pub tls: bool,
    /// The hosts of the route that it serves; `None` is every host.
    pub hosts: Vec<Option<Text>>,
}

/// A Service behind a rule of a route.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RouteBackend {
    /// The Service.
    pub service: NamespacedName,
    /// Its port.
    pub port: Port,
    /// Its part of the requests.
    pub weight: u32,
    /// Whether the route may lead there: a Service of another namespace has to be granted. `None`
    /// if that is not known.
    pub is_granted: Option<bool>,
}

/// A redirect by a rule of a route. What is `None` is that of the request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RouteRedirect {
    /// The status code.
    pub code: u16,
    /// Whether the new URL uses TLS.
    pub tls: Option<bool>,
    /// The host.
    pub host: Option<Text>,
    /// The port: without one, that of the scheme, or of the listener where there is no scheme.
    pub port: Option<Port>,
}
