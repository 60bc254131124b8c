//! How names are resolved, as far as the cluster's configuration says.

use std::net::IpAddr;

use crate::{NamespacedName, Origin, Text};

/// Where CoreDNS finds its Corefile, and the other files of the same ConfigMap.
pub const COREFILE_FOLDER: &str = "/etc/coredns";

/// The cluster's DNS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dns {
    /// The Service that pods ask, where it was found.
    pub service: Option<NamespacedName>,
    /// The cluster's domain; `cluster.local` when nothing says otherwise.
    pub domain: Option<Text>,
    /// CoreDNS's configuration, where it was found.
    pub corefile: Option<Corefile>,
    /// The configuration of the cache that runs on every node, where there is one.
    pub node_local: Option<Corefile>,
    /// Names that Facts state, as the world outside the cluster answers them.
    pub outside: Vec<(Text, IpAddr)>,
}

impl Dns {
    /// The cluster's domain, without a dot at the end.
    pub fn domain(&self) -> &str {
        self.domain.as_deref().unwrap_or("cluster.local").trim_end_matches('.')
    }
}

/// A Corefile, as it stands in its ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corefile {
    /// Its text.
    pub text: Text,
    /// Where its first line was written.
    pub origin: Origin,
    /// Files beside it that it may name: the other keys of its ConfigMap, and those of
    /// `coredns-custom`.
    pub beside: Vec<CorefileFile>,
}

/// A file that a Corefile may name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorefileFile {
    /// Where CoreDNS sees it: `/etc/coredns/NodeHosts`.
    pub path: Text,
    /// Its text.
    pub text: Text,
    /// Where its first line was written.
    pub origin: Origin,
}
