//! How clients call a load balancer.

use std::net::SocketAddr;

use uturn_model::lb::{Layer, Listener};
use uturn_model::{Destination, Protocol};
use uturn_path::Engine;

/// The listener at an address.
pub(crate) fn listener_at<'e>(
    engine: &'e Engine<'_>,
    address: SocketAddr,
    protocol: Protocol,
) -> Option<&'e Listener> {
    let balancer = engine.balancers().iter().find(|balancer| balancer.vip == address.ip())?;
    balancer.listeners.iter().find(|listener| {
        listener.port.number() == address.port() && listener.protocol.transport() == protocol
    })
}

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
