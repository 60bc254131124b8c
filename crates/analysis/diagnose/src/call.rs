//! How clients call a load balancer.

use std::net::SocketAddr;

use uturn_model::lb::{Layer, Listener};
use uturn_model::{Destination, Family, Port, Service};

/// What clients of a listener call: an URL where it ends TLS or reads requests.
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

/// The cluster IP at which a call of a Service's name arrives instead of a call of another address: of
/// the same family, where the Service has both.
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
