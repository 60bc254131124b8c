//! Targets of the other family: a load balancer may have an IPv6 address although nodes and pods
//! have only IPv4 addresses, or the reverse.

use std::net::IpAddr;

use uturn_model::Family;
use uturn_model::lb::{BehaviourAssumption, Delivery, Listener, Rule, Source};

use crate::cloud::own_address;

/// Returns the listeners of an address. A rule has targets of the address's family if there are
/// any, otherwise those of the other family, if its load balancer can reach them.
pub(crate) fn with_targets(
    address: IpAddr,
    listeners: impl Fn(Family) -> Vec<Listener>,
) -> Vec<Listener> {
    let own = Family::of(address);
    let mut all = listeners(own);
    let lacks_targets = |listener: &Listener| {
        may_have_others(listener) && listener.rules.iter().any(|rule| rule.targets.is_empty())
    };
    if !all.iter().any(lacks_targets) {
        return all;
    }
    let mut others = listeners(own.other());
    others.retain(may_have_others);
    for listener in all.iter_mut().filter(|listener| may_have_others(listener)) {
        let is_same =
            |other: &&Listener| other.port == listener.port && other.protocol == listener.protocol;
        let Some(other) = others.iter().find(is_same) else { continue };
        take_targets(listener, other, own);
    }
    all
}

/// Adds the rules of a listener to another one on the same port. The profile of the first owner
/// applies, except for the source towards targets of the other family, which rules of any owner may
/// set.
pub(crate) fn add_rules(there: &mut Listener, listener: Listener) {
    let (own, new) = (&mut there.profile, listener.profile);
    if own.source_of_other_family.is_none() && new.source_of_other_family.is_some() {
        own.source_of_other_family = new.source_of_other_family;
        own.assumption = own.assumption.take().or(new.assumption);
    }
    there.rules.extend(listener.rules);
}

/// Returns whether a listener can have targets of the other family. One that forwards packets
/// unchanged cannot reach them.
fn may_have_others(listener: &Listener) -> bool {
    listener.profile.delivery == Delivery::ToTarget
}

/// Gives each rule without targets the targets of the same rule of the other family.
fn take_targets(listener: &mut Listener, other: &Listener, own: Family) {
    let mut took = false;
    for rule in listener.rules.iter_mut().filter(|rule| rule.targets.is_empty()) {
        let is_same = |other: &&Rule| {
            other.owner == rule.owner
                && other.service == rule.service
                && (&other.host, &other.path) == (&rule.host, &rule.path)
        };
        let same = other.rules.iter().find(is_same);
        if let Some(same) = same.filter(|same| !same.targets.is_empty()) {
            rule.targets.clone_from(&same.targets);
            took = true;
        }
    }
    if !took {
        return;
    }
    listener.profile.source_of_other_family = Some(match other.profile.source {
        Source::Replaced(range) => range,
        Source::Kept => own_address(own.other()),
    });
    let connects = listener.makes_connections() && other.profile.source != Source::Kept;
    if !connects && listener.profile.assumption.is_none() {
        let taken = "it translates between IPv4 and IPv6, and replaces the client's address";
        let because = "no target has an address of the family that clients call";
        listener.profile.assumption = Some(BehaviourAssumption::new(taken, because));
    }
}
