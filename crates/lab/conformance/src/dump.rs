//! A dump of a node's kernel state, as text.

use std::fs;
use std::path::Path;

use crate::fault::{During as _, Outcome};
use crate::mode::Mode;
use crate::workspace::Namespace;

/// All state that affects the path of packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dump {
    pub(crate) iptables: String,
    pub(crate) ip6tables: String,
    pub(crate) nft: String,
    pub(crate) nft6: String,
    pub(crate) ipset: String,
    pub(crate) ipvs: String,
    pub(crate) addresses: String,
    pub(crate) routes: String,
    pub(crate) rules: String,
    pub(crate) sysctls: String,
}

impl Dump {
    pub(crate) fn take(namespace: &Namespace, mode: Mode) -> Outcome<Self> {
        let get = |words: &[&str]| namespace.output(words);
        let mut dump = Self {
            addresses: get(&["ip", "addr"])?,
            routes: get(&["ip", "route", "show", "table", "all"])?
                + &get(&["ip", "-6", "route", "show", "table", "all"])?,
            rules: get(&["ip", "rule"])? + &get(&["ip", "-6", "rule"])?,
            sysctls: get(&["sysctl", "-a", "-r", "^net\\.(ipv|netfilter\\.nf_conntrack_tcp_be)"])?,
            ..Self::default()
        };
        mode.take(namespace, &mut dump)?;
        Ok(dump)
    }

    /// Returns commands for `nft` to flush the affinity sets.
    pub(crate) fn forget(&self) -> String {
        let mut commands = String::new();
        for (family, text) in [("ip", &self.nft), ("ip6", &self.nft6)] {
            for line in text.lines() {
                let set = line.trim().strip_prefix("set ").and_then(|rest| rest.strip_suffix(" {"));
                if let Some(name) = set.filter(|name| name.starts_with("affinity-")) {
                    commands += &format!("flush set {family} kube-proxy {name}\n");
                }
            }
        }
        commands
    }

    /// Returns the dump with endpoints at other ports.
    pub(crate) fn with_other_ports(&self) -> Self {
        let spoil = |text: &str| text.replace(":8080", ":8089");
        Self {
            iptables: spoil(&self.iptables),
            ip6tables: spoil(&self.ip6tables),
            nft: spoil(&self.nft),
            nft6: spoil(&self.nft6),
            ipvs: spoil(&self.ipvs),
            ..self.clone()
        }
    }

    /// Writes the dump to a folder with the files of a node's capture.
    pub(crate) fn write(&self, folder: &Path) -> Outcome<()> {
        fs::create_dir_all(folder).during(folder.display())?;
        let files = [
            ("iptables.save", &self.iptables),
            ("ip6tables.save", &self.ip6tables),
            ("nft.txt", &(self.nft.clone() + &self.nft6)),
            ("ipset.save", &self.ipset),
            ("ipvs.save", &self.ipvs),
            ("addr", &self.addresses),
            ("route", &self.routes),
            ("rule", &self.rules),
            ("sysctl", &self.sysctls),
        ];
        for (name, text) in files {
            if !text.is_empty() {
                let path = folder.join(name);
                fs::write(&path, text).during(path.display())?;
            }
        }
        Ok(())
    }
}
