//! Custom configurations: settings of layer 7 that load balancers share.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A custom configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomConfig {
    /// Its id, `pz-` and eight letters and digits.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its directives, such as `proxy_connect_timeout 10s;`.
    pub content: String,
    /// When it was created.
    pub created: Timestamp,
    /// When it was changed.
    pub updated: Timestamp,
}
