//! Names of chains and sets. Those of kube-proxy contain hashes of names and addresses: a chain of
//! a Service gets the name that kube-proxy would give it in the redacted cluster.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use uturn_kubeproxy::chain_names::{HASHED, OTHERS, SHARED, endpoint_hash, port_hash};
use uturn_model::Cluster;

use crate::names::Names;
use crate::text::{NAMES, redact};

/// The prefixes of names that programs give, which are followed by hashes and names.
const BEGINNINGS: [&str; 22] = [
    "cali-",
    "cali",
    "felix-",
    "CILIUM_",
    "OLD_CILIUM_",
    "ANTREA-",
    "WEAVE-",
    "KUBE-ROUTER-",
    "KUBE-POD-FW-",
    "KUBE-NWPLCY-",
    "KUBE-SRC-",
    "KUBE-DST-",
    "GALAXY-",
    "AWS-CONNMARK-",
    "AWS-SNAT-",
    "FLANNEL-",
    "DOCKER-",
    "CNI-",
    "IP-MASQ-",
    "LIBVIRT_",
    "ts-",
    "f2b-",
];

/// Full names that programs give, besides those that only kube-proxy gives: names of kubelet, of
/// the kernel, of networks.
const WHOLE: [&str; 36] = [
    "KUBE-MARK-DROP",
    "KUBE-FIREWALL",
    "KUBE-FIRE-WALL",
    "KUBE-PROXY-CANARY",
    "KUBE-KUBELET-CANARY",
    "KUBE-IPTABLES-HINT",
    "KUBE-POD-MASQUERADE",
    "IP-MASQ",
    "IP-MASQ-AGENT",
    "DOCKER",
    "WEAVE",
    "FLANNEL-FWD",
    "FLANNEL-POSTRTG",
    "INPUT",
    "OUTPUT",
    "FORWARD",
    "PREROUTING",
    "POSTROUTING",
    "ACCEPT",
    "DROP",
    "RETURN",
    "REJECT",
    "MASQUERADE",
    "DNAT",
    "SNAT",
    "MARK",
    "CONNMARK",
    "LOG",
    "NFLOG",
    "CT",
    "NOTRACK",
    "TCPMSS",
    "REDIRECT",
    "SET",
    "TPROXY",
    "TRACE",
];

/// The hashes of kube-proxy's chains with their replacements, and the endpoints of chains.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    hashes: HashMap<String, String>,
    endpoints: HashMap<String, SocketAddr>,
}

impl Chains {
    /// Collects the chains of a cluster's Services and endpoints.
    pub(crate) fn of(cluster: &Cluster, names: &mut Names) -> Self {
        let mut chains = Self::default();
        for service in cluster.services.values() {
            for port in &service.ports {
                let old = match port.name.as_deref().filter(|name| !name.is_empty()) {
                    Some(name) => format!("{}:{name}", service.name),
                    None => service.name.to_string(),
                };
                let new = redact(&old, names, NAMES);
                let protocol = port.protocol.to_string().to_lowercase();
                chains.hashes.insert(port_hash(&old, &protocol), port_hash(&new, &protocol));
                let slices = cluster.endpoints.get(&service.name).into_iter().flatten();
                for slice in slices {
                    for own in &slice.ports {
                        for endpoint in &slice.endpoints {
                            let old_end = SocketAddr::new(endpoint.address, own.port.number());
                            let new_end =
                                SocketAddr::new(names.address(endpoint.address), own.port.number());
                            let hash = endpoint_hash(&old, &protocol, old_end);
                            let to = endpoint_hash(&new, &protocol, new_end);
                            chains.endpoints.insert(hash.clone(), old_end);
                            chains.hashes.insert(hash, to);
                        }
                    }
                }
            }
        }
        chains
    }

    /// Returns the original endpoint to which a chain leads.
    pub(crate) fn endpoint(&self, chain: &str) -> Option<SocketAddr> {
        self.endpoints.get(chain.strip_prefix("KUBE-SEP-")?).copied()
    }

    /// Returns the replacement of an iptables chain's name.
    pub(crate) fn chain(&self, chain: &str, names: &mut Names) -> String {
        if [&SHARED[..], &OTHERS, &WHOLE].iter().any(|all| all.contains(&chain)) {
            return chain.to_owned();
        }
        let hashed = HASHED.iter().find_map(|begins| Some((begins, chain.strip_prefix(begins)?)));
        if let Some((begins, hash)) = hashed {
            return match self.hashes.get(hash) {
                Some(new) => format!("{begins}{new}"),
                // The chain belongs to a Service that no longer exists.
                None if names.is_collecting() => chain.to_owned(),
                None => format!("{begins}{}", letters(&names.hash(hash), 16)),
            };
        }
        beginning(chain, names)
    }

    /// Returns the replacement of the name of an nftables chain, map or set.
    pub(crate) fn nft(&self, name: &str, names: &mut Names) -> String {
        self.of_port(name, names).unwrap_or_else(|| beginning(name, names))
    }

    /// Redacts a name such as `service-HASH-namespace/service/protocol/port`, with `__address/port`
    /// for an endpoint. Returns `None` for any other name.
    fn of_port(&self, name: &str, names: &mut Names) -> Option<String> {
        const KINDS: [&str; 6] =
            ["service", "local", "external", "firewall", "endpoint", "affinity"];
        let (kind, rest) = name.split_once('-')?;
        let (hash, path) = rest.split_once('-')?;
        let is_hash = hash.len() == 8
            && hash.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
        if !KINDS.contains(&kind) || !is_hash || !path.contains('/') {
            return None;
        }
        let (path, end) = match path.split_once("__") {
            Some((path, end)) => (path, Some(end)),
            None => (path, None),
        };
        let path = redact(path, names, NAMES);
        let end = end.map(|end| of_endpoint(end, names));
        let end = end.map(|end| format!("__{end}")).unwrap_or_default();
        let hash = uturn_kubeproxy::chain_names::text_hash(&format!("{path}{end}"));
        Some(format!("{kind}-{}-{path}{end}", &hash[..8]))
    }
}

/// Redacts an endpoint such as `10.1.1.10/8080`; in IPv6 addresses dots stand for colons.
fn of_endpoint(end: &str, names: &mut Names) -> String {
    let (address, port) = end.split_once('/').unwrap_or((end, ""));
    let ip = address.parse::<IpAddr>().or_else(|_| address.replace('.', ":").parse());
    match ip {
        Ok(ip) => {
            let new = names.address(ip).to_string();
            let new = if ip.is_ipv6() { new.replace(':', ".") } else { new };
            format!("{new}/{port}")
        }
        Err(_) => redact(end, names, NAMES),
    }
}

/// Redacts a name, but keeps a prefix that a program gives.
fn beginning(name: &str, names: &mut Names) -> String {
    let found = BEGINNINGS.iter().find_map(|begins| Some((begins, name.strip_prefix(begins)?)));
    match found {
        Some((begins, rest)) => format!("{begins}{}", redact(rest, names, NAMES)),
        None => redact(name, names, NAMES),
    }
}

/// Returns the replacement of an ipset's name.
pub(crate) fn set(name: &str, names: &mut Names) -> String {
    let is_known = name.strip_prefix("KUBE-").is_some_and(|rest| {
        const WORDS: [&str; 24] = [
            "6", "CLUSTER", "IP", "EXTERNAL", "LOCAL", "LOAD", "BALANCER", "FW", "SOURCE", "CIDR",
            "LOOP", "BACK", "NODE", "PORT", "TCP", "UDP", "SCTP", "HASH", "HEALTH", "CHECK",
            "IPVS", "IPS", "HAS", "CID",
        ];
        // Names of IPv6 are cut to 31 letters.
        rest.split('-').all(|word| {
            WORDS.contains(&word)
                || (name.len() == 31 && WORDS.iter().any(|known| known.starts_with(word)))
        })
    });
    if is_known { name.to_owned() } else { beginning(name, names) }
}

/// Formats a hash as letters of base 32.
fn letters(hash: &[u8], count: usize) -> String {
    const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    hash.iter().take(count).map(|byte| char::from(ALPHABET[usize::from(byte & 31)])).collect()
}
