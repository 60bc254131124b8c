//! Reads LoadBalancer documents.

use std::net::IpAddr;

use uturn_document::Node;
use uturn_lb::config::BalancerConfig;
use uturn_model::lb::Scope;
use uturn_model::{LoadBalancer, Name, NamespacedName, ObjectKind, ObjectRef, Text};

use crate::decode::Doc;

use super::across::Across;
use super::form::Form;
use super::listener;

/// The load balancer of a listener: its VIP, against which fields are checked, and its name.
pub(super) struct Around<'t> {
    pub(super) vip: Option<IpAddr>,
    pub(super) name: &'t Text,
}

impl Around<'_> {
    /// Returns the Service of a rule that names none.
    pub(super) fn service(&self) -> NamespacedName {
        let name: Option<Name> = self.name.parse().ok();
        let name = name.or_else(|| "service".parse().ok()).expect("it is a name");
        NamespacedName { namespace: "default".parse().expect("it is a name"), name }
    }

    /// Returns the owner of a rule that names neither its owner nor its Service.
    pub(super) fn owner(&self) -> ObjectRef {
        ObjectRef::global(ObjectKind::LoadBalancer, self.name.clone())
    }
}

/// Returns whether a program derived a document from a cluster.
pub(super) fn is_derived(doc: &Doc<'_>) -> bool {
    doc.root.get("spec").is_some_and(|spec| {
        // A fault of the field is reported where the field is read.
        matches!(spec.get("derived").map(crate::decode::FromNode::from_node), Some(Ok(true)))
    })
}

/// The reason why a VIP cannot be the unspecified address.
const WILDCARD: &str = "; write a document for each address, because the VIP is also what packets \
                        are matched by and health checks are sent from";

/// Reads a load balancer with the settings of its listeners.
pub(super) fn read(form: &Form<'_, '_>, across: &mut Across) -> Option<BalancerConfig> {
    form.only(form.root, &["apiVersion", "kind", "metadata", "spec"]);
    let name = form.need_map(form.root, "metadata").and_then(|metadata| {
        form.only(metadata, &["name"]);
        let name = form.need::<Text>(metadata, "name")?;
        across.balancer(form, metadata.get("name")?, &name);
        Some(name)
    });
    let spec = form.need_map(form.root, "spec")?;
    form.only(spec, &["vip", "scope", "securityGroups", "listeners", "derived"]);
    let vip = form.need::<IpAddr>(spec, "vip");
    let vip = vip.map(|vip| if form.is_derived() { vip } else { vip.to_canonical() });
    if let Some((vip, node)) = vip.zip(spec.get("vip"))
        && (vip.is_unspecified() || vip.is_multicast())
    {
        let why = if vip.is_unspecified() { WILDCARD } else { "" };
        form.wrong(node, format!("expected one address that clients call, found {vip}{why}"));
    }
    let scope = form.read(spec, "scope").unwrap_or(Scope::Private);
    form.read::<bool>(spec, "derived");
    let mut security_groups = Vec::new();
    for node in form.items(spec, "securityGroups") {
        let Some(group) = form.value::<Text>(node) else { continue };
        across.named_group(form, node, group.clone());
        security_groups.push(group);
    }
    let name_or_none = name.clone().unwrap_or_default();
    let around = Around { vip, name: &name_or_none };
    let nodes: Vec<&Node<'_>> = form.maps(spec, "listeners").collect();
    if form.items(spec, "listeners").is_empty() {
        form.lacks(spec, "listeners", "at least one listener");
    }
    let (listeners, settings) =
        nodes.into_iter().filter_map(|node| listener::read(form, node, &around, across)).unzip();
    across.targets(form, vip);
    let (name, vip) = (name?, vip?);
    let load_balancer = LoadBalancer { name, vip, scope, zone: None, security_groups, listeners };
    Some(BalancerConfig { load_balancer, listeners: settings, derived: form.is_derived() })
}
