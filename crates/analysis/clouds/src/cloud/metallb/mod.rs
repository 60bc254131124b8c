//! MetalLB: speakers on nodes announce the addresses of Services.

mod pools;

use std::net::IpAddr;

use uturn_model::service::ServicePort;
use uturn_model::{AnnouncedBy, Cluster, Family, Service, Version};

use super::{
    AnnouncementMap, AnnouncementObjects, Announcing, CloudEntry, Markers, NoAddress, PortPlan,
    Product, ProgramArgument, StatusShape, VERSION, argument,
};
use crate::cloud::product::Announced;

const NAME: &str = "MetalLB";

/// The argument that makes speakers also announce addresses from nodes that are excluded from load
/// balancers.
const IGNORES_EXCLUSION: &str = "ignore-exclude-lb";

/// The first release that excludes nodes with the label.
const READS_EXCLUSION: Version = Version::new(0, 14, 2);

/// The first release in which any node with a speaker may answer for an address under policy
/// Cluster; before it, only nodes with an endpoint do.
const CHOOSES_AMONG_SPEAKERS: Version = Version::new(0, 11, 0);

/// The first release that reads objects and no ConfigMap.
const READS_OBJECTS: Version = Version::new(0, 13, 0);

/// The images of the program that announces addresses.
const SPEAKERS: &[&str] = &["speaker", "metallb-speaker"];

/// Returns the release of the speakers, if it is given.
fn release(cluster: &Cluster) -> Option<Version> {
    argument(cluster, ENTRY.cloud, VERSION)?.parse().ok()
}

/// Returns that no endpoint of a Service names a node, if it has endpoints that are ready.
fn lacks_nodes(cluster: &Cluster, service: &Service) -> Option<String> {
    let slices = cluster.slices(&service.name).iter();
    let mut ready = slices.flat_map(|slice| &slice.endpoints).filter(|own| own.ready).peekable();
    let first = ready.peek()?.address;
    let is_without = ready.all(|endpoint| endpoint.node.is_none());
    is_without.then(|| {
        format!("no endpoint of {} names a node ({first} has no nodeName)", service.object())
    })
}

/// The load balancer: a speaker announces the address from its node.
struct Speakers;

impl Product for Speakers {
    fn name(&self) -> &'static str {
        NAME
    }

    fn is_announced(&self) -> bool {
        true
    }

    fn reads_announcements(&self) -> bool {
        true
    }

    fn reads_exclusion(&self, cluster: &Cluster) -> bool {
        if release(cluster).is_some_and(|version| version < READS_EXCLUSION) {
            return false;
        }
        let value = argument(cluster, ENTRY.cloud, IGNORES_EXCLUSION);
        value.is_none_or(|value| matches!(value, "false" | "False" | "FALSE" | "f" | "F" | "0"))
    }

    fn no_address(&self, cluster: &Cluster, service: &Service) -> Option<NoAddress> {
        pools::no_address(cluster, service)
    }

    fn nothing_announces(
        &self,
        cluster: &Cluster,
        service: &Service,
        address: IpAddr,
    ) -> Option<NoAddress> {
        let version = release(cluster);
        let is_old = version.is_some_and(|version| version < CHOOSES_AMONG_SPEAKERS)
            && !pools::is_by_bgp(cluster, address);
        let by_nodes = version.filter(|_| is_old).and_then(|version| {
            let because = lacks_nodes(cluster, service)?;
            Some(NoAddress {
                because: format!(
                    "before {CHOOSES_AMONG_SPEAKERS}, MetalLB has only a node with an endpoint answer for an \
                     address (layer2); this is {version}, and {because}"
                ),
                condition: (!pools::is_by_layer_2(cluster, address))
                    .then_some("MetalLB announces the address by layer2"),
            })
        });
        by_nodes.or_else(|| pools::nothing_announces(cluster, address))
    }

    fn announcing(&self, cluster: &Cluster, address: IpAddr) -> Vec<Announcing> {
        pools::announcing(cluster, address)
    }

    fn port(&self, service: &Service, port: &ServicePort, family: Family) -> Option<PortPlan> {
        Announced(NAME).port(service, port, family)
    }
}

/// The description of MetalLB.
pub static ENTRY: CloudEntry = CloudEntry {
    products: &[&Speakers],
    annotations: &[pools::READ],
    serves_services_only: true,
    writes: StatusShape::Addresses,
    announcements: Some(AnnouncementObjects {
        versions: &[pools::VERSION],
        pool: "IPAddressPool",
        announcements: &[
            ("L2Advertisement", AnnouncedBy::Neighbours),
            ("BGPAdvertisement", AnnouncedBy::Routes),
        ],
        before: Some(AnnouncementMap {
            name: ("metallb-system", "config"),
            key: "config",
            pools: "address-pools",
            protocols: &[("layer2", AnnouncedBy::Neighbours), ("bgp", AnnouncedBy::Routes)],
            until: READS_OBJECTS,
        }),
    }),
    announcer_images: SPEAKERS,
    versions_of: SPEAKERS,
    arguments: &[ProgramArgument { images: SPEAKERS, name: IGNORES_EXCLUSION }],
    ..CloudEntry::recognised(
        "metallb",
        NAME,
        Markers {
            service_keys: &["metallb.io/", "metallb.universe.tf/"],
            load_balancer_classes: &[("metallb.io/", NAME), ("metallb.universe.tf/", NAME)],
            namespaces: &["metallb-system"],
            program_names: &["metallb-speaker"],
            object_kinds: &["metallb.io/"],
            ..Markers::NONE
        },
    )
};
