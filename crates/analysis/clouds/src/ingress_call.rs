//! What a call of an Ingress asks for.

use uturn_model::lb::ListenerProtocol;
use uturn_model::{Port, Text};

/// A call of an Ingress with everything that a caller may leave out.
#[derive(Clone, Debug, PartialEq)]
pub struct IngressCall {
    /// The host; none where the rule that is called is for any.
    pub host: Option<Text>,
    /// The path; none where there is no rule.
    pub path: Option<Text>,
    /// The port of the listener that serves that rule.
    pub port: Port,
    /// What that listener speaks.
    pub protocol: ListenerProtocol,
}
