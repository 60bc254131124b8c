//! Reads the servers of PersistentVolumes, and nothing else of them.

use uturn_document::Node;
use uturn_model::Port;
use uturn_model::volume::VolumeServer;

use super::objects::Objects;
use super::{Doc, meta};

/// The ports of NFS and of iSCSI.
const NFS: Port = Port::new(2049).expect("not zero");
const ISCSI: Port = Port::new(3260).expect("not zero");

/// Reads a PersistentVolume.
pub(crate) fn read(doc: &Doc<'_>, objects: &mut Objects) {
    let spec = doc.root.get("spec");
    let text = |kind: &str, key: &str| spec?.get(kind)?.get(key).and_then(Node::as_str);
    let found = match (text("nfs", "server"), text("iscsi", "targetPortal")) {
        (Some(host), _) => ("spec.nfs.server", host, NFS),
        (None, Some(portal)) => match portal.split_once(':') {
            Some((host, port)) => ("spec.iscsi.targetPortal", host, port.parse().unwrap_or(ISCSI)),
            None => ("spec.iscsi.targetPortal", portal, ISCSI),
        },
        (None, None) => return,
    };
    let Some(meta) = meta::read(doc) else { return };
    let ((field, host, port), name) = (found, meta.name.name);
    let server =
        VolumeServer { name: name.clone(), field, host: host.into(), port, origin: meta.origin };
    objects.volume_servers.add(doc, name, server);
}
