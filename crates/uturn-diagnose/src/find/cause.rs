//! The object that causes several findings, such as a wrong security group or a node: it is
//! reported once, however many targets do not answer because of it.

use uturn_kubeproxy::chain_names;
use uturn_model::{Evidence, Mechanism, ObjectKind, ObjectRef, Place, Route};

use crate::evidence::of_route;

/// Whether the cause of a mechanism is another object than the target.
pub(crate) fn is_shared(mechanism: Mechanism) -> bool {
    matches!(
        mechanism,
        Mechanism::SecurityGroup
            | Mechanism::Firewall
            | Mechanism::NoRoute
            | Mechanism::CrossNode
            | Mechanism::NoBandwidth
            | Mechanism::RuleMissing
            | Mechanism::NameUnresolved
    )
}

/// The object at fault. Returns `None` if the end of the route does not show it.
pub(crate) fn of(route: &Route) -> Option<ObjectRef> {
    if route.mechanisms.contains(&Mechanism::RuleMissing) {
        return route.hops.iter().find_map(|hop| match &hop.place {
            Place::Node(name) => Some(ObjectRef::global(ObjectKind::Node, name.as_str())),
            _ => None,
        });
    }
    let last = of_route(route).pop()?;
    match (&last.by, &last.place) {
        (Evidence::SecurityGroups { names, .. }, _) => {
            Some(ObjectRef::global(ObjectKind::SecurityGroup, names.join(", ")))
        }
        // The Service itself says whom it lets in.
        (by, _) if is_of_source_ranges(by) => None,
        (Evidence::Object { object, .. }, _) if object.kind == ObjectKind::Node => {
            Some((**object).clone())
        }
        (_, Some(Place::Node(node))) => Some(ObjectRef::global(ObjectKind::Node, node.as_str())),
        _ => None,
    }
}

/// Whether a Service asks for what stops a packet: its source ranges, where kube-proxy or the load
/// balancer applies them.
pub(crate) fn is_asked_for(route: &Route) -> bool {
    of_route(route).pop().is_some_and(|last| match &last.by {
        Evidence::Object { object, .. } => {
            object.kind == ObjectKind::Service && route.mechanisms.contains(&Mechanism::Firewall)
        }
        by => is_of_source_ranges(by),
    })
}

/// Whether a rule is kube-proxy's for `spec.loadBalancerSourceRanges`.
fn is_of_source_ranges(by: &Evidence) -> bool {
    match by {
        Evidence::Iptables { chain, .. } => chain_names::is_of_source_ranges(chain),
        Evidence::Nftables { rule, .. } => chain_names::is_rule_of_source_ranges(rule),
        _ => false,
    }
}
