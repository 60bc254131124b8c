//! The documents as they are written, with every default in its place. Their types are also what
//! the JSON Schema of the file is made from, so the comments here are its descriptions, and what
//! may be left out is an `Option`.

#[macro_use]
mod documents;
mod listener;
mod rule;
mod values;

use serde::Serialize;

pub(super) use listener::*;
pub(super) use rule::*;
pub(super) use values::*;

/// A document of the file that `uturn lb run` takes. `uturn lb check -o json` prints a List of
/// them, with every default in its place.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct LbFile(pub(super) Document);

/// A document.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(super) enum Document {
    /// Several documents.
    List(List),
    /// A load balancer.
    LoadBalancer(Box<LoadBalancer>),
    /// The process.
    DataPlane(DataPlane),
    /// A security group.
    SecurityGroup(SecurityGroup),
}

macro_rules! word {
    ($(#[$doc:meta])* $name:ident $word:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[cfg_attr(feature = "schema", schemars(inline))]
        pub(super) enum $name {
            #[doc = concat!("`", $word, "`.")]
            #[serde(rename = $word)]
            It,
        }
    };
}

word!(#[doc = "The version of Lists."] V1 "v1");
word!(#[doc = "The version of uturn's documents."] Ours "uturn.dev/v1alpha1");
word!(#[doc = "A List."] ListKind "List");
word!(#[doc = "A LoadBalancer."] LoadBalancerKind "LoadBalancer");
word!(#[doc = "A DataPlane."] DataPlaneKind "DataPlane");
word!(#[doc = "A SecurityGroup."] SecurityGroupKind "SecurityGroup");

documents! {
    /// Several documents.
    pub(super) struct List {
        /// `v1`.
        api_version: V1,
        /// `List`.
        kind: ListKind,
        /// The documents.
        items: Vec<Document>,
    }

    /// The name of a document.
    pub(super) struct Metadata {
        /// The name.
        name: String,
    }

    /// The name of a document that may have none.
    pub(super) struct OptionalMetadata {
        /// The name.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    }

    /// The settings of the process. At most one document.
    pub(super) struct DataPlane {
        /// `uturn.dev/v1alpha1`.
        api_version: Ours,
        /// `DataPlane`.
        kind: DataPlaneKind,
        /// Its name, which nothing uses.
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<OptionalMetadata>,
        /// The settings.
        spec: DataPlaneSpec,
    }

    /// The settings of the process.
    pub(super) struct DataPlaneSpec {
        /// The number of threads that serve; one a core where it is missing.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1024)))]
        workers: Option<usize>,
        /// Where metrics, the state of targets and the process's own health are served.
        #[serde(skip_serializing_if = "Option::is_none")]
        admin: Option<Admin>,
        /// Where the access log goes: `off`, `stdout`, or the path of a file.
        #[serde(skip_serializing_if = "Option::is_none")]
        access_log: Option<AccessLog>,
        /// How long connections may take to end when a listener or the process stops.
        #[serde(skip_serializing_if = "Option::is_none")]
        drain: Option<Time>,
        /// The most connections from clients at a time, over all listeners; where it is missing, as
        /// many as the limit of open files allows, and no more than 20,000.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 10_000_000)))]
        connections: Option<usize>,
    }

    /// A security group: who may call the load balancers that name it.
    pub(super) struct SecurityGroup {
        /// `uturn.dev/v1alpha1`.
        api_version: Ours,
        /// `SecurityGroup`.
        kind: SecurityGroupKind,
        /// Its name.
        metadata: Metadata,
        /// Its rules.
        spec: SecurityGroupSpec,
    }

    /// The rules of a security group. What none matches is dropped.
    pub(super) struct SecurityGroupSpec {
        /// For what enters; the first that matches decides.
        #[serde(skip_serializing_if = "Option::is_none")]
        inbound: Option<Vec<SecurityRule>>,
        /// For what leaves; not used for load balancers.
        #[serde(skip_serializing_if = "Option::is_none")]
        outbound: Option<Vec<SecurityRule>>,
    }

    /// A rule of a security group.
    pub(super) struct SecurityRule {
        /// `accept` or `drop`.
        action: Action,
        /// `tcp`, `udp`, `sctp` or `all`; all where it is missing.
        #[serde(skip_serializing_if = "Option::is_none")]
        protocol: Option<ProtocolWord>,
        /// A port, a range such as `30000-32768`, or `all`; all where it is missing.
        #[serde(skip_serializing_if = "Option::is_none")]
        ports: Option<Ports>,
        /// The range of clients, or `all`; all where it is missing.
        #[serde(skip_serializing_if = "Option::is_none")]
        peer: Option<Peer>,
    }

    /// A load balancer.
    pub(super) struct LoadBalancer {
        /// `uturn.dev/v1alpha1`.
        api_version: Ours,
        /// `LoadBalancer`.
        kind: LoadBalancerKind,
        /// Its name, which metrics and logs print.
        metadata: Metadata,
        /// What it is.
        spec: LoadBalancerSpec,
    }

    /// A load balancer.
    pub(super) struct LoadBalancerSpec {
        /// Its address.
        vip: Address,
        /// `private` or `public`: whether it is reachable from the internet. For predictions.
        #[serde(skip_serializing_if = "Option::is_none")]
        scope: Option<Scope>,
        /// The names of SecurityGroup documents; without any, every client may call.
        #[serde(skip_serializing_if = "Option::is_none")]
        security_groups: Option<Vec<String>>,
        /// Written by programs that derive load balancers from a cluster: what only people get
        /// wrong is not checked.
        #[serde(skip_serializing_if = "Option::is_none")]
        derived: Option<bool>,
        /// Its listeners.
        #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
        listeners: Vec<Listener>,
    }
}
