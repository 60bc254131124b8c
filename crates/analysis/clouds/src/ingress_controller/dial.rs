//! The endpoints to which the pods of a controller may connect, and the status of a request if none
//! of them answers.

use std::time::Duration;

use uturn_model::controller::{Aliases, ControllerBehaviour};
use uturn_model::lb::{Target, TargetKind};
use uturn_model::service::ServiceKind;
use uturn_model::{Cluster, Family, NamespacedName, Service};

use super::{BackendRef, ControllerRule, RuleBackend};
use crate::targets;

/// The possible targets of connections for a backend of a rule.
#[derive(Clone, Debug, PartialEq)]
pub enum Dialled<'c> {
    /// The endpoints, or the cluster IP, of this Service.
    Targets(&'c Service, Vec<Target>),
    /// No target: the Service or its port does not exist.
    Missing(NamespacedName),
    /// No target: the Service is of type ExternalName, and the controller takes none of these.
    AliasRefused(NamespacedName),
    /// Unknown targets: those of the external name of this Service.
    Alias(&'c Service),
    /// No target: no ReferenceGrant allows the rule to refer to this Service.
    NotGranted(NamespacedName),
    /// Unknown targets: it is not known whether a ReferenceGrant allows the rule to refer to this
    /// Service.
    GrantUnknown(NamespacedName),
    /// Unknown targets: the backend is not a Service.
    Unknown,
}

/// Returns the targets to which a controller's pods may connect for a backend of a rule, from
/// addresses of these families.
pub fn dialled<'c>(
    cluster: &'c Cluster,
    rule: &ControllerRule,
    backend: &RuleBackend,
    families: &[Family],
) -> Dialled<'c> {
    let (name, port) = match &backend.to {
        BackendRef::Service(name, port) => (name, port),
        BackendRef::NotGranted(name) => return Dialled::NotGranted(name.clone()),
        BackendRef::GrantUnknown(name) => return Dialled::GrantUnknown(name.clone()),
        BackendRef::Other => return Dialled::Unknown,
    };
    let Some(service) = cluster.services.get(name) else { return Dialled::Missing(name.clone()) };
    if matches!(service.kind, ServiceKind::ExternalName(_)) {
        // A route of the Gateway API may not lead to an alias, but some controllers let it.
        let is_route = rule.ports.is_some();
        let has_port = service.port_named(port).is_some();
        return match rule.behaviour.aliases {
            Aliases::Dropped if !is_route => Dialled::AliasRefused(name.clone()),
            Aliases::FollowedByPort if !is_route && !has_port => Dialled::Missing(name.clone()),
            _ => Dialled::Alias(service),
        };
    }
    let Some(port) = service.port_named(port) else { return Dialled::Missing(name.clone()) };
    let usual = families.iter().copied().find(|family| {
        let has_slice = cluster.slices(name).iter().any(|slice| slice.family == *family);
        service.cluster_ip(*family).is_some() || has_slice
    });
    let Some(family) = usual else { return Dialled::Targets(service, Vec::new()) };
    let own = service.cluster_ip(family).filter(|_| rule.behaviour.dials_services);
    let all = match own {
        Some(ip) => vec![Target {
            address: (ip, port.port.number()).into(),
            weight: 1,
            kind: TargetKind::Pod { pod: None, node: None },
        }],
        None => {
            targets::pods(cluster, service, port, family, |endpoint| endpoint.ready.then_some(1))
        }
    };
    Dialled::Targets(service, all)
}

/// The cause for which a connection attempt to an endpoint failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The endpoint refused the connection.
    Refused,
    /// The endpoint did not answer in time.
    TimedOut,
}

/// Returns the status of a request after every attempt failed, and the total time of the attempts
/// that timed out. Returns `None` if that time is not known.
pub fn given_up(
    behaviour: &ControllerBehaviour,
    last: Failure,
    timeouts: u32,
) -> Option<(u16, Duration)> {
    let code = match last {
        Failure::Refused => behaviour.refused,
        Failure::TimedOut => behaviour.timed_out,
    };
    match timeouts {
        0 => Some((code, Duration::ZERO)),
        _ => Some((code, behaviour.connect_timeout? * timeouts)),
    }
}
