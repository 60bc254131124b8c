//! How names are resolved, as far as the cluster's configuration says.

use std::net::IpAddr;

use crate::{NamespacedName, Origin, Text};

/// The cluster's DNS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dns {
    /// The Service that pods ask, where it was found.
    pub service: Option<NamespacedName>,
    /// The cluster's domain; `cluster.local` when nothing says otherwise.
    pub domain: Option<Text>,
    /// CoreDNS's configuration, where it was found.
    pub corefile: Option<Corefile>,
    /// Names that Facts state, as the world outside the cluster answers them.
    pub outside: Vec<(Text, IpAddr)>,
}

/// A Corefile, as it stands in its ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corefile {
    /// Its text.
    pub text: Text,
    /// Where its first line was written.
    pub origin: Origin,
}
