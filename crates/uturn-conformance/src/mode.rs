//! The modes of kube-proxy that are tried, and all that is different from mode to mode.

use std::fmt;

use serde_json::{Value, json};
use uturn_kubeproxy::Program;
use uturn_model::{Family, ProxyMode, Version};

use crate::blocks::{self, Blocks};
use crate::dump::Dump;
use crate::fault::Outcome;
use crate::world::Namespace;

/// One of them. IPVS needs a kernel with ip_vs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    Iptables,
    Nftables,
}

impl Mode {
    pub(crate) const ALL: [Self; 2] = [Self::Iptables, Self::Nftables];

    pub(crate) fn proxy(self) -> ProxyMode {
        match self {
            Self::Iptables => ProxyMode::Iptables,
            Self::Nftables => ProxyMode::Nftables,
        }
    }

    /// Why kube-proxy of this version programs nothing in this mode if it is configured so.
    pub(crate) fn refusal(self, version: Version, config: &Value) -> Option<&'static str> {
        let by_prefix = config["detectLocalMode"] == "InterfaceNamePrefix";
        let old = (version.major, version.minor) < (1, 33);
        (self == Self::Nftables && by_prefix && old)
            .then_some("before v1.33 it loads no rules if its local detector is a prefix of names")
    }

    /// What is in kube-proxy's configuration for it to run in this mode.
    pub(crate) fn configure(self, version: Version, config: &mut Value) {
        config["mode"] = json!(self.proxy().as_str());
        // It would else let a second pass before it looks at a change.
        for section in ["iptables", "nftables"] {
            config[section]["minSyncPeriod"] = json!("20ms");
        }
        if self == Self::Nftables && (version.major, version.minor) < (1, 31) {
            config["featureGates"]["NFTablesProxyMode"] = json!(true);
        }
    }

    /// Adds to a dump what a namespace's kernel holds of kube-proxy's in this mode.
    pub(crate) fn take(self, namespace: &Namespace, dump: &mut Dump) -> Outcome<()> {
        match self {
            Self::Iptables => {
                dump.iptables = namespace.output(&["iptables-save"])?;
                dump.ip6tables = namespace.output(&["ip6tables-save"])?;
            }
            Self::Nftables => {
                // Before the first sync there is none.
                let table =
                    |family| namespace.output(&["nft", "list", "table", family, "kube-proxy"]);
                dump.nft = table("ip").unwrap_or_default();
                dump.nft6 = table("ip6").unwrap_or_default();
            }
        }
        Ok(())
    }

    /// The rules of a family.
    pub(crate) fn rules(self, dump: &Dump, family: Family) -> &str {
        match (self, family) {
            (Self::Nftables, Family::V4) => &dump.nft,
            (Self::Nftables, Family::V6) => &dump.nft6,
            (Self::Iptables, Family::V4) => &dump.iptables,
            (Self::Iptables, Family::V6) => &dump.ip6tables,
        }
    }

    /// What uturn writes and what kube-proxy left, in the same words.
    pub(crate) fn blocks(self, ours: &Program, theirs: &str) -> Outcome<(Blocks, Blocks)> {
        Ok(match self {
            Self::Iptables => (blocks::iptables(&ours.iptables), blocks::iptables(theirs)),
            // Loaded and listed again, since nft joins ranges of its own accord.
            Self::Nftables => {
                let ours = blocks::nft(&blocks::loaded(&ours.nft)?);
                let theirs = blocks::nft(&blocks::loaded(theirs)?);
                let theirs = blocks::without_leftovers(theirs, &ours);
                (ours, theirs)
            }
        })
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
    fn an_old_kube_proxy_is_told_that_it_may() {
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
