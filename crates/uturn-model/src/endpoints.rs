//! Endpoints of Services.

use std::net::IpAddr;

use crate::{Family, Name, NamespacedName, Origin, Port, Protocol, Text};

/// An EndpointSlice, or what stands for one (old Endpoints, or derived from pods).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointSlice {
    /// Its name.
    pub name: NamespacedName,
    /// The Service it belongs to.
    pub service: NamespacedName,
    /// The family of its addresses.
    pub family: Family,
    /// The ports that every endpoint of it has.
    pub ports: Vec<EndpointPort>,
    /// Its endpoints.
    pub endpoints: Vec<Endpoint>,
    /// Whether no object says it: it was worked out from pods.
    pub derived: bool,
    /// Where it was written.
    pub origin: Origin,
}

/// A port of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointPort {
    /// The name of the Service's port; none when that has none.
    pub name: Option<Text>,
    /// Its protocol.
    pub protocol: Protocol,
    /// Its number.
    pub port: Port,
}

/// One endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its address (consumers use the first of a slice's list only).
    pub address: IpAddr,
    /// Accepts new connections.
    pub ready: bool,
    /// Would accept new connections were it not terminating.
    pub serving: bool,
    /// Is being deleted.
    pub terminating: bool,
    /// `hostname`: what DNS calls it below a headless Service.
    pub hostname: Option<Text>,
    /// The node it is on.
    pub node: Option<Name>,
    /// The zone it is in.
    pub zone: Option<Text>,
    /// `hints.forZones`.
    pub zone_hints: Vec<Text>,
    /// `hints.forNodes`.
    pub node_hints: Vec<Name>,
    /// The pod it is.
    pub pod: Option<NamespacedName>,
}
