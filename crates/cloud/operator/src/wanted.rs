//! The state that the cluster's Services and Ingresses want of the API.
//!
//! `uturn-lb` decides which listeners, rules and targets they have. This module translates these
//! into the API's terms, and adds the settings of users.

mod balancer;
mod certificates;
mod claims;
mod faults;
mod listeners;
mod parameters;
mod settings;
mod unsupported;

use std::collections::{BTreeMap, BTreeSet};

use uturn_cloud_api::clb::CreateLoadBalancerRequest;
use uturn_clouds::cloud::{self, CloudModel, Owner, tke};
use uturn_clouds::controller;
use uturn_model::{Cluster, Ingress, Name, ObjectRef};

pub use self::certificates::{secrets, secrets_for};
pub use self::claims::{Claim, DENIED};
pub use self::listeners::key_of;
pub use self::settings::AFFINITY_NOTE;
pub use self::unsupported::{NOT_DONE, REFUSED};
use crate::clb::{BalancerSettings, Listener, ListenerKey, RuleKey};
use crate::environment::Environment;
use crate::event::Event;
use crate::ledger::Holder;

/// The state that a cluster wants of the API.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    /// The load balancers.
    pub balancers: Vec<Balancer>,
    /// The UIDs of objects whose load balancers are left as they are: objects whose controller is
    /// stopped, and objects whose requests cannot be fulfilled.
    pub untouched: BTreeSet<String>,
    /// The users' load balancers that such objects name.
    pub untouched_existing: BTreeSet<String>,
    /// The claims of objects on each of the user's load balancers, the oldest object first.
    pub claims: BTreeMap<String, Vec<Claim>>,
    /// The events for users.
    pub events: Vec<Event>,
}

/// A load balancer with the controllers' listeners.
#[derive(Clone, Debug, PartialEq)]
pub struct Balancer {
    /// The objects that the load balancer is for.
    pub owners: Vec<OwnerNote>,
    /// The load balancer that is meant.
    pub place: Place,
    /// The settings of the whole load balancer.
    pub settings: BalancerSettings,
    /// The object that the settings come from, on a load balancer of the user's.
    pub settings_of: Option<Holder>,
    /// The listeners.
    pub listeners: BTreeMap<ListenerKey, Wish>,
}

/// The properties of an object that a plan needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerNote {
    /// The object.
    pub object: ObjectRef,
    /// The UID of the object.
    pub uid: String,
    /// Whether the object is an Ingress.
    pub is_ingress: bool,
    /// The load balancer that the object uses now, as its controller recorded it in an annotation.
    pub current: Option<String>,
}

impl OwnerNote {
    /// Returns the object in the form of records.
    pub fn holder(&self) -> Holder {
        Holder { object: self.object.clone(), uid: self.uid.clone() }
    }
}

/// A listener that is wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Wish {
    /// The object that owns the listener.
    pub owner: ObjectRef,
    /// The listener.
    pub listener: Listener,
    /// Whether the listener cannot be created because something is missing. If the listener exists,
    /// its changes are applied nevertheless.
    pub is_blocked: bool,
    /// Whether the owner is left as it is: then only rules of other objects are added and changed.
    pub is_kept: bool,
    /// The owners of the rules that other Ingresses of the group have on the listener.
    pub rules_of: BTreeMap<RuleKey, ObjectRef>,
}

impl Wish {
    /// Returns whether an object owns the listener, or a rule on it.
    pub fn is_for(&self, object: &ObjectRef) -> bool {
        self.owner == *object || self.rules_of.values().any(|other| other == object)
    }

    /// Returns the namespace of the object that owns a rule, or without a rule the listener.
    /// Changes for one namespace must not fail together with another's, so that they are separate
    /// calls.
    pub(crate) fn namespace_of(&self, rule: Option<&RuleKey>) -> Option<&Name> {
        rule.map_or(&self.owner, |rule| self.owner_of(rule)).namespace.as_ref()
    }

    /// Returns the object that owns a rule.
    pub fn owner_of(&self, rule: &RuleKey) -> &ObjectRef {
        self.rules_of.get(rule).unwrap_or(&self.owner)
    }
}

/// The load balancer that is meant.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// A load balancer of the controllers, which is created if it does not exist.
    Own(Box<CreateLoadBalancerRequest>),
    /// The user's load balancer with this id.
    Existing(String),
}

/// The error for a cluster that is not known to be one of Tencent Cloud, so that these controllers
/// do not serve its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cluster is not known to be one of Tencent Cloud")]
pub struct OtherCloud;

/// Returns the state that a cluster wants of the API. Objects of other controllers are left out.
///
/// # Errors
///
/// Returns [`OtherCloud`] if the cluster is not known to be one of Tencent Cloud.
pub fn wanted(cluster: &Cluster, environment: &Environment) -> Result<Wanted, OtherCloud> {
    wanted_for(cluster, environment, |_| true)
}

/// Returns the state that some of a cluster's objects want of the API. Objects that name the same
/// load balancer must be passed together.
///
/// # Errors
///
/// Returns [`OtherCloud`] if the cluster is not known to be one of Tencent Cloud.
pub fn wanted_for(
    cluster: &Cluster,
    environment: &Environment,
    is_meant: impl Fn(&ObjectRef) -> bool,
) -> Result<Wanted, OtherCloud> {
    if cluster.provider.value.cloud() != Some(tke::TKE) {
        return Err(OtherCloud);
    }
    let model = cloud::model(cluster).ok_or(OtherCloud)?;
    let mut wanted = Wanted::default();
    let mut maker = Maker { cluster, environment, model, events: Vec::new() };
    for (object, unread) in environment.unread.iter().filter(|(object, _)| is_meant(object)) {
        wanted.untouched.insert(environment.uid(object));
        wanted.untouched_existing.extend(unread.existing.iter().cloned());
        let message = format!("{}; its load balancer stays as it is", unread.why);
        maker.events.push(Event::new(object, "E5009", message));
    }
    let is_read = |object: &ObjectRef| is_meant(object) && !environment.unread.contains_key(object);
    for owner in owners(cluster).filter(|owner| is_read(&owner.object())) {
        maker.add(owner, &mut wanted);
    }
    for (id, claims) in &mut wanted.claims {
        claims.sort_by_cached_key(|claim| {
            let (is_unknown, created, uid) = environment.age(&claim.note.object);
            (is_unknown, created.to_owned(), uid)
        });
        wanted.balancers.extend(maker.divide(id, claims, &mut wanted.untouched));
    }
    wanted.events = maker.events;
    wanted.events.sort();
    wanted.events.dedup();
    Ok(wanted)
}

/// Returns the objects that the controllers serve.
fn owners(cluster: &Cluster) -> impl Iterator<Item = Owner<'_>> {
    let services = cluster.services.values();
    let services = services
        .filter(|service| controller::is_judged(service) && service.load_balancer_class.is_none());
    let ingresses = cluster.ingresses.values();
    // Ingresses of other clouds' controllers are left out.
    let is_own = |ingress: &&Ingress| {
        controller::is_served_by_cloud(cluster, ingress) && ingress.product.is_none()
    };
    let ingresses = ingresses.filter(is_own);
    services.map(Owner::Service).chain(ingresses.map(Owner::Ingress))
}

/// The translator of objects, which also collects events.
struct Maker<'a> {
    cluster: &'a Cluster,
    environment: &'a Environment,
    model: &'a dyn CloudModel,
    events: Vec<Event>,
}

impl Maker<'_> {
    fn add(&mut self, owner: Owner<'_>, wanted: &mut Wanted) {
        let note = self.note(owner);
        let existing = self.model.request(owner).existing.map(|id| id.to_string());
        let is_left = balancer::is_skipped(owner) || !self.check_supported(owner);
        if is_left || !self.is_readable(owner) || !self.is_acceptable(owner) {
            wanted.untouched.insert(note.uid);
            wanted.untouched_existing.extend(existing);
            return;
        }
        if let Some(id) = existing {
            let settings = balancer::settings(owner);
            let listeners = self.listeners(owner);
            let is_grouped =
                matches!(owner, Owner::Ingress(ingress) if balancer::is_grouped(ingress));
            let claim = Claim { note, settings, listeners, is_grouped };
            wanted.claims.entry(id).or_default().push(claim);
            return;
        }
        let place = match self.creation(owner, &note) {
            Ok(request) => Place::Own(Box::new(request)),
            Err(message) => {
                let code = if note.is_ingress { "E4024" } else { "E4005" };
                self.events.push(Event::new(&note.object, code, message));
                wanted.untouched.insert(note.uid);
                return;
            }
        };
        let settings = balancer::settings(owner);
        let listeners = self.listeners(owner);
        let owners = vec![note];
        wanted.balancers.push(Balancer { owners, place, settings, settings_of: None, listeners });
    }

    fn note(&self, owner: Owner<'_>) -> OwnerNote {
        let object = owner.object();
        OwnerNote {
            uid: self.environment.uid(&object),
            is_ingress: matches!(owner, Owner::Ingress(_)),
            current: balancer::current(owner),
            object,
        }
    }
}
