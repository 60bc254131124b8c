//! Calls of API servers outside the nodes: they ask no name server for a Service's name, but read the
//! Service and dial one of its endpoints.

use std::net::SocketAddr;

use uturn_model::{Client, Cluster, Destination, Flow, NamespacedName};

use crate::engine::Engine;

/// Returns what an API server dials in place of the name of a Service. Returns `None` for other clients
/// and destinations.
pub(super) fn dialled(engine: &Engine<'_>, flow: &Flow) -> Option<Flow> {
    let cluster = engine.cluster();
    let Client::Outside(Some(own)) = &flow.from else { return None };
    let (host, number) = match &flow.to {
        Destination::Url { host, port, .. } | Destination::Host(host, port) => {
            (host, port.number())
        }
        _ => return None,
    };
    let service = service_named(cluster, host)?;
    let is_api_server = cluster
        .api_server_slices()
        .iter()
        .filter(|slice| !slice.derived)
        .flat_map(|slice| &slice.endpoints)
        .any(|endpoint| endpoint.address == *own);
    if !is_api_server || engine.node_at(*own).is_some() {
        return None;
    }
    let service = cluster.services.get(&service)?;
    let port = service.ports.iter().find(|port| port.port.number() == number)?;
    let (address, port) = cluster.slices(&service.name).iter().find_map(|slice| {
        let end = slice.ports.iter().find(|end| end.name == port.name)?;
        let ready = slice.endpoints.iter().find(|endpoint| endpoint.ready)?;
        Some((ready.address, end.port))
    })?;
    let to = match &flow.to {
        Destination::Url { tls, path, .. } => {
            let host = address.to_string().into();
            Destination::Url { tls: *tls, host, port, path: path.clone() }
        }
        _ => Destination::Address(SocketAddr::new(address, port.number())),
    };
    Some(Flow { to, ..flow.clone() })
}

/// Returns the Service of a name that an API server reads: `NAME.NAMESPACE.svc`.
fn service_named(cluster: &Cluster, host: &str) -> Option<NamespacedName> {
    let host = host.trim_end_matches('.');
    let host =
        host.strip_suffix(cluster.dns.domain()).map_or(host, |own| own.trim_end_matches('.'));
    let mut labels = host.split('.');
    let (name, namespace) = (labels.next()?, labels.next()?);
    let is_it = labels.next() == Some("svc") && labels.next().is_none();
    is_it.then(|| NamespacedName::new(namespace, name).ok()).flatten()
}
