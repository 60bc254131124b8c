//! Hetzner Cloud: a proxy in front of node ports.

mod remedies;

use std::net::{IpAddr, Ipv4Addr};

use uturn_model::lb::{ProbeRanges, ProbeSource, ProxyVersion, Source};
use uturn_model::service::ServicePort;
use uturn_model::{Family, Ipv4Net, Service};

use super::{Annotation, CloudEntry, Markers, PortPlan, Product, ValueKind};
use crate::cloud::StatusEntry;
use crate::cloud::product::mode_by_header;
use crate::cloud::product::{ANY_PROBER, proxying};
use crate::cloud::values::{is_on, protocol_of};

const NAME: &str = "Hetzner Load Balancer";

/// The description of Hetzner Cloud.
pub static ENTRY: CloudEntry = CloudEntry {
    annotations: &[READ],
    products: &[&Balancer],
    remedies: remedies::remedies,
    samples: &[&[("load-balancer.hetzner.cloud/uses-proxyprotocol", "true")]],
    ..CloudEntry::recognised(
        "hetzner",
        "Hetzner",
        Markers {
            provider_ids: &["hcloud://", "hrobot://"],
            service_keys: &["load-balancer.hetzner.cloud/"],
            service_product: |_| Some(NAME),
            ..Markers::NONE
        },
    )
};

/// A load balancer of Hetzner Cloud.
struct Balancer;

impl Product for Balancer {
    fn name(&self) -> &'static str {
        NAME
    }

    fn writes(&self, service: &Service) -> StatusEntry {
        mode_by_header(self, service)
    }

    fn port(&self, service: &Service, port: &ServicePort, family: Family) -> Option<PortPlan> {
        let protocol = protocol_of(service.annotations.get(PROTOCOL), port);
        let mut plan = proxying(NAME, service, protocol, family);
        plan.profile.proxy_header = is_on(service, PROXY_PROTOCOL).then_some(ProxyVersion::V2);
        if let Some(own) = own_address(service, family) {
            plan.profile.source = Source::Replaced(own.into());
            if let (Some(check), IpAddr::V4(own)) = (&mut plan.profile.health_check, own) {
                check.source = ProbeSource::Reserved(from(own));
            }
        }
        Some(plan)
    }
}

/// Returns the address in the nodes' private network from which the load balancer sends, if it
/// sends to their private addresses and its own private address is in the status.
fn own_address(service: &Service, family: Family) -> Option<IpAddr> {
    let mut listed = service.load_balancer.iter().filter_map(|entry| entry.ip);
    let is_private = |ip: &IpAddr| matches!(ip, IpAddr::V4(ip) if ip.is_private());
    let own = listed.find(is_private)?;
    (is_on(service, USES_PRIVATE_ADDRESSES) && family == Family::V4).then_some(own)
}

/// Returns the ranges of health checks that come from one address.
fn from(own: Ipv4Addr) -> ProbeRanges {
    ProbeRanges { v4: Ipv4Net::from(own), ..ANY_PROBER }
}

const USES_PRIVATE_ADDRESSES: &str = "load-balancer.hetzner.cloud/use-private-ip";
const PROTOCOL: &str = "load-balancer.hetzner.cloud/protocol";
const PROXY_PROTOCOL: &str = "load-balancer.hetzner.cloud/uses-proxyprotocol";

/// The annotations that are read, with the kinds of their values.
const READ: &[Annotation] = &[
    Annotation::new(USES_PRIVATE_ADDRESSES, ValueKind::Switch),
    Annotation::new(PROTOCOL, ValueKind::Words(&["http", "https", "tcp"])),
    Annotation::new(PROXY_PROTOCOL, ValueKind::Switch),
    Annotation::new(remedies::NO_PRIVATE_ADDRESS, ValueKind::Switch),
    Annotation::new(remedies::HOST_NAME, ValueKind::Names),
];
