//! What of a cluster is known in full: only there does what is not known not exist.

/// Of which objects all are given.
///
/// Manifests are mostly a part of a cluster: what is not among them is somewhere else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Every pod, and everything that makes pods.
    pub pods: bool,
    /// Every Service.
    pub services: bool,
    /// The endpoints of every Service that has any.
    pub endpoints: bool,
    /// Every port that a program listens on: containers declare all of theirs. To declare a
    /// port is voluntary, so only a Scenario or Facts say this.
    pub listeners: bool,
}

impl Extent {
    /// Every object is given.
    pub const OBJECTS: Self =
        Self { pods: true, services: true, endpoints: true, listeners: false };
}
