//! Network Load Balancers. Two controllers make them: the one that is in the tree of Kubernetes'
//! cloud provider, with nodes as targets, and AWS's own, with nodes or pods.

use uturn_model::lb::{ListenerProtocol, ProxyVersion, Source};
use uturn_model::service::ServicePort;
use uturn_model::{Family, Protocol, Service};

use super::annotations::{
    ATTRIBUTES, CROSS_ZONE, PROXY_PROTOCOL, SCHEME, TARGET_GROUP_ATTRIBUTES, TARGET_TYPE, TYPE,
    ends_tls, get, switch,
};
use super::classic::is_internal;
use crate::cloud::product::{
    PortPlan, Product, Targets, check, passing, plain_protocol, question_by_policy, replaced,
};

pub(super) const NAME: &str = "AWS NLB";

/// Network Load Balancers.
pub(super) struct Nlb;

impl Product for Nlb {
    fn name(&self) -> &'static str {
        NAME
    }

    fn is_private(&self, service: &Service) -> Option<bool> {
        Some(match Controller::of(service) {
            Controller::InTree => is_internal(service),
            Controller::Own => match get(service, SCHEME) {
                Some(scheme) => scheme != "internet-facing",
                None => get(service, super::annotations::INTERNAL) != Some("false"),
            },
        })
    }

    fn serves_by_zone(&self, service: &Service) -> bool {
        let attribute = switch(service, ATTRIBUTES, "load_balancing.cross_zone.enabled");
        let annotated = get(service, CROSS_ZONE).map(|value| value == "true");
        !attribute.or(annotated).unwrap_or(false)
    }

    fn port(&self, service: &Service, port: &ServicePort, family: Family) -> Option<PortPlan> {
        let targets = match has_pod_targets(service) {
            true => Targets::Pods,
            false => Targets::Nodes,
        };
        let group = |attribute| switch(service, TARGET_GROUP_ATTRIBUTES, attribute);
        // Only TCP and TLS may change what is kept.
        let keeps = match (port.protocol, targets) {
            (Protocol::Udp, _) => true,
            (_, Targets::Pods) => group("preserve_client_ip.enabled").unwrap_or(false),
            _ => group("preserve_client_ip.enabled").unwrap_or(true),
        };
        let source = if keeps { Source::Kept } else { replaced(family) };
        let mut profile = passing(NAME, source);
        let annotated = get(service, PROXY_PROTOCOL) == Some("*");
        if group("proxy_protocol_v2.enabled").unwrap_or(annotated) {
            profile.proxy_header = Some(ProxyVersion::V2);
        }
        profile.health_check = Some(check(question_by_policy(service), (10, 6)));
        let tls = ends_tls(service, port.port.number(), port.name.as_deref());
        Some(PortPlan {
            protocol: match plain_protocol(port) {
                ListenerProtocol::Tcp if tls => ListenerProtocol::TcpSsl,
                plain => plain,
            },
            targets,
            profile,
        })
    }
}

/// The controllers that make Network Load Balancers.
#[derive(PartialEq, Eq)]
enum Controller {
    /// The one of Kubernetes' cloud provider.
    InTree,
    /// AWS's own.
    Own,
}

impl Controller {
    /// The one that makes the load balancer of a Service: AWS's own with a class, with a type
    /// of its own, or where only it reads what is asked.
    fn of(service: &Service) -> Self {
        let is_own = service.load_balancer_class.is_some()
            || matches!(get(service, TYPE), Some("external" | "nlb-ip"))
            || (get(service, TYPE).is_none() && get(service, TARGET_TYPE).is_some());
        if is_own { Self::Own } else { Self::InTree }
    }
}

/// Whether pods are the targets. The in-tree controller knows nodes only.
fn has_pod_targets(service: &Service) -> bool {
    Controller::of(service) == Controller::Own
        && (get(service, TARGET_TYPE) == Some("ip") || get(service, TYPE) == Some("nlb-ip"))
}
