//! Records: the units in which resources are changed and stored.

use serde::{Deserialize, Serialize};

use super::{Certificate, CustomConfig, LoadBalancer, Task};

/// The account and the region that a resource belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The account.
    pub account: String,
    /// The region, such as `ap-guangzhou`; the empty text for certificates, which belong to no
    /// region.
    pub region: String,
}

/// The key of a record within its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordKey {
    /// The kind.
    pub kind: RecordKind,
    /// The id.
    pub id: String,
}

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordKind {
    /// A load balancer with its listeners, rules and targets.
    LoadBalancer,
    /// A task.
    Task,
    /// A client token.
    ClientToken,
    /// A certificate.
    Certificate,
    /// A custom configuration.
    CustomConfig,
}

impl RecordKind {
    /// Every kind.
    const ALL: [Self; 5] =
        [Self::LoadBalancer, Self::Task, Self::ClientToken, Self::Certificate, Self::CustomConfig];

    /// Returns the name under which records of the kind are stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::LoadBalancer => "load-balancer",
            Self::Task => "task",
            Self::ClientToken => "client-token",
            Self::Certificate => "certificate",
            Self::CustomConfig => "custom-config",
        }
    }

    /// Returns the kind with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::large_enum_variant, reason = "records are few at a time and moved once")]
pub enum Record {
    /// A load balancer with its listeners, rules and targets.
    LoadBalancer(LoadBalancer),
    /// A task.
    Task(Task),
    /// The load balancers that were created with a client token.
    ClientToken(Vec<String>),
    /// A certificate.
    Certificate(Certificate),
    /// A custom configuration.
    CustomConfig(CustomConfig),
}
