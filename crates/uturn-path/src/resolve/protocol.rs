//! The protocol of a call for which none is named.

use uturn_model::service::ServicePort;
use uturn_model::{Cluster, Destination, Port, Protocol, Service, Text};

/// TCP, unless the port of the Service that is called has only another protocol.
pub fn usual_protocol(cluster: &Cluster, to: &Destination) -> Protocol {
    let of_ports = |mut ports: Vec<&ServicePort>| {
        ports.sort_by_key(|port| port.protocol != Protocol::Tcp);
        ports.first().map_or(Protocol::Tcp, |port| port.protocol)
    };
    match to {
        Destination::Service(name, port) => match cluster.services.get(name) {
            Some(service) => of_ports(ports_named(service, port.as_ref()).collect()),
            None => Protocol::Tcp,
        },
        Destination::Address(at) => {
            let there = cluster.services.values().filter(|own| own.has_address(at.ip()));
            let ports = there.flat_map(|service| &service.ports);
            of_ports(ports.filter(|port| port.port.number() == at.port()).collect())
        }
        _ => Protocol::Tcp,
    }
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
