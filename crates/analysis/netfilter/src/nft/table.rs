//! Tables, and what they contain beside chains and sets.

use std::fmt;

use uturn_model::{Origin, Text};

use super::{Chain, Set};

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// The family of packets that it applies to.
    pub family: TableFamily,
    /// The name of the table.
    pub name: Text,
    /// `flags`, such as `dormant`, which disables the table.
    pub flags: Vec<Text>,
    /// The comment of the table.
    pub comment: Option<Text>,
    /// Named counters, quotas, limits and the like.
    pub objects: Vec<Object>,
    /// Sets and maps.
    pub sets: Vec<Set>,
    /// Flowtables.
    pub flowtables: Vec<Flowtable>,
    /// Chains.
    pub chains: Vec<Chain>,
    /// The place where the table was written.
    pub origin: Origin,
}

impl Table {
    /// A chain by its name.
    pub fn chain(&self, name: &str) -> Option<&Chain> {
        self.chains.iter().find(|chain| &*chain.name == name)
    }

    /// A set or map by its name.
    pub fn set(&self, name: &str) -> Option<&Set> {
        self.sets.iter().find(|set| &*set.name == name)
    }

    pub(crate) fn is_dormant(&self) -> bool {
        self.flags.iter().any(|flag| &**flag == "dormant")
    }
}

/// The family of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the family of that name")]
pub enum TableFamily {
    Ip,
    Ip6,
    Inet,
    Arp,
    Bridge,
    Netdev,
}

impl TableFamily {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Ip, Self::Ip6, Self::Inet, Self::Arp, Self::Bridge, Self::Netdev];

    /// The name that nft uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ip => "ip",
            Self::Ip6 => "ip6",
            Self::Inet => "inet",
            Self::Arp => "arp",
            Self::Bridge => "bridge",
            Self::Netdev => "netdev",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.as_str() == word)
    }
}

impl fmt::Display for TableFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A named stateful object; its body is kept as nft prints it.
#[derive(Clone, Debug)]
pub struct Object {
    /// `counter`, `quota`, `limit`, `ct helper`, …
    pub kind: Text,
    /// The name of the object.
    pub name: Text,
    /// The lines of its body.
    pub body: Vec<Text>,
    /// The place where the object was written.
    pub origin: Origin,
}

/// A flowtable: connections that a rule adds to it bypass the other rules.
#[derive(Clone, Debug)]
pub struct Flowtable {
    /// The name of the flowtable.
    pub name: Text,
    /// The priority in the hook `ingress`.
    pub priority: i32,
    /// The devices of the flowtable.
    pub devices: Vec<Text>,
    /// Further lines as written: `flags offload`, `counter`.
    pub lines: Vec<Text>,
    /// The place where the flowtable was written.
    pub origin: Origin,
}
