//! Classic Load Balancers: proxies in front of node ports, made by the in-tree controller.

use uturn_model::lb::{ListenerProtocol, ProxyVersion};
use uturn_model::service::ServicePort;
use uturn_model::{Family, Node, Protocol, Service};

use super::annotations::{
    BACKEND_PROTOCOL, INTERNAL, PROXY_PROTOCOL, SECURITY_GROUPS, ends_tls, get, has_target_labels,
};
use crate::cloud::StatusEntry;
use crate::cloud::product::{PortPlan, Product, SourceRanges, proxying};

pub(super) const NAME: &str = "AWS Classic Load Balancer";

/// Classic Load Balancers.
pub(super) struct Classic;

impl Product for Classic {
    fn name(&self) -> &'static str {
        NAME
    }

    fn writes(&self, _: &Service) -> StatusEntry {
        StatusEntry::Name
    }

    fn is_private(&self, service: &Service) -> Option<bool> {
        Some(is_internal(service))
    }

    fn takes_node(&self, service: &Service, node: &Node) -> bool {
        has_target_labels(service, node)
    }

    /// The name of a load balancer leads to its interfaces in the subnets, from which it sends.
    fn sends_from_its_address(&self) -> bool {
        true
    }

    fn opens_groups_of_nodes(&self, service: &Service) -> bool {
        get(service, SECURITY_GROUPS).is_none()
    }

    fn security_groups<'s>(&self, service: &'s Service) -> Option<&'s str> {
        get(service, SECURITY_GROUPS)
    }

    /// The controller writes the source ranges into the load balancer's security group.
    fn source_ranges(&self, service: &Service) -> SourceRanges {
        match get(service, SECURITY_GROUPS) {
            Some(_) => SourceRanges::Ignored,
            None => SourceRanges::Applied,
        }
    }

    fn port(&self, service: &Service, port: &ServicePort, family: Family) -> Option<PortPlan> {
        if port.protocol != Protocol::Tcp {
            return None;
        }
        let ends_tls = ends_tls(service, port.port.number(), port.name.as_deref());
        let is_http = matches!(get(service, BACKEND_PROTOCOL), Some("http" | "https"));
        let protocol = match (is_http, ends_tls) {
            (true, true) => ListenerProtocol::Https,
            (true, false) => ListenerProtocol::Http,
            (false, true) => ListenerProtocol::TcpSsl,
            (false, false) => ListenerProtocol::Tcp,
        };
        let mut plan = proxying(NAME, service, protocol, family);
        plan.profile.target_tls =
            Some(matches!(get(service, BACKEND_PROTOCOL), Some("https" | "ssl")));
        plan.profile.proxy_header =
            (get(service, PROXY_PROTOCOL) == Some("*")).then_some(ProxyVersion::V1);
        Some(plan)
    }
}

/// Returns whether the in-tree controller is asked for an internal load balancer. An older value of
/// the annotation is an address range, which counts as yes.
pub(super) fn is_internal(service: &Service) -> bool {
    get(service, INTERNAL).is_some_and(|value| !matches!(value, "" | "false"))
}
