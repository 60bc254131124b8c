//! The end of a round: writes its results to objects.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kube::api::{Patch as KubePatch, PatchParams, PostParams};
use kube::core::DynamicObject;
use kube::{Api, Error};
use serde_json::{Value, json};
use uturn_model::{Name, NamespacedName, ObjectKind, ObjectRef};
use uturn_operator::api::Api as CloudApi;
use uturn_operator::clb::{Listener, ListenerKey};
use uturn_operator::event::Event;
use uturn_operator::observed::Balancer;
use uturn_operator::plan::{BalancerPlan, Call, balancer_of};
use uturn_operator::tags;
use uturn_operator::wanted::{self, OwnerNote};

use super::group::{Hands, Round, owners};
use crate::auto;
use crate::cluster::{Live, LiveObject};
use crate::kinds::{CONFIG, EVENT, WatchedKind};
use crate::metrics::{Metrics, why};
use crate::related::kind_of;
use crate::write::{self, Patch, Readiness};

/// The result of writing to objects.
#[derive(Default)]
pub(super) struct Written {
    /// The number of writes.
    pub(super) writes: usize,
    /// The objects that were written, in their new state.
    pub(super) objects: BTreeMap<ObjectRef, Value>,
    /// The events that were reported, or were before and still hold.
    pub(super) told: BTreeSet<Event>,
    /// The objects to which something could not be written.
    pub(super) failed: BTreeSet<ObjectRef>,
}

impl<A: CloudApi> Hands<A> {
    pub(super) async fn write_back(&self, round: &Round, told: &BTreeSet<Event>) -> Written {
        let mut written = Written::default();
        let mut events: BTreeSet<Event> = round.plan.events.iter().cloned().collect();
        events.extend(round.wanted.events.iter().cloned());
        events.extend(round.failures.iter().cloned());
        events.retain(|event| round.live.objects.contains_key(&event.object));
        let mut pending: BTreeSet<&ObjectRef> = BTreeSet::new();
        for balancer in &round.plan.balancers {
            pending.extend((0..balancer.calls.len()).flat_map(|place| balancer.objects_of(place)));
        }
        for balancer in &round.wanted.balancers {
            let found = balancer_of(balancer, &round.observed, &round.environment);
            for owner in &balancer.owners {
                let Some(live) = round.live.objects.get(&owner.object) else { continue };
                let is_pending = pending.contains(&owner.object) || !round.is_known;
                let readiness = readiness(&owner.object, &events, is_pending);
                let found = found.filter(|found| is_served(owner, balancer, found));
                let now = Timestamp::now();
                let patches = write::report(&owner.object, live, found, &readiness, now);
                let finalizers = &live.value["metadata"]["finalizers"];
                self.write(&owner.object, finalizers, patches, &mut written, &mut events).await;
                let listeners = balancer.listeners.iter();
                let own = listeners.filter(|(_, wish)| wish.owner == owner.object);
                let own = own.map(|(key, wish)| (*key, &wish.listener)).collect();
                let name = auto::name(&owner.object, live);
                if let Some(name) = name.filter(|_| round.is_known) {
                    let config = self.configure(&owner.object, &name, live, &round.live, &own);
                    let result = config.await;
                    let what = format!("the configuration {name}");
                    written.note(&owner.object, &what, result, &mut events);
                }
            }
        }
        for (object, live, readiness) in refused(round, &events) {
            let patches = write::report(object, live, None, &readiness, Timestamp::now());
            let finalizers = &live.value["metadata"]["finalizers"];
            self.write(object, finalizers, patches, &mut written, &mut events).await;
        }
        for (object, live) in released(round) {
            let patches = write::release(object.kind, live);
            let finalizers = &live.value["metadata"]["finalizers"];
            self.write(object, finalizers, patches, &mut written, &mut events).await;
        }
        for event in events {
            if told.contains(&event) {
                written.told.insert(event);
                continue;
            }
            match self.tell(&event, round.live.objects.get(&event.object)).await {
                Ok(()) => {
                    written.writes += 1;
                    written.told.insert(event);
                }
                Err(_) => {
                    Metrics::add(&self.metrics.failed_writes, 1);
                    written.failed.insert(event.object.clone());
                }
            }
        }
        written
    }

    /// Creates or updates the TkeServiceConfig that an object asks the controllers to make. Returns
    /// the number of writes.
    async fn configure(
        &self,
        object: &ObjectRef,
        name: &str,
        live: &LiveObject,
        all: &Live,
        listeners: &BTreeMap<ListenerKey, &Listener>,
    ) -> Result<usize, Error> {
        let Some(api) = self.api_of(object, &CONFIG) else { return Ok(0) };
        let namespace = object.namespace.as_ref().map(Name::as_str).unwrap_or_default();
        let there = NamespacedName::new(namespace, name).ok();
        let (verb, result) = match there.and_then(|name| all.configs.get(&name)) {
            Some(there) => {
                let Some(patch) = auto::changed(there, listeners) else { return Ok(0) };
                let parameters = PatchParams::default();
                ("patch", api.patch(name, &parameters, &KubePatch::Merge(&patch)).await)
            }
            None => {
                let config = auto::created(name, object, kind_of(object), live, listeners);
                let config = serde_json::from_value(config).map_err(Error::SerdeError)?;
                ("create", api.create(&PostParams::default(), &config).await)
            }
        };
        self.metrics.note(verb, CONFIG.plural, result.as_ref().err());
        match result {
            // The configuration was created meanwhile; the watch reports its state.
            Err(Error::Api(status)) if verb == "create" && status.code == 409 => Ok(0),
            result => result.map(|_| 1),
        }
    }

    /// Patches an object that had these finalizers when it was read. Stops at the first failure.
    async fn write(
        &self,
        object: &ObjectRef,
        finalizers: &Value,
        patches: Vec<Patch>,
        written: &mut Written,
        events: &mut BTreeSet<Event>,
    ) {
        let mut version = Value::Null;
        for mut patch in patches {
            let what = if patch.is_status { "its status" } else { "its annotations" };
            // A patch that states the version it was made for has to state that of the previous
            // patch.
            let stated = patch.value.pointer_mut("/metadata/resourceVersion");
            if let Some(stated) = stated.filter(|_| !version.is_null()) {
                stated.clone_from(&version);
            }
            let result = self.patch(object, &patch).await;
            if result.is_err() {
                Metrics::add(&self.metrics.failed_writes, 1);
            }
            if let Ok(after) = &result {
                let is_as_read = after["metadata"]["finalizers"] == *finalizers;
                version = after["metadata"]["resourceVersion"].clone();
                version = if is_as_read { version } else { Value::Null };
                written.objects.insert(object.clone(), after.clone());
            }
            if !written.note(object, what, result.map(|_| 1), events) {
                return;
            }
        }
    }

    /// Patches an object. Returns its new state.
    pub(super) async fn patch(&self, object: &ObjectRef, patch: &Patch) -> Result<Value, Error> {
        let kind = kind_of(object);
        let Some(api) = self.api_of(object, kind) else { return Ok(Value::Null) };
        let merge = KubePatch::Merge(&patch.value);
        let parameters = PatchParams::default();
        let (result, part) = if patch.is_status {
            (api.patch_status(&object.name, &parameters, &merge).await, "/status")
        } else {
            (api.patch(&object.name, &parameters, &merge).await, "")
        };
        self.metrics.note("patch", &format!("{}{part}", kind.plural), result.as_ref().err());
        serde_json::to_value(result?).map_err(Error::SerdeError)
    }

    fn api_of(&self, object: &ObjectRef, kind: &WatchedKind) -> Option<Api<DynamicObject>> {
        let namespace = object.namespace.as_ref()?;
        Some(Api::namespaced_with(self.client.clone(), namespace.as_str(), &kind.resource()))
    }

    /// Creates an event for an object.
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
        let result = api.create(&PostParams::default(), &value).await.map(drop);
        self.metrics.note("create", EVENT.plural, result.as_ref().err());
        result
    }
}

impl Written {
    /// Notes the result of a write, which is the number of writes or an error. Returns whether it
    /// succeeded.
    fn note(
        &mut self,
        object: &ObjectRef,
        what: &str,
        result: Result<usize, Error>,
        events: &mut BTreeSet<Event>,
    ) -> bool {
        match result {
            Ok(writes) => self.writes += writes,
            // The object was deleted meanwhile.
            Err(Error::Api(status)) if status.code == 404 && what.starts_with("its ") => {
                return false;
            }
            // The object changed meanwhile, and is tried again in its new state.
            Err(Error::Api(status)) if status.code == 409 => {
                self.failed.insert(object.clone());
                return false;
            }
            Err(error) => {
                self.failed.insert(object.clone());
                let message = format!("{what} cannot be written: {}", why(&error));
                events.insert(Event::new(object, "E5009", message));
                return false;
            }
        }
        true
    }
}

/// Returns the readiness of an object: it is ready if no calls are left for it and it has no error.
fn readiness(object: &ObjectRef, events: &BTreeSet<Event>, is_pending: bool) -> Readiness {
    let fault = events.iter().find(|event| event.object == *object && event.code.starts_with('E'));
    let (reason, message) = match fault {
        Some(fault) => (fault.code.to_owned(), fault.message.clone()),
        None if is_pending => ("Pending".to_owned(), "calls are left to be made".to_owned()),
        None => ("Success".to_owned(), String::new()),
    };
    Readiness { is_ready: reason == "Success", reason, message }
}

/// Returns whether an object has a listener on a load balancer, or the load balancer is its own.
fn is_served(owner: &OwnerNote, wanted: &wanted::Balancer, found: &Balancer) -> bool {
    let is_own = wanted.owners.len() == 1 && found.is_own();
    is_own
        || wanted
            .listeners
            .iter()
            .any(|(key, wish)| wish.is_for(&owner.object) && found.listeners.contains_key(key))
}

/// Returns the objects that are left as they are because of an error.
fn refused<'r>(
    round: &'r Round,
    events: &BTreeSet<Event>,
) -> Vec<(&'r ObjectRef, &'r LiveObject, Readiness)> {
    let served: BTreeSet<&ObjectRef> = owners(&round.wanted).map(|owner| &owner.object).collect();
    let others = round.live.objects.iter();
    let others = others.filter(|(object, live)| !served.contains(object) && !live.is_deleted());
    let refused = others.map(|(object, live)| (object, live, readiness(object, events, false)));
    refused.filter(|(_, _, readiness)| !readiness.is_ready).collect()
}

/// Returns the objects with the finalizer that want no load balancer, and have none any more.
fn released(round: &Round) -> impl Iterator<Item = (&ObjectRef, &LiveObject)> {
    let served: BTreeSet<&ObjectRef> = owners(&round.wanted).map(|owner| &owner.object).collect();
    let busy: BTreeSet<&str> = round
        .plan
        .balancers
        .iter()
        .filter(|balancer| takes_away(balancer))
        .filter_map(|balancer| balancer.id.as_deref())
        .collect();
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
        round.is_known
            && live.is_held()
            && !served.contains(object)
            && (live.is_deleted() || !round.wanted.untouched.contains(uid))
            && !own.is_some_and(|own| busy.contains(own))
            && !live.existing().iter().any(|id| busy.contains(id.as_str()))
    })
}

/// Returns whether calls are left that remove parts of a load balancer that an object had. Calls
/// that only add parts for other objects delay nobody's release.
fn takes_away(balancer: &BalancerPlan) -> bool {
    balancer.calls.iter().enumerate().any(|(place, call)| {
        matches!(call, Call::DeleteBalancer | Call::DeleteListeners(_))
            || balancer.objects_of(place).is_empty()
    })
}
