//! The DNS configuration of a cluster.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::lb::NamedAddress;
use crate::{Assumption, NamespacedName, Origin, Text, Version};

/// The folder in which CoreDNS finds its Corefile and the other files of the same ConfigMap.
pub const COREFILE_FOLDER: &str = "/etc/coredns";

/// The cluster's DNS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dns {
    /// The Service of the cluster's DNS, if found.
    pub service: Option<NamespacedName>,
    /// The cluster's domain; `cluster.local` by default.
    pub domain: Option<Text>,
    /// The configuration of CoreDNS, if found.
    pub corefile: Option<Corefile>,
    /// The ConfigMap that the cluster's name servers mount as their configuration, and its key.
    /// `None` if their pods do not tell: then the customary one is taken.
    pub mounted: Option<(NamespacedName, Text)>,
    /// The configuration of node-local-dns, if it is deployed.
    pub node_local: Option<Corefile>,
    /// The name servers that the kubelets' configuration gives to pods, if it is found.
    pub of_pods: Vec<IpAddr>,
    /// Names outside the cluster with the addresses that Facts state. One that begins with `*.`
    /// applies to every name below it that has no address of its own.
    pub outside: Vec<(Text, IpAddr)>,
    /// The search domains of nodes, which pods have after the cluster's, if stated in Facts.
    pub node_searches: Vec<Text>,
    /// The names of load balancers whose status has no address, in lower case, each with its
    /// addresses.
    pub balancers: BTreeMap<Text, Vec<NamedAddress>>,
}

impl Dns {
    /// Returns the addresses that Facts state for a name outside the cluster, with the entry that
    /// applies: the name itself, else the longest wildcard above it.
    pub fn stated_outside<'s>(&'s self, name: &'s str) -> Option<(&'s str, Vec<IpAddr>)> {
        let name = name.trim_end_matches('.');
        let of = |wanted: &str| -> Vec<IpAddr> {
            let is_it = |known: &str| known.trim_end_matches('.').eq_ignore_ascii_case(wanted);
            let all = self.outside.iter().filter(|(known, _)| is_it(known));
            all.map(|(_, ip)| *ip).collect()
        };
        let own = of(name);
        if !own.is_empty() {
            return Some((name, own));
        }
        let mut above = name.match_indices('.').map(|(at, _)| &name[at + 1..]);
        above.find_map(|domain| {
            let ips = of(&format!("*.{domain}"));
            (!ips.is_empty()).then_some((domain, ips))
        })
    }

    /// Returns the addresses of the load balancer with this name.
    pub fn of_balancer(&self, host: &str) -> &[NamedAddress] {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        self.balancers.get(host.as_str()).map_or(&[], Vec::as_slice)
    }

    /// Returns the load balancer's name that resolves to an address, with the zone of the address.
    pub fn balancer_at(&self, address: IpAddr) -> Option<(&Text, &NamedAddress)> {
        self.balancers.iter().find_map(|(host, addresses)| {
            let own = addresses.iter().find(|named| named.address == address)?;
            Some((host, own))
        })
    }

    /// Returns the ConfigMap in which CoreDNS is configured: the one that its pods mount, else the
    /// customary one.
    pub fn config_map(&self) -> NamespacedName {
        let customary = || NamespacedName::new("kube-system", "coredns").expect("a constant name");
        self.mounted.as_ref().map_or_else(customary, |(name, _)| name.clone())
    }

    /// Returns the key of [`Self::config_map`] that has the Corefile.
    pub fn config_key(&self) -> &str {
        self.mounted.as_ref().map_or("Corefile", |(_, key)| key)
    }

    /// Returns the assumption that CoreDNS is configured as usual, which holds while its Corefile is
    /// not given.
    pub fn supposed_corefile(&self) -> Assumption {
        Assumption {
            subject: "the configuration of CoreDNS".into(),
            assumed: "the usual one: kubernetes, then forward".into(),
            because: format!("there is no ConfigMap {}", self.config_map()).into(),
            settle: "give that ConfigMap".into(),
        }
    }

    /// Returns the cluster's domain, without a trailing dot.
    pub fn domain(&self) -> &str {
        self.domain.as_deref().unwrap_or("cluster.local").trim_end_matches('.')
    }

    /// Returns the full name of a Service, without a trailing dot.
    pub fn name_of(&self, service: &NamespacedName) -> String {
        format!("{}.{}.svc.{}", service.name, service.namespace, self.domain())
    }
}

/// A Corefile in its ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corefile {
    /// Its text.
    pub text: Text,
    /// Where its first line was written.
    pub origin: Origin,
    /// Other files that it may import: the other keys of its ConfigMap, and those of
    /// `coredns-custom`.
    pub beside: Vec<CorefileFile>,
    /// The release of CoreDNS that reads it, if its image says so.
    pub release: Option<Version>,
}

/// A file that a Corefile may import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorefileFile {
    /// Its path in CoreDNS's container: `/etc/coredns/NodeHosts`.
    pub path: Text,
    /// Its text.
    pub text: Text,
    /// Where its first line was written.
    pub origin: Origin,
}
