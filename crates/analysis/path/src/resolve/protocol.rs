//! The protocol of a call for which none is named.

use uturn_model::service::ServicePort;
use uturn_model::{Cluster, Destination, Port, Protocol, Service, Text};

/// TCP, unless the port of the Service that is called has only another protocol.
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

/// TCP if one of the ports has it or there is none, else the protocol of the first.
fn of_ports<'a>(ports: impl Iterator<Item = &'a ServicePort>) -> Protocol {
    let protocols = ports.map(|port| port.protocol);
    protocols.min_by_key(|protocol| *protocol != Protocol::Tcp).unwrap_or(Protocol::Tcp)
}

/// The ports of a Service that are meant by a name or a number, or all.
pub(super) fn ports_named<'a>(
    service: &'a Service,
    named: Option<&'a Text>,
) -> impl Iterator<Item = &'a ServicePort> + Clone {
    service.ports.iter().filter(move |port| match named {
        None => true,
        Some(text) => port.name.as_ref() == Some(text) || text.parse::<Port>() == Ok(port.port),
    })
}
