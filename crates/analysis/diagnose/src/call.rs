//! Determines how clients call a load balancer.

use std::net::SocketAddr;

use uturn_model::lb::{Layer, Listener};
use uturn_model::{Destination, Family, Port, Service};

/// Returns what clients of a listener call: a URL if the listener ends TLS or reads requests.
pub(crate) fn destination(listener: &Listener, address: SocketAddr) -> Destination {
    let tls = listener.protocol.ends_tls();
    match listener.protocol.layer() {
        Layer::L4 if !tls => Destination::Address(address),
        _ => Destination::Url {
            tls,
            host: address.ip().to_string().into(),
            port: listener.port,
            path: "/".into(),
        },
    }
}

/// Returns the destination of a call by a Service's name, in place of a call to another address:
/// the cluster IP of the same family, if the Service has both families.
pub(crate) fn by_name(service: &Service, port: Port, instead: &Destination) -> Destination {
    let family = match instead {
        Destination::Address(at) => Some(Family::of(at.ip())),
        _ => None,
    };
    let ip = family.and_then(|family| service.cluster_ip(family));
    match ip.filter(|ip| service.cluster_ips.first() != Some(ip)) {
        Some(ip) => Destination::Address(SocketAddr::new(ip, port.number())),
        None => Destination::Service(service.name.clone(), Some(port.to_string().into())),
    }
}
