//! The addresses of objects.

use std::net::IpAddr;

use uturn_model::Service;

/// Returns all addresses of a Service.
pub(crate) fn of_service(service: &Service) -> impl Iterator<Item = IpAddr> + '_ {
    let external = service.cluster_ips.iter().chain(&service.external_ips).copied();
    external.chain(service.load_balancer.iter().filter_map(|entry| entry.ip))
}
