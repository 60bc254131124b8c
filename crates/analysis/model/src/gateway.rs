//! Routes of the Gateway API that are attached to a Gateway. An [`Ingress`](crate::Ingress)
//! represents each of them.

use crate::{NamespacedName, ObjectRef, Port, Text};

/// A route that is attached to a Gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedRoute {
    /// The route.
    pub object: ObjectRef,
    /// The Gateway.
    pub gateway: ObjectRef,
    /// The listeners to which it is attached. Empty if none takes it.
    pub listeners: Vec<RouteListener>,
    /// The reasons why listeners that it asks for do not take it.
    pub refused: Vec<Text>,
    /// The reason why its destination is not known.
    pub doubt: Option<Text>,
}

impl AttachedRoute {
    /// Returns whether it forwards connections of any protocol, and reads no requests.
    pub fn is_of_connections(&self) -> bool {
        self.object.kind.is_route_of_connections()
    }
}

/// A listener of a Gateway, for one route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteListener {
    /// Its port.
    pub port: Port,
    /// Whether it terminates TLS.
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
    /// Its weight among the backends of the rule.
    pub weight: u32,
    /// Whether the route may refer to the Service: one in another namespace needs a ReferenceGrant.
    /// `None` if that is not known.
    pub is_granted: Option<bool>,
}

/// A redirect by a rule of a route. Fields that are `None` keep the value of the request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RouteRedirect {
    /// The status code.
    pub code: u16,
    /// Whether the new URL uses TLS.
    pub tls: Option<bool>,
    /// The host.
    pub host: Option<Text>,
    /// The port. `None` means that of the scheme, or of the listener if there is no scheme.
    pub port: Option<Port>,
}
