//! Reads NginxProxies, the settings of NGINX Gateway Fabric's data planes.

use uturn_document::Node;
use uturn_model::{NamespacedName, Origin};

use super::objects::Objects;
use super::{Doc, meta};

/// An NginxProxy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NginxProxy {
    pub(crate) name: NamespacedName,
    /// Whether connections begin with a PROXY header. `None` if the object does not state how the
    /// client's address is found.
    pub(crate) has_header: Option<bool>,
    pub(crate) origin: Origin,
}

/// Reads an NginxProxy. In older releases NginxProxies have no namespace; those are in `default`.
pub(crate) fn read(doc: &Doc<'_>, objects: &mut Objects) {
    let Some(meta) = meta::read(doc) else { return };
    let spec = doc.map(doc.root, "spec");
    let rewrite = spec.and_then(|spec| doc.map(spec, "rewriteClientIP"));
    let mode = rewrite.and_then(|rewrite| rewrite.get("mode")).and_then(Node::as_str);
    let has_header = mode.map(|mode| mode == "ProxyProtocol");
    let settings = NginxProxy { name: meta.name, has_header, origin: meta.origin };
    objects.nginx_proxies.add(doc, settings.name.clone(), settings);
}
