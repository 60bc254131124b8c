//! Cures of faults that objects show without a call. Whether one works is seen in the edited
//! cluster: the fault is gone, there is no new one, and no call is worse.

mod announcing;
mod api_call;
mod backend;
mod check;
mod class;
mod family;
mod gateway;
mod host_port;
mod image_port;
mod open_end;
mod pending;
mod plain_backend;
mod route;
mod taken;
mod targets;
mod unlike_endpoints;

use std::net::IpAddr;

use uturn_model::{Cluster, Destination, Mechanism, ObjectKind, Service, ingress, mesh};

use super::{Case, Proposal, Subject, kube_proxy, relay};
use crate::flow_codes::names_host;
use crate::{Code, Finding};

/// Returns whether a family knows cures for faults with this code.
pub(crate) fn may_cure(code: Code) -> bool {
    matches!(
        code,
        Code::AddressTaken
            | Code::ApiServerCallFails
            | Code::BackendMissing
            | Code::CheckCannotPass
            | Code::GatewayOpensNothing
            | Code::HostPortOff
            | Code::IngressIgnored
            | Code::NoTargets
            | Code::NodeFirewall
            | Code::NoRoute
            | Code::OneFamily
            | Code::Pending
            | Code::ProxyNamedOther
            | Code::SecurityGroup
            | Code::WrongPort
    )
}

/// Returns what is known for a fault. For a call that fails, it is a guess that the fault is the
/// reason, unless a finding says so.
pub(super) fn propose(case: &Case<'_>, fault: &Finding) -> Vec<Proposal> {
    let made = match fault.code {
        Code::AddressTaken => taken::propose(case, fault),
        Code::ApiServerCallFails => api_call::propose(case, fault),
        Code::BackendMissing => backend::propose(case, fault),
        Code::CheckCannotPass => check::propose(case, fault),
        Code::GatewayOpensNothing => gateway::propose(case, fault),
        Code::HostPortOff => host_port::propose(case, fault),
        Code::IngressIgnored if fault.subject.kind.is_route() => route::propose(case, fault),
        Code::IngressIgnored => class::propose(case, fault),
        Code::NoTargets => announcing::propose(case, fault)
            .into_iter()
            .chain(targets::propose(case, fault))
            .collect(),
        Code::NodeFirewall => service_of(case, fault)
            .map_or_else(Vec::new, |service| relay::of_service(case, service)),
        Code::NoRoute | Code::SecurityGroup => open_end::propose(case, fault),
        Code::OneFamily => family::propose(case, fault),
        Code::Pending => pending::propose(case, fault),
        Code::ProxyNamedOther => kube_proxy::own_name(case),
        Code::WrongPort => image_port::propose(case, fault)
            .into_iter()
            .chain(plain_backend::propose(case, fault))
            .chain(unlike_endpoints::propose(case, fault))
            .collect(),
        _ => Vec::new(),
    };
    let is_found = case.is_of(fault);
    made.into_iter().map(|made| if is_found { made } else { made.trial() }).collect()
}

/// Returns whether a case is about a fault, or whether the fault may be why its call fails.
pub(super) fn is_of_case(case: &Case<'_>, fault: &Finding) -> bool {
    if case.is_of(fault) || matches!(case.subject, Subject::Object(..)) {
        return case.is_of(fault);
    }
    match fault.code {
        Code::BackendMissing | Code::NoTargets => {
            let ends = [Mechanism::NoEndpoint, Mechanism::NoCandidate, Mechanism::NoRuleForPath];
            ends.into_iter().any(|end| case.has(end)) && is_called(case, fault)
        }
        Code::CheckCannotPass => case.has(Mechanism::NoCandidate) && is_called(case, fault),
        Code::IngressIgnored => case.has(Mechanism::NoRuleForPath) && is_called(case, fault),
        Code::Pending => {
            let is_external = case.aim.is_external || !case.is_from_inside();
            is_external && is_called(case, fault) || asks_for_called(case, fault)
        }
        // Whoever takes the address or the port of a machine answers for its other calls.
        Code::AddressTaken | Code::HostPortOff => {
            let ends = [Mechanism::WrongPort, Mechanism::AddressTaken, Mechanism::HostPortOff];
            ends.into_iter().any(|end| case.has(end))
        }
        Code::GatewayOpensNothing => {
            let pods = case.service().map(|service| case.cluster().selected(service));
            let is_gateway = pods
                .is_some_and(|pods| pods.first().is_some_and(|pod| mesh::is_gateway(&pod.spec)));
            let is_for_host = || {
                case.walked()
                    .and_then(|flow| flow.to.host())
                    .is_some_and(|host| names_host(fault, host))
            };
            case.has(Mechanism::WrongPort) && is_gateway
                || case.has(Mechanism::NoRuleForPath) && is_for_host()
        }
        Code::WrongPort => case.has(Mechanism::WrongPort) && is_called(case, fault),
        Code::NoRoute => case.has(Mechanism::NoRoute) && is_called(case, fault),
        Code::NodeFirewall => case.has(Mechanism::Firewall) && is_called(case, fault),
        _ => false,
    }
}

/// Returns whether a call leads to the object of a fault.
fn is_called(case: &Case<'_>, fault: &Finding) -> bool {
    let name = fault.subject.namespaced_name();
    let is_service = || {
        fault.subject.kind == ObjectKind::Service
            && name.is_some()
            && (case.aim.service == name || case.called.service == name)
    };
    let is_owner = || case.owner() == Some(&fault.subject);
    is_service() || is_owner() || case.called.objects.contains(&fault.subject)
}

/// Returns whether a call leads to the address that the Service of a fault asks for.
fn asks_for_called(case: &Case<'_>, fault: &Finding) -> bool {
    let asked = service_of(case, fault).and_then(|service| service.asked_address);
    match case.walked().map(|flow| &flow.to) {
        Some(Destination::Address(at)) => asked == Some(at.ip()),
        Some(Destination::Url { host, .. } | Destination::Host(host, _)) => {
            asked.is_some() && host.parse().ok() == asked
        }
        _ => false,
    }
}

/// Returns the Service that a fault is about.
fn service_of<'c>(case: &Case<'c>, fault: &Finding) -> Option<&'c Service> {
    let name = fault.subject.namespaced_name();
    let name = name.filter(|_| fault.subject.kind == ObjectKind::Service)?;
    case.cluster().services.get(&name)
}

/// Returns the Ingress that a fault is about.
fn ingress_of<'c>(case: &Case<'c>, fault: &Finding) -> Option<&'c ingress::Ingress> {
    let name = fault.subject.namespaced_name();
    let name = name.filter(|_| fault.subject.kind == ObjectKind::Ingress)?;
    case.cluster().ingresses.get(&name)
}

/// The maximum number of addresses of a range that are tried.
const MAX_ADDRESSES: usize = 256;

/// Returns whether a Service has an address in its status.
fn is_of_service(cluster: &Cluster, ip: IpAddr) -> bool {
    let has = |service: &Service| service.load_balancer.iter().any(|entry| entry.ip == Some(ip));
    cluster.services.values().any(has)
}
