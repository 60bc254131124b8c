//! The keys of the annotations that the controllers read, and lists within their values.

use uturn_model::Service;
use uturn_model::lb::ListenerProtocol;
use uturn_model::service::ServicePort;

use crate::cloud::product::plain_protocol;
use crate::cloud::{Annotation, ValueKind};

/// The annotation for the kind of load balancer: `union` or `shared`, `performance` or `dedicated`.
pub(super) const CLASS: &str = "kubernetes.io/elb.class";
/// The annotation that asks for a new load balancer, as JSON.
pub(super) const NEW: &str = "kubernetes.io/elb.autocreate";
/// The annotation that, if `true` or `onlyLocal`, makes nodes leave the address to the load
/// balancer.
pub(super) const PASS_THROUGH: &str = "kubernetes.io/elb.pass-through";
/// The annotation that states whether a shared load balancer keeps the client's address.
pub(super) const KEEPS_SOURCE: &str = "kubernetes.io/elb.enable-transparent-client-ip";
/// The annotation for the protocols of listeners: `https:443,http:80`.
const PROTOCOL_PORT: &str = "kubernetes.io/elb.protocol-port";

/// Returns the protocol of the listener of a port.
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

/// The annotations that are read, with the kinds of their values.
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
