//! The calls that the API server makes, and the objects that ask for them: configurations of
//! admission webhooks, APIServices, and CustomResourceDefinitions with a conversion webhook.

use std::fmt;

use crate::{Name, NamespacedName, ObjectKind, ObjectRef, Origin, Port, Text};

/// An object because of which the API server calls Services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiServerCalls {
    /// Its kind.
    pub kind: ObjectKind,
    /// Its name.
    pub name: Name,
    /// The calls of Services.
    pub calls: Vec<ApiServerCall>,
    /// The calls of URLs.
    pub by_url: Vec<UrlCall>,
    /// Where it was written.
    pub origin: Origin,
}

impl ApiServerCalls {
    /// Returns a reference to the object.
    pub fn object(&self) -> ObjectRef {
        ObjectRef::global(self.kind, self.name.as_str())
    }
}

/// A call of a Service by the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiServerCall {
    /// The name of the webhook, of the API or of the kind of objects.
    pub called: Text,
    /// The reason for the call, which decides what fails without it.
    pub reason: CallReason,
    /// The Service.
    pub service: NamespacedName,
    /// The port of the Service.
    pub port: Port,
}

/// A call of a URL by the API server, which resolves the host as a program of its machine does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlCall {
    /// The name of the webhook or of the kind of objects.
    pub called: Text,
    /// The reason for the call, which decides what fails without it.
    pub reason: CallReason,
    /// The host.
    pub host: Text,
    /// The port.
    pub port: Port,
}

/// The reason for a call of the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallReason {
    /// An object is created, changed or deleted, and a webhook is asked about it.
    Admission {
        /// The effect of a call that fails.
        policy: FailurePolicy,
        /// The resources that its rules match: `ingresses`.
        resources: Vec<Text>,
    },
    /// A client uses an API that is served elsewhere.
    Api,
    /// A client reads objects in another version than the stored one.
    Conversion,
}

/// The effect of a webhook's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    /// The request is refused.
    Fail,
    /// The request goes on.
    Ignore,
}

impl fmt::Display for FailurePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fail => "Fail",
            Self::Ignore => "Ignore",
        })
    }
}
