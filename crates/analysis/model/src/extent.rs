//! The parts of a cluster that are given completely: only there, an object that is not given does
//! not exist.

/// The kinds of objects that are given completely.
///
/// Manifests are usually a part of a cluster: objects that are not among them may exist
/// elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// All pods, and all objects that create pods.
    pub pods: bool,
    /// All Services.
    pub services: bool,
    /// The endpoints of all Services that have any.
    pub endpoints: bool,
    /// All ports on which programs listen: containers declare all of theirs. Declaring a port is
    /// voluntary, so only a Scenario or Facts state this.
    pub listeners: bool,
}

impl Extent {
    /// The extent if all objects are given.
    pub const OBJECTS: Self =
        Self { pods: true, services: true, endpoints: true, listeners: false };
}
