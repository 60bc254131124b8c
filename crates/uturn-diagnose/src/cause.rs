//! What several findings have in common: one wrong security group, one node. Who looks for
//! the cause wants it once, however many targets it keeps from answering.

use uturn_model::{Evidence, Mechanism, ObjectKind, ObjectRef, Place, Route};

use crate::evidence::of_route;

/// Whether a mechanism is somebody else's doing than the target's.
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

/// The object at fault, where a route's end tells.
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
        (Evidence::Object { object, .. }, _) if object.kind == ObjectKind::Node => {
            Some((**object).clone())
        }
        (_, Some(Place::Node(node))) => Some(ObjectRef::global(ObjectKind::Node, node.as_str())),
        _ => None,
    }
}
