//! The addresses of Services, as a program that serves them in place of kube-proxy sees them.

use std::net::SocketAddr;
use std::sync::Arc;

use uturn_model::service::ServicePort;
use uturn_model::{
    Endpoint, Evidence, Family, Name, Protocol, Service, ServiceProxy, Share, Unknown,
};
use uturn_netfilter::IpProtocol;

use crate::engine::Engine;
use crate::engine::walk::Walk;
use crate::unjudged::UnjudgedReason;

/// The kind of a Service's address that is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frontend {
    ClusterIp,
    ExternalIp,
    Balancer,
    /// The address of a load balancer whose `ipMode` says that calls have to go there.
    Proxied,
    NodePort,
}

/// Returns the endpoints of a port, each with its share of connections: those that are ready, else
/// those that still serve while they terminate.
pub(crate) fn endpoints_for(
    walk: &Walk<'_, '_>,
    service: &Service,
    port: &ServicePort,
    family: Family,
    home: Option<&Name>,
) -> Vec<(Share, SocketAddr)> {
    let weight = |address: SocketAddr| walk.population.endpoints(address.ip()).unwrap_or(1.0);
    let of = |is_it: &dyn Fn(&Endpoint) -> bool| {
        let mut found: Vec<SocketAddr> = Vec::new();
        for slice in walk.cluster.slices(&service.name) {
            let number = slice.ports.iter().find(|number| {
                slice.family == family
                    && number.name == port.name
                    && number.protocol == port.protocol
            });
            let Some(number) = number else { continue };
            for endpoint in slice.endpoints.iter().filter(|endpoint| is_it(endpoint)) {
                let address = SocketAddr::new(endpoint.address, number.port.number());
                let is_here = home.is_none_or(|home| endpoint.node.as_ref() == Some(home));
                if is_here && !found.contains(&address) {
                    found.push(address);
                }
            }
        }
        found
    };
    let mut found = of(&|endpoint| endpoint.ready);
    if found.is_empty() {
        found = of(&|endpoint| endpoint.serving && endpoint.terminating);
    }
    let all: f64 = found.iter().map(|address| weight(*address)).sum();
    found.into_iter().map(|address| (Share::ratio(weight(address), all), address)).collect()
}

/// Returns why a packet from the network to an address of a Service cannot be judged, if no
/// kube-proxy serves the Service.
pub(super) fn unjudged(
    engine: &Engine<'_>,
    to: SocketAddr,
    protocol: IpProtocol,
) -> Option<UnjudgedReason> {
    let proxy = engine.cluster.proxy.replaced_by()?;
    let (service, _, frontend) = at(engine, to, protocol)?;
    (frontend != Frontend::ClusterIp).then(|| unjudged_proxy(service, proxy))
}

/// Returns the Service and the port that a call of this address reaches, and the kind of the
/// address.
pub(crate) fn at<'e>(
    engine: &'e Engine<'_>,
    to: SocketAddr,
    protocol: IpProtocol,
) -> Option<(&'e Service, &'e ServicePort, Frontend)> {
    let is_node = engine.node_at(to.ip()).is_some();
    let family = Family::of(to.ip());
    engine.cluster.services.values().find_map(|service| {
        let frontend = if service.cluster_ips.contains(&to.ip()) {
            Some(Frontend::ClusterIp)
        } else if service.vips(family).any(|vip| vip == to.ip()) {
            Some(Frontend::Balancer)
        } else if service.load_balancer.iter().any(|entry| entry.ip == Some(to.ip())) {
            Some(Frontend::Proxied)
        } else if service.external_ips.contains(&to.ip()) {
            Some(Frontend::ExternalIp)
        } else {
            None
        };
        service.ports.iter().filter(|port| speaks(port.protocol, protocol)).find_map(|port| {
            let asked = frontend.filter(|_| port.port.number() == to.port());
            let node_port = port.node_port.map(|number| number.number());
            let at_node = (is_node && node_port == Some(to.port())).then_some(Frontend::NodePort);
            Some((service, port, asked.or(at_node)?))
        })
    })
}

fn speaks(protocol: Protocol, number: IpProtocol) -> bool {
    IpProtocol::from(protocol) == number
}

/// Returns the evidence for a proxy's handling of a Service, at connect time or for a packet on its
/// way.
pub(crate) fn evidence(service: &Service, proxy: ServiceProxy, at_connect: bool) -> Evidence {
    let (service, origin) = (Arc::new(service.object()), service.origin.clone());
    Evidence::ServiceProxy { proxy, at_connect, service, origin }
}

/// Returns the reason that a proxy's handling of a Service is not modelled.
pub(crate) fn unjudged_proxy(service: &Service, proxy: ServiceProxy) -> UnjudgedReason {
    let unknown = Unknown::ServiceProxy(proxy.to_string().into());
    UnjudgedReason::of(&service.object(), &service.origin, &unknown)
}
