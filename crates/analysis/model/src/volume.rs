//! Volumes that the kubelet mounts from a server by name or address.

use crate::{Name, ObjectKind, ObjectRef, Origin, Port, Text};

/// The server of a PersistentVolume. The kubelet of a node calls it, with the node's name servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeServer {
    /// The name of the volume.
    pub name: Name,
    /// The field that names the server: `spec.nfs.server`.
    pub field: &'static str,
    /// The name or the address of the server.
    pub host: Text,
    /// The port that is called.
    pub port: Port,
    /// Where the volume was written.
    pub origin: Origin,
}

impl VolumeServer {
    /// Returns a reference to the volume.
    pub fn object(&self) -> ObjectRef {
        ObjectRef::global(ObjectKind::PersistentVolume, self.name.as_str())
    }
}
