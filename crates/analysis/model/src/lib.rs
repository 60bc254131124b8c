//! The types that describe a cluster, which all other crates share.
//!
//! **Owns** [`Cluster`] and everything in it (nodes, pods, Services, endpoints, Ingresses, load
//! balancers, the VPC, names, kube-proxy settings, captures), and the results about it ([`Flow`],
//! [`Route`], [`Outcome`], [`Mechanism`], [`Verdict`]).
//!
//! **Out of scope:** I/O, Kubernetes wire types, serialisation and policy. A value of these types
//! is already valid: a [`Port`] is not zero, a [`Name`] is a valid name, a [`Verdict`]'s shares add
//! up. Unknown facts are expressed with [`Known`] and [`Assumption`] instead of being left out.
//!
//! **Start reading** at [`cluster`], then [`service`] and [`lb`]; flows and
//! their results are in [`flow`] and [`route`].
//!
//! ```text
//!  Cluster ─┬─ Node ── Capture            Flow (Client → Destination)
//!           ├─ Pod, Workload                │ walked by uturn-path
//!           ├─ Service ── EndpointSlice     ▼
//!           ├─ Ingress ── IngressClass    Route ── Hop ── Step     (one way, its share)
//!           ├─ ListenerOverrides            │ added up
//!           ├─ Network, SecurityGroup       ▼
//!           └─ Dns, ProxySettings         Verdict (Outcome × share, Mechanism)
//! ```

pub mod addr;
pub mod announcement;
pub mod api_server;
pub mod capture;
mod client_network;
pub mod cloud;
pub mod cluster;
pub mod controller;
pub mod dns;
pub mod endpoints;
pub mod evidence;
pub mod extent;
pub mod flow;
pub mod gateway;
pub mod gateway_ports;
pub mod image;
pub mod ingress;
pub mod known;
pub mod labels;
pub mod lb;
pub mod mechanism;
pub mod mesh;
pub mod misspelt;
pub mod name;
pub mod network;
pub mod network_policy;
pub mod node;
pub mod origin;
pub mod outcome;
pub mod pod;
pub mod proxy;
pub mod route;
pub mod scheduling;
pub mod service;
pub mod share;
pub mod shell;
pub mod unjudged;
pub mod version;
pub mod visible;
pub mod volume;
pub mod wording;
pub mod workload;
mod workload_kind;

pub use addr::{Family, Port, Protocol};
pub use announcement::{AddressPool, AnnouncedBy, Announcement, Announcements};
pub use api_server::{ApiServerCall, ApiServerCalls, CallReason, FailurePolicy, UrlCall};
pub use capture::{Capture, CaptureFile};
pub use client_network::client_network;
pub use cloud::Cloud;
pub use cluster::{Cluster, Skipped};
pub use controller::{ControllerListener, IngressController, ProxyExpectation};
pub use endpoints::{Endpoint, EndpointPort, EndpointSlice};
pub use evidence::{Evidence, FabricPart};
pub use extent::Extent;
pub use flow::{Client, Destination, Flow};
pub use ingress::{Ingress, IngressClass};
pub use ipnet::{IpNet, Ipv4Net, Ipv6Net};
pub use known::{Assumption, AssumptionSubject, Basis, Known};
pub use labels::{Labels, Selector};
pub use lb::LoadBalancer;
pub use mechanism::Mechanism;
pub use mesh::{MeshGateway, MeshRoute};
pub use name::{InvalidName, Name, NamespacedName, ObjectKind, ObjectRef};
pub use node::Node;
pub use origin::{DerivedFrom, Origin, RulesPart, SourceName};
pub use outcome::Outcome;
pub use pod::Pod;
pub use proxy::{AddressBinding, ProxyMode, ProxySettings, ServiceProxy, Variant};
pub use route::{FailurePoint, Hop, Place, Route, Step, StepKind, Verdict};
pub use service::Service;
pub use share::Share;
pub use unjudged::{Unjudged, Unknown};
pub use version::{Vendor, VendorBuild, Version};
pub use volume::VolumeServer;
pub use workload::Workload;
pub use workload_kind::WorkloadKind;

/// Shared, immutable text: cheap to clone, since names repeat a lot.
pub type Text = std::sync::Arc<str>;
