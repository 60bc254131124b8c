//! NetworkPolicies: which connections of pods they allow.
//!
//! [`verdict`] decides, and knows nothing of how packets get there: policies see a connection as it
//! is after kube-proxy's translation.

pub mod verdict;

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;

use crate::{
    Known, Labels, Name, NamespacedName, ObjectKind, ObjectRef, Origin, Pod, Port, Protocol,
    Selector, Text,
};

/// The label that the API server gives to each namespace: its name.
pub const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// The subject of the assumption about [`NetworkPolicies::enforcement`].
pub const ENFORCEMENT: &str = "whether the network enforces NetworkPolicies";

/// The NetworkPolicies of a cluster, and what decides what they do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkPolicies {
    /// The policies by namespace, each list in the order of the names.
    pub by_namespace: BTreeMap<Name, Vec<NetworkPolicy>>,
    /// The labels of the namespaces that are given.
    pub namespaces: BTreeMap<Name, Labels>,
    /// Whether something enforces the policies.
    pub enforcement: Known<Enforcement>,
    /// The nodes that were captured: their rules have those of the network plugin, so policies are
    /// not judged for their pods.
    pub captured: BTreeSet<Name>,
}

impl NetworkPolicies {
    /// Makes a set without policies.
    pub fn none() -> Self {
        Self {
            by_namespace: BTreeMap::new(),
            namespaces: BTreeMap::new(),
            enforcement: Known::supposed(Enforcement::Unknown, "there are none"),
            captured: BTreeSet::new(),
        }
    }

    /// Returns whether there are no policies.
    pub fn is_empty(&self) -> bool {
        self.by_namespace.is_empty()
    }

    /// Iterates over all policies, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &NetworkPolicy> {
        self.by_namespace.values().flatten()
    }

    /// Returns the policy of this name.
    pub fn get(&self, name: &NamespacedName) -> Option<&NetworkPolicy> {
        self.by_namespace.get(&name.namespace)?.iter().find(|policy| policy.name == *name)
    }

    /// Returns whether policies are judged for a pod.
    pub fn are_judged_for(&self, pod: &Pod) -> bool {
        !pod.spec.host_network && pod.node.as_ref().is_none_or(|node| !self.captured.contains(node))
    }

    /// Returns whether packets have to be judged: there are policies, and something enforces them.
    pub fn are_enforced(&self) -> bool {
        !self.is_empty() && self.enforcement.value.stops().is_some()
    }

    /// Returns whether it is not known whether the policies do anything.
    pub fn are_in_doubt(&self) -> bool {
        !self.is_empty() && self.enforcement.value == Enforcement::Unknown
    }
}

/// What the network does with connections that policies do not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Enforcement {
    /// It drops their packets.
    Drops,
    /// It rejects their packets: the caller learns of it at once.
    Rejects,
    /// It does not know of policies.
    Ignores,
    /// Not known.
    Unknown,
}

impl Enforcement {
    /// Returns whether packets are rejected. Returns `None` if they are not known to be stopped.
    pub fn stops(self) -> Option<bool> {
        match self {
            Self::Drops => Some(false),
            Self::Rejects => Some(true),
            Self::Ignores | Self::Unknown => None,
        }
    }
}

/// A NetworkPolicy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkPolicy {
    /// Its name.
    pub name: NamespacedName,
    /// The pods of its namespace that it restricts.
    pub pods: Selector,
    /// What may connect to these pods. `None` if the policy does not restrict that.
    pub ingress: Option<Vec<PolicyRule>>,
    /// What these pods may connect to. `None` if the policy does not restrict that.
    pub egress: Option<Vec<PolicyRule>>,
    /// Where it was written.
    pub origin: Origin,
}

impl NetworkPolicy {
    /// Returns the policy as an object.
    pub fn object(&self) -> ObjectRef {
        ObjectRef::namespaced(ObjectKind::NetworkPolicy, &self.name)
    }

    /// Returns the rules of a direction. Returns `None` if the policy does not restrict it.
    pub fn rules(&self, way: Way) -> Option<&[PolicyRule]> {
        match way {
            Way::Ingress => self.ingress.as_deref(),
            Way::Egress => self.egress.as_deref(),
        }
    }
}

/// A direction of connections, seen from the restricted pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// To the pod.
    Ingress,
    /// From the pod.
    Egress,
}

impl Way {
    /// Returns the field of the spec with its rules.
    pub fn field(self) -> &'static str {
        match self {
            Self::Ingress => "ingress",
            Self::Egress => "egress",
        }
    }

    /// Returns the field of a rule with the other sides.
    pub fn peers(self) -> &'static str {
        match self {
            Self::Ingress => "from",
            Self::Egress => "to",
        }
    }
}

/// A rule: connections with one of these peers at one of these ports are allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyRule {
    /// The other sides. Empty for all.
    pub peers: Vec<PolicyPeer>,
    /// The ports of the pod that is connected to. Empty for all.
    pub ports: Vec<PolicyPort>,
}

/// The other side of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyPeer {
    /// Pods.
    Pods {
        /// Their namespaces. `None` for the policy's own.
        namespaces: Option<Selector>,
        /// The pods there. `None` for all.
        pods: Option<Selector>,
    },
    /// Addresses, meant for those outside the cluster.
    Range {
        /// The range.
        net: IpNet,
        /// Ranges within it that are left out.
        except: Vec<IpNet>,
    },
}

/// The ports of a rule, of one protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyPort {
    /// The protocol.
    pub protocol: Protocol,
    /// The numbers.
    pub numbers: PortNumbers,
}

/// The numbers of ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortNumbers {
    /// All ports.
    All,
    /// From the first to the last.
    Range(Port, Port),
    /// The port that has this name in the pod that is connected to.
    Named(Text),
}
