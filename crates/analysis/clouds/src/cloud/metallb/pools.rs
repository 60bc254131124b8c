//! Finds why no pool has an address for a Service.

use std::collections::BTreeSet;
use std::net::IpAddr;

use uturn_model::announcement::{AddressPool, AnnouncedBy};
use uturn_model::{Cluster, Family, Service};

use crate::cloud::{Annotation, Announcing, Need, NewObject, NewValue, NoAddress, ValueKind};

/// The annotations with the addresses that a Service asks for.
const ADDRESSES: [&str; 2] = ["metallb.io/loadBalancerIPs", "metallb.universe.tf/loadBalancerIPs"];

/// The annotations with the pool that a Service asks for.
const POOL: [&str; 2] = ["metallb.io/address-pool", "metallb.universe.tf/address-pool"];

/// The annotations with which Services share an address.
const SHARED: [&str; 2] = ["metallb.io/allow-shared-ip", "metallb.universe.tf/allow-shared-ip"];

/// The annotations that are read, with the kinds of their values.
pub(super) const READ: &[Annotation] = &[
    Annotation::new(ADDRESSES[0], ValueKind::Names),
    Annotation::new(ADDRESSES[1], ValueKind::Names),
    Annotation::new(POOL[0], ValueKind::Names),
    Annotation::new(POOL[1], ValueKind::Names),
    Annotation::new(SHARED[0], ValueKind::Names),
    Annotation::new(SHARED[1], ValueKind::Names),
];

/// The condition of what rests on the pools, unless all are given.
const ALL_GIVEN: &str = "no other pool of addresses exists";

/// The largest number of addresses that are compared with those in use.
const MAX_ADDRESSES: u128 = 4096;

/// Returns why no pool has an address for a Service: it asks for a pool or an address that is not
/// there, or all addresses are in use.
pub(super) fn no_address(cluster: &Cluster, service: &Service) -> Option<NoAddress> {
    let pools = &cluster.announcements.pools;
    let are_all = cluster.announcements.are_complete;
    let reads_objects = super::release(cluster).is_none_or(|own| own >= super::READS_OBJECTS);
    if pools.is_empty() && (!are_all || !reads_objects) {
        return None;
    }
    let read = |keys: [&str; 2]| keys.into_iter().find_map(|key| service.annotations.get(key));
    let condition = (!are_all).then_some(ALL_GIVEN);
    let because = |because: String| Some(NoAddress { because, condition });
    if pools.is_empty() {
        return because("there is no IPAddressPool".to_owned());
    }
    if let Some(wanted) = read(POOL)
        && !pools.iter().any(|pool| pool.name.name.as_str() == wanted)
    {
        let all: Vec<&str> = pools.iter().map(|pool| pool.name.name.as_str()).collect();
        return because(format!("it asks for pool {wanted}, and there is {}", all.join(", ")));
    }
    let asked = read(ADDRESSES).into_iter().flat_map(|text| text.split(','));
    let mut asked = asked.filter_map(|text| text.trim().parse().ok()).chain(service.asked_address);
    if let Some(address) = asked.find(|address| cluster.announcements.pool_of(*address).is_none()) {
        return because(format!("it asks for {address}, which is in no pool: {}", ranges(pools)));
    }
    // Services that share an address need no free one.
    let is_exhausted =
        read(SHARED).is_none() && asks_nothing(service) && is_used_up(cluster, service);
    if !is_exhausted {
        return None;
    }
    because(format!("other Services have every address of the pools: {}", ranges(pools)))
}

fn asks_nothing(service: &Service) -> bool {
    service.asked_address.is_none()
        && ADDRESSES.iter().all(|key| service.annotations.get(key).is_none())
}

/// Returns whether other Services have every address of a Service's family.
fn is_used_up(cluster: &Cluster, service: &Service) -> bool {
    let family = service.families.first().copied();
    let family = family.or_else(|| service.cluster_ips.first().map(|ip| Family::of(*ip)));
    let family = family.unwrap_or(Family::V4);
    let ranges = || {
        let all = cluster.announcements.pools.iter().flat_map(|pool| &pool.ranges);
        all.filter(move |range| Family::of(range.addr()) == family)
    };
    let size =
        |prefix: u8, all: u8| 1u128.checked_shl(u32::from(all - prefix)).unwrap_or(u128::MAX);
    let sizes = ranges().map(|range| size(range.prefix_len(), range.max_prefix_len()));
    let count = sizes.fold(0u128, u128::saturating_add);
    let used: BTreeSet<IpAddr> = cluster
        .services
        .values()
        .flat_map(|service| service.load_balancer.iter().filter_map(|entry| entry.ip))
        .filter(|ip| ranges().any(|range| range.contains(ip)))
        .collect();
    // Pools do not overlap: the controller refuses that.
    (1..=MAX_ADDRESSES).contains(&count) && used.len() as u128 >= count
}

fn ranges(pools: &[AddressPool]) -> String {
    let of = |pool: &AddressPool| {
        let ranges: Vec<String> = pool.ranges.iter().map(ToString::to_string).collect();
        format!("{} has {}", pool.object, ranges.join(", "))
    };
    pools.iter().map(of).collect::<Vec<_>>().join("; ")
}

/// Returns whether objects announce an address by layer 2 alone.
pub(super) fn is_by_layer_2(cluster: &Cluster, address: IpAddr) -> bool {
    is_by(cluster, address, AnnouncedBy::Neighbours)
}

/// Returns whether objects announce an address by BGP alone.
pub(super) fn is_by_bgp(cluster: &Cluster, address: IpAddr) -> bool {
    is_by(cluster, address, AnnouncedBy::Routes)
}

fn is_by(cluster: &Cluster, address: IpAddr, by: AnnouncedBy) -> bool {
    let given = &cluster.announcements;
    let Some(pool) = given.pool_of(address) else { return false };
    let mut of_pool = given.all.iter().filter(|own| own.has_pool(pool)).peekable();
    of_pool.peek().is_some() && of_pool.all(|own| own.by == by)
}

/// Returns that no object announces the addresses of a pool.
pub(super) fn nothing_announces(cluster: &Cluster, address: IpAddr) -> Option<NoAddress> {
    let given = &cluster.announcements;
    let pool = given.pool_of(address).filter(|_| given.all.is_empty())?;
    let because = format!(
        "{address} is of {}, and there is neither an L2Advertisement nor a BGPAdvertisement: speakers \
         announce no address of a pool without one",
        pool.object
    );
    let condition =
        (!given.are_complete).then_some("neither an L2Advertisement nor a BGPAdvertisement exists");
    Some(NoAddress { because, condition })
}

/// Returns the object that announces the addresses of a pool on the nodes' segment.
pub(super) fn announcing(cluster: &Cluster, address: IpAddr) -> Vec<Announcing> {
    let Some(pool) = cluster.announcements.pool_of(address) else { return Vec::new() };
    let name = &pool.name.name;
    let object = NewObject {
        version: VERSION,
        kind: "L2Advertisement",
        namespace: Some(pool.name.namespace.clone()),
        name: name.to_string(),
        spec: vec![("ipAddressPools", NewValue::Texts(vec![name.to_string()]))],
    };
    let on_segment = Need {
        what: "the addresses of the pool are on the nodes' segment",
        holds: None,
        because: "a node answers ARP for them there; elsewhere a BGPAdvertisement and a BGPPeer \
                  announce them to a router"
            .to_owned(),
    };
    vec![Announcing {
        title: format!("an L2Advertisement for pool {name}"),
        objects: vec![object],
        needs: vec![on_segment],
        costs: vec!["a node answers for every address of the pool, that of other Services too"],
        ..Announcing::default()
    }]
}

/// The version of the objects.
pub(super) const VERSION: &str = "metallb.io/v1beta1";
