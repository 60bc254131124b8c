//! Decides between routes of connections that are attached to the same listener for the same name:
//! only one of them gets the connections.

use uturn_model::{NamespacedName, ObjectRef, Port, Text, Unknown};

use super::Attached;
use crate::derive::unjudged::Gaps;

/// The key for which only one route can be served: a Gateway, one of its ports, and the name that
/// clients ask for, if any.
type RouteKey = (NamespacedName, Port, Option<Text>);

/// Assigns each key to the oldest of its routes. If the oldest is not known and the routes lead to
/// different backends, connections with this key are not judged.
pub(super) fn settle(attached: &mut Vec<Attached>, gaps: &mut Gaps) {
    for key in contested(attached) {
        let (gateway, port, _) = &key;
        let mut own: Vec<&mut Attached> =
            attached.iter_mut().filter(|known| route_keys(known).any(|own| own == key)).collect();
        own.sort_by(|a, b| age(a).cmp(&age(b)));
        let are_alike = own.iter().all(|other| other.route.rules == own[0].route.rules);
        let is_known = own.iter().all(|known| known.route.created.is_some());
        let lost = if are_alike || is_known {
            own.split_off(1)
        } else {
            let because = format!(
                "{} are attached to its port {port}, and which of them is the oldest is not given",
                joined(&own)
            );
            for route in &own {
                gaps.add(
                    object(route),
                    Unknown::Controller(format!("Gateway {gateway}").into()),
                    because.as_str().into(),
                    "give them with their metadata.creationTimestamp".into(),
                );
            }
            // The first route stays as a placeholder, so that the connections are not taken for
            // another route's.
            own[0].doubt = Some(because.into());
            own.split_off(1)
        };
        for route in lost {
            for listener in route.listeners.iter_mut().filter(|own| own.port == *port) {
                listener.hosts.retain(|host| *host != key.2);
            }
            route.listeners.retain(|listener| !listener.hosts.is_empty());
        }
    }
    attached.retain(|known| !known.listeners.is_empty());
}

/// Returns the keys that several routes have.
fn contested(attached: &[Attached]) -> Vec<RouteKey> {
    let mut all: Vec<RouteKey> = attached.iter().flat_map(route_keys).collect();
    all.sort();
    let mut contested: Vec<RouteKey> =
        all.windows(2).filter(|two| two[0] == two[1]).map(|two| two[0].clone()).collect();
    contested.dedup();
    contested
}

/// Iterates over the keys of a route of connections.
fn route_keys(attached: &Attached) -> impl Iterator<Item = RouteKey> {
    let listeners = if attached.route.kind.is_route_of_connections() {
        attached.listeners.as_slice()
    } else {
        &[]
    };
    listeners.iter().flat_map(|listener| {
        let name = attached.gateway.name.clone();
        listener.hosts.iter().map(move |host| (name.clone(), listener.port, host.clone()))
    })
}

/// Orders routes from the oldest to the newest, and routes of the same age by name.
fn age(attached: &Attached) -> (Option<&Text>, &NamespacedName) {
    (attached.route.created.as_ref(), &attached.route.name)
}

fn object(attached: &Attached) -> ObjectRef {
    ObjectRef::namespaced(attached.route.kind, &attached.route.name)
}

fn joined(all: &[&mut Attached]) -> String {
    let mut names: Vec<String> = all.iter().map(|one| object(one).to_string()).collect();
    names.sort();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.join(""),
    }
}
