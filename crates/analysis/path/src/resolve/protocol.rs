//! The default protocol of a call.

use uturn_model::service::ServicePort;
use uturn_model::{Cluster, Destination, Port, Protocol, Service, Text};

/// Returns the default protocol of a call: TCP, unless the called port of the Service only has
/// another.
pub fn usual_protocol(cluster: &Cluster, to: &Destination) -> Protocol {
    match to {
        Destination::Service(name, port) => {
            let service = cluster.services.get(name).into_iter();
            of_ports(service.flat_map(|service| ports_named(service, port.as_ref())))
        }
        Destination::Address(at) => {
            let there = cluster.services.values().filter(|own| own.has_address(at.ip()));
            let ports = there.flat_map(|service| &service.ports);
            of_ports(ports.filter(|port| port.port.number() == at.port()))
        }
        _ => Protocol::Tcp,
    }
}

/// Returns TCP if one of the ports has it or there is none, else the protocol of the first.
fn of_ports<'a>(ports: impl Iterator<Item = &'a ServicePort>) -> Protocol {
    let protocols = ports.map(|port| port.protocol);
    protocols.min_by_key(|protocol| *protocol != Protocol::Tcp).unwrap_or(Protocol::Tcp)
}

/// Returns the ports of a Service with a name or a number, or all if none is named.
pub(super) fn ports_named<'a>(
    service: &'a Service,
    named: Option<&'a Text>,
) -> impl Iterator<Item = &'a ServicePort> + Clone {
    service.ports.iter().filter(move |port| match named {
        None => true,
        Some(text) => port.name.as_ref() == Some(text) || text.parse::<Port>() == Ok(port.port),
    })
}
