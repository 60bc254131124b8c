//! A call of an Ingress, completed from the Ingress's rules.

use uturn_model::lb::ListenerProtocol;
use uturn_model::{Port, Text};

/// A call of an Ingress, with every value that the caller may omit filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct IngressCall {
    /// The host; `None` if the called rule is for every host.
    pub host: Option<Text>,
    /// The path; `None` if there is no rule.
    pub path: Option<Text>,
    /// The port of the listener that serves that rule.
    pub port: Port,
    /// The protocol of that listener.
    pub protocol: ListenerProtocol,
}
