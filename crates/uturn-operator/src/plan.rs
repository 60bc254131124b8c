//! The calls that make what is there into what is wanted.
//!
//! A plan has a list of calls for each load balancer; those of different load balancers are
//! independent. It is whole: also the calls on what it creates are in it, by names for the ids
//! that are not known yet. A plan that was stopped after any call is made again from what is then
//! there.
//!
//! The order on a load balancer:
//!
//! 1. it is created, and its own settings are changed;
//! 2. redirects, listeners and rules that are not wanted go, so that their ports are free;
//! 3. listeners, domains and rules that stay are changed;
//! 4. listeners and rules are created, and targets bound;
//! 5. weights change, and redirects begin;
//! 6. targets that are not wanted go, when the others are there.

mod applied;
mod balancer;
pub mod call;
mod changes;
mod text;
mod unserved;

use std::collections::{BTreeMap, BTreeSet};

use uturn_cloud::unserved::Unserved;
use uturn_model::ObjectRef;

pub use self::applied::apply;
pub use self::call::{Call, ListenerRef, RuleRef};
use self::changes::{Frozen, Scene};
use crate::environment::Environment;
use crate::event::Event;
use crate::observed::{self, Observed};
use crate::tags;
use crate::wanted::{self, OwnerNote, Place, Wanted};

/// The tags with the UID of the object that a load balancer was made for.
const UID_TAGS: [&str; 2] = [tags::SERVICE_UID, tags::INGRESS_UID];

/// The calls that make what is there into what is wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The calls for each load balancer that needs any.
    pub balancers: Vec<BalancerPlan>,
    /// What users are told.
    pub events: Vec<Event>,
    /// The objects of which the cloud has what they want, and does not serve it.
    pub unserved: BTreeMap<ObjectRef, Unserved>,
}

/// The calls for one load balancer.
#[derive(Clone, Debug, PartialEq)]
pub struct BalancerPlan {
    /// The objects that it is for.
    pub owners: Vec<ObjectRef>,
    /// Its id; `None` if the first call creates it.
    pub id: Option<String>,
    /// The calls, in order.
    pub calls: Vec<Call>,
}

impl Plan {
    /// Whether nothing has to be called.
    pub fn is_empty(&self) -> bool {
        self.balancers.is_empty()
    }

    /// How many calls there are.
    pub fn len(&self) -> usize {
        self.balancers.iter().map(|balancer| balancer.calls.len()).sum()
    }
}

/// The calls that make `observed` into `wanted`.
pub fn plan(wanted: &Wanted, observed: &Observed, environment: &Environment) -> Plan {
    let mut planner = Planner {
        wanted,
        observed,
        environment,
        plan: Plan::default(),
        by_uid: by_uid(observed, environment),
        used: BTreeSet::new(),
    };
    planner.plan.events.clone_from(&wanted.events);
    for balancer in &wanted.balancers {
        match &balancer.place {
            Place::Own(request) => planner.own(balancer, request),
            Place::Existing(id) => planner.existing(balancer, id),
        }
    }
    let removed = planner.removed();
    planner.plan.balancers.splice(0..0, removed);
    planner.plan.balancers.retain(|balancer| !balancer.calls.is_empty());
    planner.plan.events.sort();
    planner.plan.events.dedup();
    planner.plan
}

struct Planner<'a> {
    wanted: &'a Wanted,
    observed: &'a Observed,
    environment: &'a Environment,
    plan: Plan,
    /// The load balancers that were made for this cluster, by the key and the value of the tag
    /// with their object's UID.
    by_uid: BTreeMap<(&'a str, &'a str), &'a observed::Balancer>,
    /// The load balancers that were dealt with.
    used: BTreeSet<String>,
}

impl<'a> Planner<'a> {
    /// A load balancer that the controllers make.
    fn own(&mut self, wanted: &wanted::Balancer, request: &call::Creation) {
        let Some(owner) = wanted.owners.first() else { return };
        let found = self.of_uid(owner);
        let found = found.or_else(|| self.created_before(owner));
        if let Some(found) = found {
            self.used.insert(found.id.clone());
            if let Some(why) = unlike(request, found) {
                let message = format!("{why}; change the Service's type first, and back then");
                self.refuse(owner, message);
                return;
            }
        }
        let calls = self.calls(found, wanted, Some(request), &Frozen::default());
        self.add(wanted, found.map(|found| found.id.clone()), calls);
    }

    /// A load balancer of the user's.
    fn existing(&mut self, wanted: &wanted::Balancer, id: &str) {
        let found = self.observed.balancers.get(id);
        let mut frozen = Frozen::default();
        for owner in &wanted.owners {
            let fault = match found {
                None => {
                    Some((("E4011", "E4018"), format!("the load balancer {id} does not exist")))
                }
                Some(found) => self.fault_of_existing(owner, found, wanted),
            };
            let (service, ingress) = match &fault {
                Some((codes, _)) => *codes,
                None => continue,
            };
            let code = if owner.is_ingress { ingress } else { service };
            let message = fault.map(|(_, message)| message).unwrap_or_default();
            self.plan.events.push(Event::new(&owner.object, code, message));
            frozen.owners.insert(owner.object.clone());
            if let Some(own) = self.of_uid(owner) {
                self.used.insert(own.id.clone());
            }
        }
        let Some(found) = found else { return };
        let is_frozen = |owner: &OwnerNote| frozen.owners.contains(&owner.object);
        if wanted.owners.iter().all(is_frozen) {
            // If none of them may use it, nothing of theirs is on it that could be kept in step.
            if !found.is_own() {
                self.used.insert(id.to_owned());
            }
            return;
        }
        self.used.insert(id.to_owned());
        let calls = self.calls(Some(found), wanted, None, &frozen);
        self.add(wanted, Some(id.to_owned()), calls);
    }

    /// Why an object may not use a load balancer of the user's, with the codes for a Service and
    /// for an Ingress.
    fn fault_of_existing(
        &self,
        owner: &OwnerNote,
        found: &observed::Balancer,
        wanted: &wanted::Balancer,
    ) -> Option<((&'static str, &'static str), String)> {
        let id = &found.id;
        if found.is_own() {
            let message = format!("{id} was made by the controllers, and cannot be used again");
            return Some((("E4012", "E4019"), message));
        }
        if found.tags.get(tags::CLUSTER).is_some_and(|other| *other != self.environment.cluster) {
            return Some((("E4013", "E4020"), format!("{id} is used by another cluster")));
        }
        if self.of_uid(owner).is_some() {
            let message = format!("a load balancer was made for it, so it cannot use {id}");
            return Some((("E4005", "E4024"), message));
        }
        if let Some(current) = owner.current.as_ref().filter(|current| *current != id) {
            let message = format!("it uses {current}, so it cannot use {id}");
            return Some((("E4005", "E4024"), message));
        }
        let is_there = wanted
            .listeners
            .iter()
            .any(|(key, wish)| wish.owner == owner.object && found.listeners.contains_key(key));
        if owner.is_ingress && !found.foreign.is_empty() && !is_there {
            return Some((("E4014", "E4021"), format!("{id} has listeners of the user's")));
        }
        None
    }

    /// The load balancer that was made for an object.
    fn of_uid(&self, owner: &OwnerNote) -> Option<&'a observed::Balancer> {
        let key = uid_tag(owner);
        self.by_uid.get(&(key, owner.uid.as_str())).copied()
    }

    /// The load balancer that an object's status names, if the controllers made it for the object
    /// and somebody took away the tag with the UID.
    fn created_before(&self, owner: &OwnerNote) -> Option<&'a observed::Balancer> {
        let found = self.observed.balancers.get(owner.current.as_ref()?)?;
        let has_uid = UID_TAGS.into_iter().any(|key| found.tags.contains_key(key));
        (is_of_cluster(found, self.environment) && !has_uid).then_some(found)
    }

    fn calls(
        &mut self,
        found: Option<&observed::Balancer>,
        wanted: &wanted::Balancer,
        creation: Option<&call::Creation>,
        frozen: &Frozen,
    ) -> Vec<Call> {
        let scene = Scene { found, wanted: &wanted.listeners, frozen };
        let mut calls = balancer::calls(found, &wanted.settings, creation);
        calls.extend(scene.calls(&mut self.plan.events));
        let is_frozen = |object: &ObjectRef| frozen.owners.contains(object);
        unserved::add(found, wanted, is_frozen, &mut self.plan);
        calls
    }

    fn refuse(&mut self, owner: &OwnerNote, message: String) {
        let code = if owner.is_ingress { "E4024" } else { "E4005" };
        self.plan.events.push(Event::new(&owner.object, code, message));
    }

    fn add(&mut self, wanted: &wanted::Balancer, id: Option<String>, calls: Vec<Call>) {
        let owners = wanted.owners.iter().map(|owner| owner.object.clone()).collect();
        self.plan.balancers.push(BalancerPlan { owners, id, calls });
    }

    /// Load balancers that were made for objects that are gone, and those of the user's on which
    /// objects that are gone had listeners. They go first: their names, and what they count of
    /// the quota, are free then.
    fn removed(&self) -> Vec<BalancerPlan> {
        let mut removed = Vec::new();
        for found in self.observed.balancers.values() {
            let is_untouched = self.wanted.untouched_existing.contains(&found.id)
                || UID_TAGS.into_iter().any(|key| {
                    let uid = found.tags.get(key);
                    uid.is_some_and(|uid| self.wanted.untouched.contains(uid))
                });
            if is_untouched || self.used.contains(&found.id) {
                continue;
            }
            let is_own = is_of_cluster(found, self.environment);
            let is_kept = found.has(tags::LIFECYCLE_OWNER, tags::USER);
            let is_released = self.environment.released.contains(&found.id) && !found.is_own();
            let calls = match () {
                () if is_own && found.foreign.is_empty() && !is_kept => {
                    vec![Call::DeleteBalancer]
                }
                // With a listener of the user's on it, it is kept.
                () if is_own || is_released => changes::clear(found),
                () => continue,
            };
            let id = Some(found.id.clone());
            removed.push(BalancerPlan { owners: Vec::new(), id, calls });
        }
        removed
    }
}

/// The load balancers that were made for this cluster, by the key and the value of the tag with
/// their object's UID. Of several, which only a hand makes, the first has the listeners.
fn by_uid<'o>(
    observed: &'o Observed,
    environment: &Environment,
) -> BTreeMap<(&'o str, &'o str), &'o observed::Balancer> {
    let mut found = BTreeMap::new();
    for balancer in observed.balancers.values().filter(|found| is_of_cluster(found, environment)) {
        for key in UID_TAGS {
            if let Some(uid) = balancer.tags.get(key) {
                found.entry((key, uid.as_str())).or_insert(balancer);
            }
        }
    }
    found
}

/// The load balancer that is there for one that is wanted.
pub fn balancer_of<'o>(
    wanted: &wanted::Balancer,
    observed: &'o Observed,
    environment: &Environment,
) -> Option<&'o observed::Balancer> {
    let owner = match &wanted.place {
        Place::Existing(id) => return observed.balancers.get(id),
        Place::Own(_) => wanted.owners.first()?,
    };
    let key = uid_tag(owner);
    let mut own = observed.balancers.values().filter(|found| is_of_cluster(found, environment));
    own.find(|found| found.has(key, &owner.uid))
}

/// The tag with an object's UID.
fn uid_tag(owner: &OwnerNote) -> &'static str {
    if owner.is_ingress { tags::INGRESS_UID } else { tags::SERVICE_UID }
}

fn is_of_cluster(found: &observed::Balancer, environment: &Environment) -> bool {
    found.is_own() && found.has(tags::CLUSTER, &environment.cluster)
}

/// What of a load balancer cannot be changed and is otherwise than it is wanted.
fn unlike(request: &call::Creation, found: &observed::Balancer) -> Option<String> {
    let id = &found.id;
    let is_public = request.load_balancer_type == "OPEN";
    if is_public != found.is_public {
        let there = if found.is_public { "public" } else { "private" };
        return Some(format!("the load balancer {id} is {there} and stays so"));
    }
    if !is_public && request.subnet_id != found.subnet {
        let subnet = found.subnet.as_deref().unwrap_or("no subnet");
        return Some(format!("the load balancer {id} is in {subnet} and stays there"));
    }
    None
}
