//! Endpoints of Services.

use std::net::IpAddr;

use crate::{Family, Name, NamespacedName, Origin, Port, Protocol, Text};

/// An EndpointSlice, or an equivalent (legacy Endpoints, or derived from pods).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointSlice {
    /// Its name.
    pub name: NamespacedName,
    /// The Service it belongs to.
    pub service: NamespacedName,
    /// The family of its addresses.
    pub family: Family,
    /// The ports of all its endpoints.
    pub ports: Vec<EndpointPort>,
    /// Its endpoints.
    pub endpoints: Vec<Endpoint>,
    /// Whether it was derived from pods rather than read from an object.
    pub derived: bool,
    /// Where it was written.
    pub origin: Origin,
}

/// A port of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointPort {
    /// The name of the Service's port; `None` if it has no name.
    pub name: Option<Text>,
    /// Its protocol.
    pub protocol: Protocol,
    /// Its number.
    pub port: Port,
}

/// One endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its address: the first of the slice's list, which is the only one that consumers use.
    pub address: IpAddr,
    /// Whether it accepts new connections.
    pub ready: bool,
    /// Whether it would accept new connections if it were not terminating.
    pub serving: bool,
    /// Whether it is being deleted.
    pub terminating: bool,
    /// `hostname`: its DNS name below a headless Service.
    pub hostname: Option<Text>,
    /// The node on which it is.
    pub node: Option<Name>,
    /// The zone in which it is.
    pub zone: Option<Text>,
    /// `hints.forZones`.
    pub zone_hints: Vec<Text>,
    /// `hints.forNodes`.
    pub node_hints: Vec<Name>,
    /// The pod behind it.
    pub pod: Option<NamespacedName>,
}

impl Endpoint {
    /// Makes an endpoint that is ready, of which nothing else is known.
    pub fn new(address: IpAddr) -> Self {
        Self {
            address,
            ready: true,
            serving: true,
            terminating: false,
            hostname: None,
            node: None,
            zone: None,
            zone_hints: Vec::new(),
            node_hints: Vec::new(),
            pod: None,
        }
    }
}
