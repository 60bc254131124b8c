//! The keys that the controllers read, and lists within their values.

use uturn_model::Service;
use uturn_model::lb::ListenerProtocol;
use uturn_model::service::ServicePort;

use crate::cloud::product::plain_protocol;
use crate::cloud::{Annotation, ValueKind};

/// Which kind of load balancer: `union` or `shared`, `performance` or `dedicated`.
pub(super) const CLASS: &str = "kubernetes.io/elb.class";
/// A new load balancer, as JSON.
pub(super) const NEW: &str = "kubernetes.io/elb.autocreate";
/// `true` or `onlyLocal`: nodes leave the address to the load balancer.
pub(super) const PASS_THROUGH: &str = "kubernetes.io/elb.pass-through";
/// Whether a shared one keeps the client's address.
pub(super) const KEEPS_SOURCE: &str = "kubernetes.io/elb.enable-transparent-client-ip";
/// What listeners speak: `https:443,http:80`.
const PROTOCOL_PORT: &str = "kubernetes.io/elb.protocol-port";

/// What the listener of a port speaks.
pub(super) fn protocol(service: &Service, port: &ServicePort) -> ListenerProtocol {
    let listed = service.annotations.get(PROTOCOL_PORT).unwrap_or_default().split(',');
    let mut pairs = listed.filter_map(|pair| pair.trim().split_once(':'));
    let own = pairs.find(|(_, number)| number.trim().parse() == Ok(port.port.number()));
    let spoken = own.map(|(spoken, _)| spoken.trim().to_ascii_lowercase());
    match spoken.as_deref() {
        Some("https" | "terminated_https") => ListenerProtocol::Https,
        Some("http") => ListenerProtocol::Http,
        Some("tls") => ListenerProtocol::TcpSsl,
        _ => plain_protocol(port),
    }
}

/// What the annotations hold.
pub(super) const READ: &[Annotation] = &[
    Annotation::new(CLASS, ValueKind::Words(&["union", "shared", "performance", "dedicated"])),
    Annotation::new(
        NEW,
        ValueKind::Document {
            fields: &["l4_flavor_name", "l7_flavor_name", "available_zone"],
            words: &["l4_flavor_name", "l7_flavor_name", "available_zone"],
        },
    ),
    Annotation::new(PASS_THROUGH, ValueKind::Words(&["true", "false", "onlyLocal"])),
    Annotation::new(KEEPS_SOURCE, ValueKind::Switch),
    Annotation::new(
        PROTOCOL_PORT,
        ValueKind::Words(&["https", "terminated_https", "http", "tls", "tcp", "udp"]),
    ),
];
