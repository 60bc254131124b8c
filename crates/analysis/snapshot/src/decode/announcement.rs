//! Reads objects that state which nodes announce which addresses, and the pools of these addresses.
//! The entry of a cloud states the kinds of these objects.

use std::net::IpAddr;

use uturn_clouds::cloud::{self, AnnouncementMap};
use uturn_document::Node;
use uturn_model::announcement::{AddressPool, Announcement};
use uturn_model::{IpNet, Labels, Name, NamespacedName, Selector, Text};

use super::objects::Objects;
use super::{Doc, meta, selector};

/// Reads an announcement or a pool of addresses.
pub(crate) fn read(doc: &Doc<'_>, objects: &mut Objects) {
    let kind = doc.root.get("kind").and_then(Node::as_str).unwrap_or_default();
    let Some(known) = cloud::announcement_objects(kind) else { return };
    let Some(meta) = meta::read(doc) else { return };
    let object: Text = format!("{kind} {}", meta.name).into();
    let spec = doc.map(doc.root, "spec");
    let key = (Text::from(kind), meta.name.clone());
    if known.pool == kind {
        let ranges = spec.map_or_else(Vec::new, |spec| ranges(doc, spec));
        let (name, labels, origin) = (meta.name, meta.labels, meta.origin);
        return objects.pools.add(doc, key, AddressPool { object, name, labels, ranges, origin });
    }
    let by = known.announcements.iter().find(|(own, _)| *own == kind);
    let Some((_, by)) = by else { return };
    let selectors = |field| -> Vec<Selector> {
        let items = spec.into_iter().flat_map(|spec| doc.maps(spec, field));
        items.map(|item| selector::of(doc, item)).collect()
    };
    let preferred = spec.into_iter().flat_map(|spec| doc.maps(spec, "preferredNodeSelectors"));
    let preferred = preferred.map(|item| {
        let weight = doc.read::<u32>(item, "weight").unwrap_or_default();
        (weight, selector::read(doc, item, "preference").unwrap_or_default())
    });
    let announcement = Announcement {
        object,
        by: *by,
        pools: spec.map_or_else(Vec::new, |spec| doc.list(spec, "ipAddressPools")),
        pool_selectors: selectors("ipAddressPoolSelectors"),
        nodes: selectors("nodeSelectors"),
        services: selectors("serviceSelectors"),
        preferred: preferred.collect(),
        interfaces: spec.map_or_else(Vec::new, |spec| doc.list(spec, "interfaces")),
        name: meta.name,
        origin: meta.origin,
    };
    objects.announcements.add(doc, key, announcement);
}

/// Reads the pools of a ConfigMap, each with its announcement.
pub(crate) fn read_map(
    doc: &Doc<'_>,
    known: &AnnouncementMap,
    map: &NamespacedName,
    objects: &mut Objects,
) {
    let object: Text = format!("{MAP} {map}").into();
    for item in doc.maps(doc.root, known.pools) {
        let Some(name) = doc.need::<Name>(item, "name") else { continue };
        let protocol = doc.read::<Text>(item, "protocol");
        let by = known.protocols.iter().find(|(own, _)| Some(*own) == protocol.as_deref());
        let Some((_, by)) = by else { continue };
        let name = NamespacedName { namespace: map.namespace.clone(), name };
        let (key, origin) = ((Text::from(MAP), name.clone()), doc.origin(item));
        let announcement = Announcement {
            object: object.clone(),
            by: *by,
            pools: vec![name.name.clone()],
            pool_selectors: Vec::new(),
            nodes: Vec::new(),
            services: Vec::new(),
            preferred: Vec::new(),
            interfaces: Vec::new(),
            name: name.clone(),
            origin: origin.clone(),
        };
        objects.announcements.add(doc, key.clone(), announcement);
        let (ranges, labels, object) = (ranges(doc, item), Labels::new(), object.clone());
        objects.pools.add(doc, key, AddressPool { object, name, labels, ranges, origin });
    }
}

/// The kind of a pool that a ConfigMap states.
pub(crate) const MAP: &str = "ConfigMap";

/// The kind and name of an announcement or a pool.
pub(crate) type Key = (Text, NamespacedName);

/// Reads the addresses of a pool: ranges, each written as a prefix or as its first and last
/// address.
fn ranges<'d>(doc: &Doc<'d>, spec: &'d Node<'d>) -> Vec<IpNet> {
    let mut all = Vec::new();
    for item in doc.items(spec, "addresses") {
        let Some(text) = doc.value::<Text>(item) else { continue };
        match range(&text) {
            Some(nets) => all.extend(nets),
            None => {
                let expected = "expected a range: 10.0.0.0/24, or 10.0.0.1-10.0.0.9";
                doc.fault(item, format!("{expected}, found {:?}", &*text));
            }
        }
    }
    all
}

fn range(text: &str) -> Option<Vec<IpNet>> {
    let Some((first, last)) = text.split_once('-') else {
        return Some(vec![text.trim().parse::<IpNet>().ok()?.trunc()]);
    };
    let first: IpAddr = first.trim().parse().ok()?;
    let last: IpAddr = last.trim().parse().ok()?;
    let nets: Vec<IpNet> = match (first, last) {
        (IpAddr::V4(first), IpAddr::V4(last)) if first <= last => {
            ipnet::Ipv4Subnets::new(first, last, 0).map(IpNet::V4).collect()
        }
        (IpAddr::V6(first), IpAddr::V6(last)) if first <= last => {
            ipnet::Ipv6Subnets::new(first, last, 0).map(IpNet::V6).collect()
        }
        _ => return None,
    };
    Some(nets)
}
