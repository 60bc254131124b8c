//! Custom configurations: settings of layer 7 that load balancers share.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A custom configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomConfig {
    /// The id, `pz-` and eight letters and digits.
    pub id: String,
    /// The name.
    pub name: String,
    /// The directives, such as `proxy_connect_timeout 10s;`.
    pub content: String,
    /// The time of its creation.
    pub created: Timestamp,
    /// The time of its last change.
    pub updated: Timestamp,
}
