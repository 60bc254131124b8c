//! What the cluster's Services and Ingresses want of the API.
//!
//! Which listeners, rules and targets they have, `uturn-lb` says; here are the API's names for
//! them, and what users set on them.

mod balancer;
mod certificates;
mod faults;
mod listeners;
mod parameters;
mod settings;
mod unsupported;

use std::collections::{BTreeMap, BTreeSet};

use uturn_cloud::api::clb::CreateLoadBalancerRequest;
use uturn_lb::cloud::{self, CloudModel, Owner, tke};
use uturn_lb::controller;
use uturn_model::{Cluster, Ingress, NamespacedName, ObjectRef};

pub use self::certificates::{secrets, secrets_for};
pub use self::listeners::key_of;
pub use self::settings::AFFINITY_NOTE;
pub use self::unsupported::{NOT_DONE, REFUSED};
use crate::clb::{BalancerSettings, Listener, ListenerKey};
use crate::environment::Environment;
use crate::event::Event;

/// What a cluster wants of the API.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    /// The load balancers.
    pub balancers: Vec<Balancer>,
    /// The UIDs of objects whose load balancers are left as they are: those whose controller is
    /// stopped, and those that ask for what cannot be.
    pub untouched: BTreeSet<String>,
    /// The load balancers of the user that these objects use: they are left as they are too.
    pub untouched_existing: BTreeSet<String>,
    /// What users are told.
    pub events: Vec<Event>,
}

/// A load balancer with the controllers' listeners.
#[derive(Clone, Debug, PartialEq)]
pub struct Balancer {
    /// The objects that it is for.
    pub owners: Vec<OwnerNote>,
    /// Which one it is.
    pub place: Place,
    /// How it behaves.
    pub settings: BalancerSettings,
    /// Its listeners.
    pub listeners: BTreeMap<ListenerKey, Wish>,
}

/// What a plan needs to know of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerNote {
    /// The object.
    pub object: ObjectRef,
    /// Its UID.
    pub uid: String,
    /// Whether it is an Ingress.
    pub is_ingress: bool,
    /// The load balancer that it uses now, as its controller wrote it.
    pub current: Option<String>,
}

/// A listener that is wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Wish {
    /// The object that wants it.
    pub owner: ObjectRef,
    /// The listener.
    pub listener: Listener,
    /// Whether something is missing without which it cannot be created. If it is there already,
    /// it is kept in step.
    pub is_blocked: bool,
}

/// Which load balancer is meant.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// One of the controllers', which is created if it is not there.
    Own(Box<CreateLoadBalancerRequest>),
    /// The user's with this id.
    Existing(String),
}

/// A cluster that is not known to be one of Tencent Cloud: its objects are not these controllers'.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cluster is not known to be one of Tencent Cloud")]
pub struct OtherCloud;

/// What a cluster wants of the API. Objects of other controllers are left out.
///
/// # Errors
///
/// Returns [`OtherCloud`] if the cluster is not known to be one of Tencent Cloud.
pub fn wanted(cluster: &Cluster, environment: &Environment) -> Result<Wanted, OtherCloud> {
    wanted_for(cluster, environment, |_| true)
}

/// What some of a cluster's objects want of the API. Objects that name the same load balancer
/// have to be meant together.
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
    for owner in owners(cluster).filter(|owner| is_meant(&owner.object())) {
        maker.add(owner, &mut wanted);
    }
    wanted.events = maker.events;
    wanted.events.sort();
    wanted.events.dedup();
    Ok(wanted)
}

/// The objects that the controllers serve, in the order in which they get the ports of a load
/// balancer that they share.
fn owners(cluster: &Cluster) -> impl Iterator<Item = Owner<'_>> {
    let services = cluster.services.values();
    let services = services
        .filter(|service| controller::is_judged(service) && service.load_balancer_class.is_none());
    let ingresses = cluster.ingresses.values();
    // What another cloud's controller makes is not asked for here.
    let is_own = |ingress: &&Ingress| {
        controller::is_served_by_cloud(cluster, ingress) && ingress.product.is_none()
    };
    let ingresses = ingresses.filter(is_own);
    services.map(Owner::Service).chain(ingresses.map(Owner::Ingress))
}

/// Translates objects, and collects events.
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
        let place = match &existing {
            Some(id) => Place::Existing(id.clone()),
            None => match self.creation(owner, &note) {
                Ok(request) => Place::Own(Box::new(request)),
                Err(message) => {
                    let code = if note.is_ingress { "E4024" } else { "E4005" };
                    self.events.push(Event::new(&note.object, code, message));
                    wanted.untouched.insert(note.uid);
                    return;
                }
            },
        };
        let listeners = self.listeners(owner);
        let settings = balancer::settings(owner);
        let same =
            wanted.balancers.iter_mut().find(|other| existing.is_some() && other.place == place);
        match same {
            None => {
                wanted.balancers.push(Balancer { owners: vec![note], place, settings, listeners });
            }
            Some(shared) => self.share(shared, note, settings, listeners),
        }
    }

    /// Adds the listeners of another object to a load balancer. On a port that is taken, the
    /// first object keeps it; only Ingresses of a group share listeners.
    fn share(
        &mut self,
        shared: &mut Balancer,
        note: OwnerNote,
        settings: BalancerSettings,
        listeners: BTreeMap<ListenerKey, Wish>,
    ) {
        let first = &mut shared.settings;
        first.passes_to_target = first.passes_to_target.or(settings.passes_to_target);
        first.security_groups = first.security_groups.take().or(settings.security_groups);
        first.snat_addresses = first.snat_addresses.take().or(settings.snat_addresses);
        for (key, wish) in listeners {
            let Some(there) = shared.listeners.get_mut(&key) else {
                shared.listeners.insert(key, wish);
                continue;
            };
            let may_share = self.is_grouped(&there.owner)
                && self.is_grouped(&wish.owner)
                && there.listener.protocol == wish.listener.protocol;
            if may_share {
                merge(&mut there.listener, wish.listener);
                continue;
            }
            let code = if note.is_ingress { "E4101" } else { "E4014" };
            let message = format!("the port {key} is used by {}", there.owner);
            self.events.push(Event::new(&note.object, code, message));
        }
        shared.owners.push(note);
    }

    fn is_grouped(&self, object: &ObjectRef) -> bool {
        let name = object.namespaced_name();
        let ingress = name.and_then(|name: NamespacedName| self.cluster.ingresses.get(&name));
        object.kind == uturn_model::ObjectKind::Ingress && ingress.is_some_and(balancer::is_grouped)
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

/// Adds the rules of a listener to another one. A rule that is there already stays.
fn merge(there: &mut Listener, more: Listener) {
    for (key, rule) in more.rules {
        there.rules.entry(key).or_insert(rule);
    }
    for (domain, settings) in more.domains {
        there.domains.entry(domain).or_insert(settings);
    }
    there.sni |= more.sni;
    there.certificate = there.certificate.take().or(more.certificate);
}
