//! MetalLB: speakers on nodes announce the addresses of Services.

mod pools;

use std::net::IpAddr;

use uturn_model::service::ServicePort;
use uturn_model::{AnnouncedBy, Cluster, Family, Service, Version};

use super::{
    AnnouncementObjects, Announcing, CloudEntry, Markers, NoAddress, PortPlan, Product,
    ProgramArgument, StatusShape, VERSION, argument,
};
use crate::cloud::product::Announced;

const NAME: &str = "MetalLB";

/// The argument that makes speakers also announce addresses from nodes that are excluded from load
/// balancers.
const IGNORES_EXCLUSION: &str = "ignore-exclude-lb";

/// The first release that excludes nodes with the label.
const READS_EXCLUSION: Version = Version::new(0, 14, 2);

/// The images of the program that announces addresses.
const SPEAKERS: &[&str] = &["speaker", "metallb-speaker"];

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
        let version = argument(cluster, ENTRY.cloud, VERSION);
        let version: Option<Version> = version.and_then(|text| text.parse().ok());
        if version.is_some_and(|version| version < READS_EXCLUSION) {
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
        _: &Service,
        address: IpAddr,
    ) -> Option<NoAddress> {
        pools::nothing_announces(cluster, address)
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
