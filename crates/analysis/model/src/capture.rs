//! Captures: the state of a node's kernel, as text. `uturn-netfilter` parses it.

use std::collections::BTreeMap;

use crate::{Family, Name, Text};

/// The files captured on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The node.
    pub node: Name,
    /// Each file with its text and the path from which it was read.
    pub files: BTreeMap<CaptureFile, CapturedText>,
}

impl Capture {
    /// Returns whether it contains the rules of a family; otherwise they are compiled.
    pub fn has_rules(&self, family: Family) -> bool {
        let saved = match family {
            Family::V4 => CaptureFile::Iptables,
            Family::V6 => CaptureFile::Ip6tables,
        };
        let both = [CaptureFile::Nft, CaptureFile::NftJson];
        both.iter().chain([&saved]).any(|file| self.files.contains_key(file))
    }

    /// Returns whether it contains the interfaces and routes.
    pub fn has_links(&self) -> bool {
        let both = [CaptureFile::Addresses, CaptureFile::Routes];
        both.iter().all(|file| self.files.contains_key(file))
    }
}

/// A captured file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedText {
    /// The path under which the user finds it.
    pub path: Text,
    /// Its text.
    pub text: Text,
}

/// The content of a captured file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CaptureFile {
    /// `iptables-save`.
    Iptables,
    /// `ip6tables-save`.
    Ip6tables,
    /// `ipset save`.
    Ipset,
    /// `ipvsadm -Sn`.
    Ipvs,
    /// `nft list ruleset`.
    Nft,
    /// `nft -j list ruleset`.
    NftJson,
    /// `ip addr`.
    Addresses,
    /// `ip route show table all`.
    Routes,
    /// `ip rule`.
    Rules,
    /// `sysctl -a`, or the relevant part of it.
    Sysctls,
    /// `iptables-save` of the other back end, if that has rules too.
    OtherIptables,
    /// `ip6tables-save` of the other back end, if that has rules too.
    OtherIp6tables,
    /// The time of the capture, the tools that took it, and what it lacks.
    Manifest,
}

impl CaptureFile {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Iptables,
        Self::Ip6tables,
        Self::Ipset,
        Self::Ipvs,
        Self::Nft,
        Self::NftJson,
        Self::Addresses,
        Self::Routes,
        Self::Rules,
        Self::Sysctls,
        Self::OtherIptables,
        Self::OtherIp6tables,
        Self::Manifest,
    ];

    /// Returns its name in the folder of a capture.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Iptables => "iptables.save",
            Self::Ip6tables => "ip6tables.save",
            Self::Ipset => "ipset.save",
            Self::Ipvs => "ipvs.save",
            Self::Nft => "nft.txt",
            Self::NftJson => "nft.json",
            Self::Addresses => "addr",
            Self::Routes => "route",
            Self::Rules => "rule",
            Self::Sysctls => "sysctl",
            Self::OtherIptables => "iptables-other.save",
            Self::OtherIp6tables => "ip6tables-other.save",
            Self::Manifest => "capture.json",
        }
    }
}
