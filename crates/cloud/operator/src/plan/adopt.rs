//! The first record of a load balancer without one: at the first start, after an upgrade from a
//! version that kept no records, and after its deletion.

use std::collections::BTreeSet;

use super::status::has_status;
use crate::clb::{Listener, ListenerKey, TargetKey};
use crate::environment::Environment;
use crate::ledger::{Held, Holder, Ledger, Record};
use crate::observed::{self, Observed};
use crate::wanted::{Claim, Wanted};

/// Returns the ledger with new records for load balancers that have none, or an incomplete one. A
/// listener is adopted for an object that wants its port, if the object's status has an address of
/// the load balancer and the listener has a target of the object's: listeners of other clusters
/// have other targets. Listeners without this proof are not adopted. Returns `None` if none is
/// adopted.
pub fn adopt(wanted: &Wanted, observed: &Observed, environment: &Environment) -> Option<Ledger> {
    take(wanted, observed, environment, |claim, found, listener, wish| {
        has_status(environment, &claim.note.object, found) && shares_targets(listener, wish)
    })
}

/// Returns records for a plan that is only shown: every listener of the controllers on a port that
/// an object wants is assumed to be this cluster's.
pub fn suppose(wanted: &Wanted, observed: &Observed, environment: &Environment) -> Option<Ledger> {
    take(wanted, observed, environment, |_, _, _, _| true)
}

fn take(
    wanted: &Wanted,
    observed: &Observed,
    environment: &Environment,
    is_proved: impl Fn(&Claim, &observed::Balancer, &Listener, &Listener) -> bool,
) -> Option<Ledger> {
    let mut ledger = environment.ledger.clone();
    for (id, claims) in &wanted.claims {
        let Some(found) = observed.balancers.get(id).filter(|found| !found.is_own()) else {
            continue;
        };
        let mut record = match ledger.of(id) {
            None => Record::default(),
            Some(record) if record.is_adopting => record.clone(),
            Some(_) => continue,
        };
        let mut is_user = BTreeSet::new();
        for (key, listener) in &found.listeners {
            if record.listeners.contains_key(key) {
                continue;
            }
            // The claims are in the order in which competing objects get ports.
            let holder = claims.iter().find(|claim| {
                let wish = claim.listeners.get(key);
                wish.is_some_and(|wish| is_proved(claim, found, &listener.listener, &wish.listener))
            });
            if let Some(claim) = holder {
                is_user.insert(claim.note.uid.clone());
                record.listeners.insert(*key, held(claim, claims, *key, listener));
            }
        }
        if record.owner.is_none() {
            let first = claims.iter().find(|claim| is_user.contains(&claim.note.uid));
            record.owner = first.map(Claim::holder);
        }
        record.is_adopting = wanted.untouched_existing.contains(id);
        ledger.set(id, record);
    }
    (ledger != environment.ledger).then_some(ledger)
}

/// Returns the record of an existing listener, with the owners of its rules that belong to other
/// Ingresses.
fn held(claim: &Claim, claims: &[Claim], key: ListenerKey, found: &observed::Listener) -> Held {
    let has = |claim: &&Claim, rule| {
        claim.listeners.get(&key).is_some_and(|wish| wish.listener.rules.contains_key(rule))
    };
    let of_others = found.rules.keys().filter(|rule| !has(&claim, rule));
    let of_others = of_others.filter_map(|rule| {
        let other =
            claims.iter().filter(|other| other.is_grouped).find(|other| has(other, rule))?;
        Some((rule.clone(), other.holder()))
    });
    Held {
        holder: Holder { object: claim.note.object.clone(), uid: claim.note.uid.clone() },
        id: Some(found.id.clone()),
        is_creating: false,
        rules: of_others.collect(),
    }
}

/// Returns whether an existing listener has a wanted target, or no target at all.
fn shares_targets(found: &Listener, wanted: &Listener) -> bool {
    let all = |listener: &Listener| -> BTreeSet<TargetKey> {
        listener.groups().into_values().flat_map(|targets| targets.keys().cloned()).collect()
    };
    let found_targets = all(found);
    found.protocol == wanted.protocol
        && (found_targets.is_empty() || !found_targets.is_disjoint(&all(wanted)))
}
