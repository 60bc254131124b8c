//! The modes of kube-proxy, and the differences between them.

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use serde_json::{Value, json};
use uturn_dice::Dice;
use uturn_kubeproxy::Program;
use uturn_model::{Cluster, Family, ProxyMode, Version};

use crate::blocks::{self, Blocks};
use crate::dump::Dump;
use crate::fault::Outcome;
use crate::ipvs;
use crate::net;
use crate::workspace::Namespace;

/// A mode of kube-proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    Iptables,
    Nftables,
    Ipvs,
}

impl Mode {
    pub(crate) const ALL: [Self; 3] = [Self::Iptables, Self::Nftables, Self::Ipvs];

    /// Returns whether this mode runs in the small machine, whose kernel has ip_vs and no
    /// nf_tables.
    pub(crate) fn in_machine(self) -> bool {
        self == Self::Ipvs
    }

    pub(crate) fn proxy(self) -> ProxyMode {
        match self {
            Self::Iptables => ProxyMode::Iptables,
            Self::Nftables => ProxyMode::Nftables,
            Self::Ipvs => ProxyMode::Ipvs,
        }
    }

    /// Returns why this version of kube-proxy programs nothing in this mode with this
    /// configuration.
    pub(crate) fn refusal(self, version: Version, config: &Value) -> Option<&'static str> {
        let by_prefix = config["detectLocalMode"] == "InterfaceNamePrefix";
        let old = match version.minor {
            33 => version.patch < 6,
            34 => version.patch < 2,
            minor => minor < 33,
        };
        (self == Self::Nftables && by_prefix && old)
            .then_some("before v1.33.6 and v1.34.2 it loads no rules if its local detector is a prefix of names")
    }

    /// Configures kube-proxy for this mode.
    pub(crate) fn configure(self, version: Version, config: &mut Value) {
        config["mode"] = json!(self.proxy().as_str());
        // By default kube-proxy waits a second before it processes a change.
        for section in ["iptables", "nftables", "ipvs"] {
            config[section]["minSyncPeriod"] = json!("20ms");
        }
        if self == Self::Nftables && (version.major, version.minor) < (1, 31) {
            config["featureGates"]["NFTablesProxyMode"] = json!(true);
        }
    }

    /// Adds kube-proxy's state in this mode to a dump.
    pub(crate) fn take(self, namespace: &Namespace, dump: &mut Dump) -> Outcome<()> {
        match self {
            Self::Iptables => {
                dump.iptables = namespace.output(&["iptables-save"])?;
                dump.ip6tables = namespace.output(&["ip6tables-save"])?;
            }
            Self::Nftables => {
                // The table does not exist before the first sync.
                let table =
                    |family| namespace.output(&["nft", "list", "table", family, "kube-proxy"]);
                dump.nft = table("ip").unwrap_or_default();
                dump.nft6 = table("ip6").unwrap_or_default();
            }
            Self::Ipvs => ipvs::take(namespace, dump)?,
        }
        Ok(())
    }

    /// Returns the rules of a family.
    pub(crate) fn rules(self, dump: &Dump, family: Family) -> Cow<'_, str> {
        Cow::Borrowed(match (self, family) {
            (Self::Ipvs, family) => return Cow::Owned(ipvs::rules(dump, family)),
            (Self::Nftables, Family::V4) => &dump.nft,
            (Self::Nftables, Family::V6) => &dump.nft6,
            (Self::Iptables, Family::V4) => &dump.iptables,
            (Self::Iptables, Family::V6) => &dump.ip6tables,
        })
    }

    /// Returns whether the kernel already has both of these addresses of a Service.
    pub(crate) fn shows(self, namespace: &Namespace, addresses: &[String; 2]) -> Outcome<bool> {
        let mut dump = Dump::default();
        match self {
            Self::Iptables | Self::Nftables => self.take(namespace, &mut dump)?,
            Self::Ipvs => return ipvs::shows(namespace, addresses),
        }
        let mut families = Family::BOTH.into_iter().zip(addresses);
        Ok(families.all(|(family, address)| self.rules(&dump, family).contains(address)))
    }

    /// Returns how long to wait before the kernel is dumped again.
    pub(crate) fn pause(self) -> Duration {
        match self {
            Self::Iptables | Self::Nftables => Duration::from_millis(50),
            // Dumping competes with kube-proxy for the machine's only CPU.
            Self::Ipvs => Duration::from_millis(300),
        }
    }

    /// Returns the nodes of a trial with this seed. The machine is too slow for more than one.
    pub(crate) fn nodes(self, seed: u64) -> RangeInclusive<u8> {
        match self {
            Self::Iptables | Self::Nftables => 1..=net::NODES,
            Self::Ipvs => {
                let node = *Dice::new(seed).pick(&[1, 2, 3]);
                node..=node
            }
        }
    }

    /// Adds facts to the cluster that can only be learned from the node.
    pub(crate) fn informed(self, cluster: &Cluster, node: &str, dump: &Dump) -> Outcome<Cluster> {
        match self {
            Self::Iptables | Self::Nftables => Ok(cluster.clone()),
            Self::Ipvs => ipvs::informed(cluster, node, dump),
        }
    }

    /// Returns whether the kernel's session affinity can be cleared.
    pub(crate) fn forgets(self) -> bool {
        self != Self::Ipvs
    }

    /// Returns uturn's rules and those of kube-proxy as comparable blocks.
    pub(crate) fn blocks(self, ours: &Program, theirs: &str) -> Outcome<(Blocks, Blocks)> {
        Ok(match self {
            Self::Iptables => (blocks::iptables(&ours.iptables), blocks::iptables(theirs)),
            // Both are loaded and listed again, since nft merges ranges.
            Self::Nftables => {
                let ours = blocks::nft(&blocks::loaded(&ours.nft)?);
                let theirs = blocks::nft(&blocks::loaded(theirs)?);
                let theirs = blocks::without_leftovers(theirs, &ours);
                (ours, theirs)
            }
            Self::Ipvs => ipvs::blocks(ours, theirs),
        })
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|mode| mode.proxy().as_str() == word);
        named.ok_or_else(|| "expected iptables, nftables or ipvs".to_owned())
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.proxy().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    #[test]
    fn an_old_kube_proxy_needs_its_feature_gate() {
        let gate = |mode: Mode, text| {
            let mut config = json!({"iptables": {}, "nftables": {}});
            mode.configure(version(text), &mut config);
            config["featureGates"]["NFTablesProxyMode"] == true
        };
        assert!(gate(Mode::Nftables, "v1.30.14"));
        assert!(!gate(Mode::Nftables, "v1.34.4"));
        assert!(!gate(Mode::Iptables, "v1.30.14"));
    }

    #[test]
    fn only_what_cannot_run_is_refused() {
        let config = json!({"detectLocalMode": "InterfaceNamePrefix"});
        assert!(Mode::Nftables.refusal(version("v1.30.14"), &config).is_some());
        assert!(Mode::Nftables.refusal(version("v1.34.4"), &config).is_none());
        assert!(Mode::Iptables.refusal(version("v1.30.14"), &config).is_none());
        assert!(Mode::Nftables.refusal(version("v1.30.14"), &json!({})).is_none());
    }
}
