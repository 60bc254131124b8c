//! The end of a round: what is written to objects.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kube::api::{Patch as KubePatch, PatchParams, PostParams};
use kube::core::DynamicObject;
use kube::{Api, Error};
use serde_json::json;
use uturn_model::{Name, NamespacedName, ObjectKind, ObjectRef};
use uturn_operator::api::Api as CloudApi;
use uturn_operator::clb::{Listener, ListenerKey};
use uturn_operator::event::Event;
use uturn_operator::observed::Balancer;
use uturn_operator::plan::balancer_of;
use uturn_operator::tags;
use uturn_operator::wanted::{self, OwnerNote};

use super::{Controllers, Round, Synced, owners};
use crate::auto;
use crate::cluster::{Live, LiveObject};
use crate::kinds::{CONFIG, EVENT, INGRESS, SERVICE, WatchedKind};
use crate::metrics::Metrics;
use crate::write::{self, Patch, Readiness};

impl<A: CloudApi> Controllers<A> {
    pub(super) async fn write_back(&mut self, round: &Round, synced: &mut Synced) {
        let mut events: BTreeSet<Event> = round.plan.events.iter().cloned().collect();
        events.extend(round.failures.iter().cloned());
        let mut pending: BTreeMap<&ObjectRef, bool> = BTreeMap::new();
        for balancer in &round.plan.balancers {
            pending.extend(balancer.owners.iter().map(|owner| (owner, true)));
        }
        for balancer in &round.wanted.balancers {
            let found = balancer_of(balancer, &round.observed, &round.ground);
            for owner in &balancer.owners {
                let Some(live) = round.live.objects.get(&owner.object) else { continue };
                let readiness = readiness(owner, &events, pending.contains_key(&owner.object));
                let found = found.filter(|found| is_served(owner, balancer, found));
                let now = Timestamp::now();
                let patches = write::report(&owner.object, live, found, &readiness, now);
                self.write(&owner.object, patches, synced).await;
                let listeners = balancer.listeners.iter();
                let own = listeners.filter(|(_, wish)| wish.owner == owner.object);
                let own = own.map(|(key, wish)| (*key, &wish.listener)).collect();
                self.configure(&owner.object, live, &round.live, &own, synced).await;
            }
        }
        for (object, live) in released(round) {
            self.write(object, write::release(object.kind, live), synced).await;
        }
        let new: Vec<&Event> = events.iter().filter(|event| !self.told.contains(event)).collect();
        for event in new {
            match self.tell(event, round.live.objects.get(&event.object)).await {
                Ok(()) => synced.writes += 1,
                Err(_) => Metrics::add(&self.metrics.failed_writes, 1),
            }
        }
        self.told = events;
    }

    /// Creates or changes the configuration that an object wants to be made.
    async fn configure(
        &self,
        object: &ObjectRef,
        live: &LiveObject,
        all: &Live,
        listeners: &BTreeMap<ListenerKey, &Listener>,
        synced: &mut Synced,
    ) {
        let Some(name) = auto::name(object, live) else { return };
        let Some(api) = self.api_of(object, &CONFIG) else { return };
        let namespace = object.namespace.as_ref().map(Name::as_str).unwrap_or_default();
        let there = NamespacedName::new(namespace, &name).ok();
        let result = match there.and_then(|name| all.configs.get(&name)) {
            Some(there) => {
                let Some(patch) = auto::changed(there, listeners) else { return };
                let parameters = PatchParams::default();
                api.patch(&name, &parameters, &KubePatch::Merge(&patch)).await
            }
            None => {
                let config = auto::created(&name, object, kind_of(object), live, listeners);
                match serde_json::from_value(config) {
                    Ok(config) => api.create(&PostParams::default(), &config).await,
                    Err(error) => Err(Error::SerdeError(error)),
                }
            }
        };
        match result {
            Ok(_) => synced.writes += 1,
            Err(_) => Metrics::add(&self.metrics.failed_writes, 1),
        }
    }

    async fn write(&self, object: &ObjectRef, patches: Vec<Patch>, synced: &mut Synced) {
        let count = patches.len();
        match self.patch(object, patches).await {
            Ok(()) => synced.writes += count,
            // The object changed or went meanwhile, or may not be written: the next round sees.
            Err(_) => Metrics::add(&self.metrics.failed_writes, 1),
        }
    }

    pub(super) async fn patch(&self, object: &ObjectRef, patches: Vec<Patch>) -> Result<(), Error> {
        let Some(api) = self.api_of(object, kind_of(object)) else { return Ok(()) };
        for patch in patches {
            let merge = KubePatch::Merge(&patch.value);
            let parameters = PatchParams::default();
            match patch.is_status {
                true => api.patch_status(&object.name, &parameters, &merge).await?,
                false => api.patch(&object.name, &parameters, &merge).await?,
            };
        }
        Ok(())
    }

    fn api_of(&self, object: &ObjectRef, kind: &WatchedKind) -> Option<Api<DynamicObject>> {
        let namespace = object.namespace.as_ref()?;
        Some(Api::namespaced_with(self.client.clone(), namespace.as_str(), &kind.resource()))
    }

    /// Creates an event of an object.
    async fn tell(&self, event: &Event, live: Option<&LiveObject>) -> Result<(), Error> {
        let object = &event.object;
        let Some(api) = self.api_of(object, &EVENT) else { return Ok(()) };
        let kind = kind_of(object);
        let (source, reason) = match object.kind {
            ObjectKind::Ingress => ("ingress-controller", "EnsureIngressFailed"),
            _ => ("service-controller", "EnsureServiceFailed"),
        };
        let now = Timestamp::now();
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
        let value = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "generateName": format!("{}.", object.name),
                "namespace": object.namespace.as_ref().map(ToString::to_string),
            },
            "involvedObject": {
                "apiVersion": kind.api_version(),
                "kind": kind.kind,
                "name": object.name.to_string(),
                "namespace": object.namespace.as_ref().map(ToString::to_string),
                "uid": live.and_then(LiveObject::uid),
            },
            "type": "Warning",
            "reason": reason,
            "message": format!("{}: {}", event.code, event.message),
            "source": { "component": source },
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        });
        let value: DynamicObject = serde_json::from_value(value).map_err(Error::SerdeError)?;
        api.create(&PostParams::default(), &value).await.map(drop)
    }
}

fn kind_of(object: &ObjectRef) -> &'static WatchedKind {
    if object.kind == ObjectKind::Ingress { &INGRESS } else { &SERVICE }
}

/// An object is ready if nothing has to be called for it and nothing is wrong with it.
fn readiness(owner: &OwnerNote, events: &BTreeSet<Event>, is_pending: bool) -> Readiness {
    let fault =
        events.iter().find(|event| event.object == owner.object && event.code.starts_with('E'));
    let (reason, message) = match fault {
        Some(fault) => (fault.code.to_owned(), fault.message.clone()),
        None if is_pending => ("Pending".to_owned(), "calls are left to be made".to_owned()),
        None => ("Success".to_owned(), String::new()),
    };
    Readiness { is_ready: reason == "Success", reason, message }
}

/// Whether an object has a listener on a load balancer, or the load balancer is its own.
fn is_served(owner: &OwnerNote, wanted: &wanted::Balancer, found: &Balancer) -> bool {
    let is_own = wanted.owners.len() == 1 && found.is_own();
    is_own
        || wanted
            .listeners
            .iter()
            .any(|(key, wish)| wish.owner == owner.object && found.listeners.contains_key(key))
}

/// The objects that are held and want no load balancer, and have none any more.
fn released(round: &Round) -> impl Iterator<Item = (&ObjectRef, &LiveObject)> {
    let served: BTreeSet<&ObjectRef> = owners(&round.wanted).map(|owner| &owner.object).collect();
    let busy: BTreeSet<&str> =
        round.plan.balancers.iter().filter_map(|balancer| balancer.id.as_deref()).collect();
    let by_uid: BTreeMap<&str, &str> = round
        .observed
        .balancers
        .values()
        .filter_map(|found| {
            let uid =
                [tags::SERVICE_UID, tags::INGRESS_UID].iter().find_map(|key| found.tags.get(*key));
            Some((uid?.as_str(), found.id.as_str()))
        })
        .collect();
    round.live.objects.iter().filter(move |(object, live)| {
        let uid = live.uid().unwrap_or_default();
        let own = by_uid.get(uid).copied();
        live.is_held()
            && !served.contains(object)
            && (live.is_deleted() || !round.wanted.untouched.contains(uid))
            && !own.is_some_and(|own| busy.contains(own))
            && !live.existing().iter().any(|id| busy.contains(id.as_str()))
    })
}
