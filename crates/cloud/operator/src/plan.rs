//! The calls that turn the observed state into the wanted one.
//!
//! A plan has a list of calls for each load balancer; those of different load balancers are
//! independent. A plan is complete: it also has the calls on objects that it creates, by keys in
//! place of the ids that are not known yet. After a plan was stopped, a new one is made from the
//! state at that time.
//!
//! The order on a load balancer:
//!
//! 1. it is created, and its own settings are changed;
//! 2. redirects, listeners and rules that are not wanted are removed, so that their ports are free;
//! 3. listeners, domains and rules that stay are changed;
//! 4. listeners and rules are created, and targets bound;
//! 5. weights change, and redirects are created;
//! 6. targets that are not wanted are removed, after the others were bound.

mod adopt;
mod applied;
mod balancer;
pub mod call;
mod changes;
mod concerns;
mod own;
mod records;
mod status;
mod text;
mod unserved;

use std::collections::{BTreeMap, BTreeSet};

use uturn_cloud_api::unserved::Unserved;
use uturn_model::ObjectRef;

pub use self::adopt::{adopt, suppose};
pub use self::applied::apply;
pub use self::call::{Call, ListenerRef, RuleRef};
use self::changes::Scene;
use self::own::{Found, Own, is_of_cluster};
use crate::clb::ListenerKey;
use crate::environment::Environment;
use crate::event::Event;
use crate::ledger::Record;
use crate::observed::{self, Observed};
use crate::tags;
use crate::wanted::{self, OwnerNote, Place, Wanted, Wish};

/// The calls that turn the observed state into the wanted one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The calls for each load balancer that needs any.
    pub balancers: Vec<BalancerPlan>,
    /// The events for users.
    pub events: Vec<Event>,
    /// The objects whose wanted state the cloud has, but does not serve.
    pub unserved: BTreeMap<ObjectRef, Unserved>,
    /// The records that have to be saved before the calls are made, for load balancers whose record
    /// changes.
    pub records: BTreeMap<String, Record>,
}

/// The code for an object whose load balancer cannot be identified.
pub const UNCLEAR: &str = "E9003";
/// The code for a load balancer that is kept, since more than one object may use it.
pub const KEPT: &str = "W9003";

/// The calls for one load balancer.
#[derive(Clone, Debug, PartialEq)]
pub struct BalancerPlan {
    /// The objects that the load balancer is for.
    pub owners: Vec<ObjectRef>,
    /// The id; `None` if the first call creates the load balancer.
    pub id: Option<String>,
    /// The calls, in order.
    pub calls: Vec<Call>,
    /// The objects that each call is for; empty if all calls are for the owners.
    concerns: Vec<BTreeSet<ObjectRef>>,
}

impl BalancerPlan {
    /// Returns the objects that the call at this place is for. If it fails, their other calls are
    /// not made.
    pub fn objects_of(&self, place: usize) -> BTreeSet<&ObjectRef> {
        match self.concerns.get(place) {
            Some(objects) => objects.iter().collect(),
            None => self.owners.iter().collect(),
        }
    }

    /// Returns whether the calls for one object are made even if those for another one fail.
    pub(crate) fn is_shared(&self) -> bool {
        !self.concerns.is_empty()
    }
}

impl Plan {
    /// Returns whether the plan has no calls.
    pub fn is_empty(&self) -> bool {
        self.balancers.is_empty()
    }

    /// Returns whether a call is left that is for none of these objects.
    pub fn can_go_on_without(&self, blocked: &BTreeSet<ObjectRef>) -> bool {
        let may_be = |balancer: &BalancerPlan, place: usize| {
            balancer.objects_of(place).iter().all(|object| !blocked.contains(*object))
        };
        self.balancers
            .iter()
            .any(|balancer| (0..balancer.calls.len()).any(|place| may_be(balancer, place)))
    }

    /// Returns the number of calls.
    pub fn len(&self) -> usize {
        self.balancers.iter().map(|balancer| balancer.calls.len()).sum()
    }
}

/// Returns the calls that turn `observed` into `wanted`.
pub fn plan(wanted: &Wanted, observed: &Observed, environment: &Environment) -> Plan {
    let mut planner = Planner {
        observed,
        environment,
        plan: Plan::default(),
        own: Own::of(observed, environment),
        used: BTreeSet::new(),
        left: wanted.untouched.clone(),
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
    observed: &'a Observed,
    environment: &'a Environment,
    plan: Plan,
    /// The load balancers that were made for this cluster.
    own: Own<'a>,
    /// The load balancers that the plan has handled already.
    used: BTreeSet<String>,
    /// The UIDs of objects whose load balancers stay as they are.
    left: BTreeSet<String>,
}

impl<'a> Planner<'a> {
    /// Plans the calls for a load balancer that the controllers make.
    fn own(&mut self, wanted: &wanted::Balancer, request: &call::Creation) {
        let Some(owner) = wanted.owners.first() else { return };
        self.used.extend(self.own.with_tags_of(owner).iter().map(|found| found.id.clone()));
        let found = match self.own.of_object(owner, self.environment) {
            Found::Nothing => {
                if let Some(named) = Own::named_by(owner, self.observed, self.environment) {
                    let message = format!(
                        "its status names {}, which has the tags of another object: nothing is \
                         changed",
                        named.id
                    );
                    self.used.insert(named.id.clone());
                    return self.tell(owner, UNCLEAR, message);
                }
                self.created_before(owner)
            }
            Found::One(found) => Some(found),
            Found::Unclear => {
                let message = format!(
                    "{} made for it according to the tags, and its status does not name one of \
                     them: nothing is changed",
                    self.alike(owner, None)
                );
                return self.tell(owner, UNCLEAR, message);
            }
        };
        if let Some(found) = found {
            self.used.insert(found.id.clone());
            if self.own.with_tags_of(owner).iter().any(|other| other.id != found.id) {
                let message = format!(
                    "{} left alone: its tags are this object's too",
                    self.alike(owner, Some(found))
                );
                self.tell(owner, KEPT, message);
            }
            if let Some(why) = unlike(request, found) {
                let message =
                    format!("{why}; change the Service's type to another one, and then back");
                self.refuse(owner, message);
                return;
            }
        }
        let mut calls = balancer::calls(found, &wanted.settings, Some(request));
        let left = BTreeSet::new();
        let scene = Scene { found, wanted: &wanted.listeners, record: None, left: &left };
        calls.extend(scene.calls(&scene.sort(&mut self.plan.events)));
        unserved::add(found, &wanted.listeners, |_| false, &mut self.plan);
        self.add(wanted, found, calls);
    }

    /// Returns the ids of the load balancers with the tags of an object, without `but`, as the
    /// beginning of a sentence.
    fn alike(&self, owner: &OwnerNote, but: Option<&observed::Balancer>) -> String {
        let all = self.own.with_tags_of(owner).iter();
        let others = all.filter(|found| but.is_none_or(|but| but.id != found.id));
        let ids: Vec<&str> = others.map(|found| found.id.as_str()).collect();
        format!("{} {}", ids.join(", "), if ids.len() == 1 { "is" } else { "are" })
    }

    /// Plans the calls for a load balancer of the user's.
    fn existing(&mut self, wanted: &wanted::Balancer, id: &str) {
        let found = self.observed.balancers.get(id);
        let mut frozen = BTreeSet::new();
        for owner in &wanted.owners {
            let fault = match found {
                None => {
                    Some((("E4011", "E4018"), format!("the load balancer {id} does not exist")))
                }
                Some(found) => self.fault_of_existing(owner, found, wanted),
            };
            let Some(((service, ingress), message)) = fault else { continue };
            self.tell(owner, if owner.is_ingress { ingress } else { service }, message);
            frozen.insert(owner.object.clone());
            self.left.insert(owner.uid.clone());
            self.used.extend(self.own.with_tags_of(owner).iter().map(|found| found.id.clone()));
        }
        let Some(found) = found else { return };
        let is_frozen = |owner: &OwnerNote| frozen.contains(&owner.object);
        if wanted.owners.iter().all(is_frozen) {
            // If no owner may use it, it has nothing of theirs that could be changed.
            return;
        }
        self.used.insert(id.to_owned());
        let none = Record::default();
        let environment = self.environment;
        let record = environment.ledger.of(id).unwrap_or(&none);
        let empty = BTreeMap::new();
        let bare =
            Scene { found: Some(found), wanted: &empty, record: Some(record), left: &self.left };
        let listeners: BTreeMap<ListenerKey, Wish> =
            changes::beside(&wanted.listeners, &bare, &frozen);
        let scene = Scene { wanted: &listeners, ..bare };
        let mut events = Vec::new();
        let sorted = scene.sort(&mut events);
        let next = records::next(record, wanted, found, &sorted, &self.left, environment);
        let is_owners = wanted.settings_of == next.owner
            && next.owner.as_ref().is_some_and(|owner| !self.left.contains(&owner.uid));
        let mut calls = if is_owners {
            balancer::calls(Some(found), &wanted.settings, None)
        } else {
            Vec::new()
        };
        calls.extend(scene.calls(&sorted));
        self.plan.events.extend(events);
        unserved::add(Some(found), &listeners, |object| frozen.contains(object), &mut self.plan);
        self.record(id, next);
        self.add(wanted, Some(found), calls);
    }

    /// Adds a record to the plan, if it differs from the present one.
    fn record(&mut self, id: &str, next: Record) {
        let none = Record::default();
        if *self.environment.ledger.of(id).unwrap_or(&none) != next {
            self.plan.records.insert(id.to_owned(), next);
        }
    }

    /// Returns why an object may not use a load balancer of the user's, with the codes for a
    /// Service and for an Ingress.
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
        if !self.own.with_tags_of(owner).is_empty() {
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

    /// Returns the load balancer that has an address of an object's status, if the controllers made
    /// it for this cluster and somebody removed the tag with the UID.
    fn created_before(&self, owner: &OwnerNote) -> Option<&'a observed::Balancer> {
        let mut found = self.observed.balancers.values().filter(|found| {
            is_of_cluster(found, self.environment)
                && own::uids(found).next().is_none()
                && status::has_status(self.environment, &owner.object, found)
        });
        found.next().filter(|_| found.next().is_none())
    }

    fn refuse(&mut self, owner: &OwnerNote, message: String) {
        self.tell(owner, if owner.is_ingress { "E4024" } else { "E4005" }, message);
    }

    fn tell(&mut self, owner: &OwnerNote, code: &'static str, message: String) {
        self.plan.events.push(Event::new(&owner.object, code, message));
    }

    fn add(
        &mut self,
        wanted: &wanted::Balancer,
        found: Option<&observed::Balancer>,
        calls: Vec<Call>,
    ) {
        let owners = wanted.owners.iter().map(|owner| owner.object.clone()).collect();
        let concerns = concerns::of(&calls, wanted, found);
        let id = found.map(|found| found.id.clone());
        self.plan.balancers.push(BalancerPlan { owners, id, calls, concerns });
    }

    /// Plans the removal of load balancers that were made for objects that are gone, and of
    /// listeners of such objects on the user's load balancers. These calls come first, because they
    /// free names and quota.
    fn removed(&mut self) -> Vec<BalancerPlan> {
        let mut removed = Vec::new();
        let observed = self.observed;
        for found in observed.balancers.values() {
            if self.used.contains(&found.id) {
                continue;
            }
            let calls = if found.is_own() { self.removed_own(found) } else { self.released(found) };
            let id = Some(found.id.clone());
            let (owners, concerns) = (Vec::new(), Vec::new());
            removed.push(BalancerPlan { owners, id, calls, concerns });
        }
        // The record of a load balancer that no longer exists is removed.
        let environment = self.environment;
        for id in environment.ledger.ids().filter(|id| !observed.balancers.contains_key(*id)) {
            self.record(id, Record::default());
        }
        removed
    }

    fn removed_own(&mut self, found: &observed::Balancer) -> Vec<Call> {
        let is_left = own::uids(found).any(|uid| self.left.contains(uid));
        if is_left || !is_of_cluster(found, self.environment) {
            return Vec::new();
        }
        if let Some(why) = self.own.keeps(found, self.environment) {
            let statuses = self.environment.statuses.iter();
            let with_uid = |object: &ObjectRef| {
                let uid = self.environment.uid(object);
                own::uids(found).any(|own| *own == uid)
            };
            let concerned = statuses
                .filter(|(object, status)| with_uid(object) || status::names(status, found));
            let events: Vec<Event> = concerned
                .map(|(object, _)| Event::new(object, KEPT, format!("{why}: it is kept")))
                .collect();
            self.plan.events.extend(events);
            return Vec::new();
        }
        // A load balancer with a listener of the user's is kept.
        if found.foreign.is_empty() && !found.has(tags::LIFECYCLE_OWNER, tags::USER) {
            vec![Call::DeleteBalancer]
        } else {
            changes::clear(found, None, &self.left)
        }
    }

    /// Returns the calls that remove the listeners of objects that are gone from a load balancer of
    /// the user's.
    fn released(&mut self, found: &observed::Balancer) -> Vec<Call> {
        let environment = self.environment;
        let Some(record) = environment.ledger.of(&found.id) else { return Vec::new() };
        let next = records::of_left(record, found, &self.left);
        self.record(&found.id, next);
        changes::clear(found, Some(record), &self.left)
    }
}

/// Returns the existing load balancer for a wanted one.
pub fn balancer_of<'o>(
    wanted: &wanted::Balancer,
    observed: &'o Observed,
    environment: &Environment,
) -> Option<&'o observed::Balancer> {
    let owner = match &wanted.place {
        Place::Existing(id) => return observed.balancers.get(id),
        Place::Own(_) => wanted.owners.first()?,
    };
    match Own::of(observed, environment).of_object(owner, environment) {
        Found::One(found) => Some(found),
        Found::Nothing | Found::Unclear => None,
    }
}

/// Returns which unchangeable property of a load balancer differs from the wanted one.
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
