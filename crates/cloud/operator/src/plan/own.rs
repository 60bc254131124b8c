//! The load balancers that the controllers made, assigned to objects by their tags.
//!
//! Tags are written when a load balancer is created. If two load balancers have the tags of one
//! object, or one has the tags of two, somebody changed them by hand or something failed; then the
//! object's status decides which one is the object's. If it does not, nothing is changed, and none
//! of them is deleted.

use std::collections::{BTreeMap, BTreeSet};

use super::status::{has_address, has_status, names};
use crate::environment::Environment;
use crate::observed::{Balancer, Observed};
use crate::tags;
use crate::wanted::OwnerNote;

/// The tags with the UID of the object that a load balancer was made for.
const UID_TAGS: [&str; 2] = [tags::SERVICE_UID, tags::INGRESS_UID];

/// The load balancers that the controllers made for this cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct Own<'o> {
    /// The load balancers by the key and the value of the tag with their object's UID.
    by_tag: BTreeMap<(&'static str, String), Vec<&'o Balancer>>,
    /// The ids of load balancers that have the tags of both a Service and an Ingress.
    contradicting: BTreeSet<&'o str>,
}

/// The result of searching for an object's load balancer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found<'o> {
    /// No load balancer was made for the object.
    Nothing,
    /// The object's load balancer.
    One(&'o Balancer),
    /// The object's load balancer cannot be determined.
    Unclear,
}

impl<'o> Own<'o> {
    pub(super) fn of(observed: &'o Observed, environment: &Environment) -> Self {
        let mut own = Self::default();
        for found in observed.balancers.values().filter(|found| is_of_cluster(found, environment)) {
            let stated = UID_TAGS.iter().filter_map(|key| Some((*key, found.tags.get(*key)?)));
            for (key, uid) in stated.clone() {
                own.by_tag.entry((key, uid.clone())).or_default().push(found);
            }
            if stated.count() > 1 {
                own.contradicting.insert(&found.id);
            }
        }
        own
    }

    /// Finds the load balancer of an object.
    pub(super) fn of_object(&self, owner: &OwnerNote, environment: &Environment) -> Found<'o> {
        let all = self.with_tags_of(owner);
        match all {
            [] => Found::Nothing,
            [only] if !self.contradicting.contains(only.id.as_str()) => Found::One(only),
            several => {
                let mut named =
                    several.iter().filter(|found| has_status(environment, &owner.object, found));
                match (named.next(), named.next()) {
                    (Some(found), None) => Found::One(found),
                    _ => Found::Unclear,
                }
            }
        }
    }

    /// Returns the load balancers that have the tags of an object.
    pub(super) fn with_tags_of(&self, owner: &OwnerNote) -> &[&'o Balancer] {
        let key = if owner.is_ingress { tags::INGRESS_UID } else { tags::SERVICE_UID };
        self.by_tag.get(&(key, owner.uid.clone())).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns why a load balancer must not be deleted although no object with its tags wants it,
    /// as the beginning of an event's message.
    pub(super) fn keeps(&self, found: &Balancer, environment: &Environment) -> Option<String> {
        let id = &found.id;
        if self.contradicting.contains(id.as_str()) {
            return Some(format!("{id} has the tags of a Service and of an Ingress"));
        }
        let uids: BTreeSet<&String> = uids(found).collect();
        for (object, status) in &environment.statuses {
            let is_own = uids.contains(&environment.uid(object));
            if !is_own && !status.is_leaving && names(status, found) {
                return Some(format!("the status of {object} names {id}"));
            }
        }
        let alike: Vec<&Balancer> = UID_TAGS
            .iter()
            .filter_map(|key| self.by_tag.get(&(*key, found.tags.get(*key)?.clone())))
            .flatten()
            .copied()
            .collect();
        let others: Vec<&str> =
            alike.iter().map(|other| other.id.as_str()).filter(|other| other != id).collect();
        (!others.is_empty()).then(|| format!("{id} has the same tags as {}", others.join(", ")))
    }

    /// Returns the load balancer that an object's status names although its tags are another
    /// object's.
    pub(super) fn named_by(
        owner: &OwnerNote,
        observed: &'o Observed,
        environment: &Environment,
    ) -> Option<&'o Balancer> {
        let status = environment.statuses.get(&owner.object)?;
        let found = observed.balancers.get(status.balancer.as_ref()?)?;
        let has_tags = uids(found).next().is_some();
        (has_tags && is_of_cluster(found, environment) && has_address(status, found))
            .then_some(found)
    }
}

/// Returns the UIDs in a load balancer's tags.
pub(super) fn uids(found: &Balancer) -> impl Iterator<Item = &String> {
    UID_TAGS.iter().filter_map(|key| found.tags.get(*key))
}

/// Returns whether the controllers made a load balancer for this cluster.
pub(super) fn is_of_cluster(found: &Balancer, environment: &Environment) -> bool {
    found.is_own() && found.has(tags::CLUSTER, &environment.cluster)
}
