//! A round: the objects as they are now become load balancers, and what became of them is written
//! back.
//!
//! 1. The store is read as a cluster; Secrets that it names for TLS are read one by one.
//! 2. `uturn-operator` makes the plan.
//! 3. Objects get the finalizer before anything is created for them.
//! 4. The calls are performed, load balancer by load balancer. One that failed waits.
//! 5. Addresses, ids, conditions and events are written.
//! 6. Objects whose load balancer is gone lose the finalizer.

mod back;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use kube::core::DynamicObject;
use kube::{Api, Client};
use serde_json::Value;
use tokio::time::Instant;
use uturn_cloud::client::CallError;
use uturn_model::{NamespacedName, ObjectRef};
use uturn_operator::api::Api as CloudApi;
use uturn_operator::clb::Certificate;
use uturn_operator::event::Event;
use uturn_operator::failure;
use uturn_operator::ground::{CertificateSecret, Ground};
use uturn_operator::observed::{Observed, observe};
use uturn_operator::plan::{BalancerPlan, Plan, plan};
use uturn_operator::run::{Done, run_balancer};
use uturn_operator::wanted::{self, OtherCloud, OwnerNote, Wanted};

use crate::cluster::{self, Live};
use crate::kinds::SECRET;
use crate::metrics::Metrics;
use crate::queue::Queue;
use crate::watch::Shared;
use crate::write;

/// The keys of a Secret with the ids of a certificate and of the authority of clients'.
const SECRET_KEYS: [&str; 2] = ["qcloud_cert_id", "qcloud_ca_cert_id"];

/// Which cluster it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The cluster's id, which is a tag of its load balancers.
    pub cluster: String,
    /// The cluster's network.
    pub network: String,
}

/// Why a round failed as a whole. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// The watches have not listed everything.
    #[error("not listed yet: {}", .0.join(", "))]
    Incomplete(Vec<&'static str>),
    /// Objects that cannot be read.
    #[error("objects cannot be read: {}", .0.join("; "))]
    Objects(Vec<String>),
    /// A Secret cannot be read.
    #[error("the Secret {0} cannot be read: {1}")]
    Secret(NamespacedName, kube::Error),
    /// The cluster is another cloud's.
    #[error(transparent)]
    OtherCloud(#[from] OtherCloud),
    /// The cloud's API does not say what is there.
    #[error("the cloud's API cannot be asked: {0}")]
    Observe(#[from] CallError),
}

/// What a round did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Synced {
    /// How many calls changed something.
    pub calls: usize,
    /// How many writes to objects there were.
    pub writes: usize,
    /// What is left to be done: load balancers whose calls failed or wait.
    pub left: usize,
}

/// The controllers of a cluster.
pub struct Controllers<A> {
    client: Client,
    api: A,
    settings: Settings,
    shared: Shared,
    metrics: Arc<Metrics>,
    /// What failed and waits.
    pub queue: Queue,
    /// What users were told and is still so.
    told: BTreeSet<Event>,
}

/// What a round knows.
struct Round {
    live: Live,
    ground: Ground,
    wanted: Wanted,
    observed: Observed,
    plan: Plan,
    /// What failed in this round.
    failures: Vec<Event>,
}

impl<A: CloudApi> Controllers<A> {
    /// Controllers that read a store and call an API.
    pub fn new(
        client: Client,
        api: A,
        settings: Settings,
        shared: Shared,
        metrics: Arc<Metrics>,
    ) -> Self {
        let (queue, told) = (Queue::default(), BTreeSet::new());
        Self { client, api, settings, shared, metrics, queue, told }
    }

    /// Performs a round.
    ///
    /// # Errors
    ///
    /// Returns why nothing could be done.
    pub async fn sync(&mut self) -> Result<Synced, SyncError> {
        let mut round = self.prepare().await?;
        let mut synced = Synced::default();
        let held = self.hold(&mut round, &mut synced).await;
        self.perform(&mut round, &held, &mut synced).await;
        if synced.calls > 0 {
            round.observed = observe(&self.api, &round.ground, &round.wanted).await?;
            round.plan = plan(&round.wanted, &round.observed, &round.ground);
        }
        synced.left = round.plan.balancers.len();
        self.write_back(&round, &mut synced).await;
        Metrics::add(&self.metrics.calls, synced.calls);
        Metrics::add(&self.metrics.writes, synced.writes);
        let waiting = u64::try_from(self.queue.len()).unwrap_or(u64::MAX);
        self.metrics.waiting.store(waiting, Ordering::Relaxed);
        Ok(synced)
    }

    async fn prepare(&self) -> Result<Round, SyncError> {
        let missing = self.shared.with(|store| store.missing());
        if !missing.is_empty() {
            return Err(SyncError::Incomplete(missing));
        }
        let live = self.shared.with(|store| cluster::read(store)).map_err(SyncError::Objects)?;
        let uids = live.objects.iter();
        let mut ground = Ground {
            cluster: self.settings.cluster.clone(),
            network: self.settings.network.clone(),
            uids: uids
                .filter_map(|(object, live)| Some((object.clone(), live.uid()?.to_owned())))
                .collect(),
            secrets: self.secrets(&live).await?,
            ..Ground::default()
        };
        let wanted = wanted::wanted(&live.cluster, &ground)?;
        ground.released = released(&live, &wanted);
        let observed = observe(&self.api, &ground, &wanted).await?;
        let plan = plan(&wanted, &observed, &ground);
        Ok(Round { live, ground, wanted, observed, plan, failures: Vec::new() })
    }

    /// Reads the Secrets that are named for TLS. One that does not exist is left out.
    async fn secrets(
        &self,
        live: &Live,
    ) -> Result<BTreeMap<NamespacedName, CertificateSecret>, SyncError> {
        let mut secrets = BTreeMap::new();
        for name in wanted::secrets(&live.cluster) {
            let namespace = name.namespace.as_str();
            let api: Api<DynamicObject> =
                Api::namespaced_with(self.client.clone(), namespace, &SECRET.resource());
            let found = api.get_opt(name.name.as_str()).await;
            let found = found.map_err(|error| SyncError::Secret(name.clone(), error))?;
            if let Some(secret) = found {
                secrets.insert(name, certificate(&secret.data));
            }
        }
        Ok(secrets)
    }

    /// Puts the finalizer on the objects that have a load balancer or get one. Returns the objects
    /// that have it.
    async fn hold(&self, round: &mut Round, synced: &mut Synced) -> BTreeSet<ObjectRef> {
        let mut held = BTreeSet::new();
        for owner in owners(&round.wanted) {
            let Some(live) = round.live.objects.get(&owner.object) else { continue };
            let patch = write::hold(live);
            let is_new = patch.is_some();
            match self.patch(&owner.object, patch.into_iter().collect()).await {
                Ok(()) => {
                    synced.writes += usize::from(is_new);
                    held.insert(owner.object.clone());
                }
                Err(error) => {
                    let message = format!("the finalizer cannot be written: {error}");
                    round.failures.push(Event::new(&owner.object, "E5009", message));
                }
            }
        }
        held
    }

    async fn perform(
        &mut self,
        round: &mut Round,
        held: &BTreeSet<ObjectRef>,
        synced: &mut Synced,
    ) {
        let names: BTreeSet<String> = round.plan.balancers.iter().map(name).collect();
        self.queue.keep(&names);
        for balancer in &round.plan.balancers {
            let name = name(balancer);
            let is_held = balancer.owners.iter().all(|owner| held.contains(owner));
            if !is_held || !self.queue.is_due(&name, Instant::now()) {
                // What failed last time is still so.
                round.failures.extend(self.queue.events(&name).iter().cloned());
                continue;
            }
            let mut done = Done::default();
            let result = run_balancer(&self.api, balancer, &mut done).await;
            synced.calls += done.calls;
            match result {
                Ok(()) => self.queue.succeeded(&name),
                Err(error) => {
                    Metrics::add(&self.metrics.failed_calls, 1);
                    let event = |owner| failure::event(owner, &error);
                    let events: Vec<Event> = balancer.owners.iter().map(event).collect();
                    round.failures.extend(events.iter().cloned());
                    self.queue.failed(&name, Instant::now(), events);
                }
            }
        }
    }
}

/// A name for what is tried again.
fn name(balancer: &BalancerPlan) -> String {
    let owner = balancer.owners.first().map(ObjectRef::short);
    owner.or_else(|| balancer.id.clone()).unwrap_or_default()
}

fn owners(wanted: &Wanted) -> impl Iterator<Item = &OwnerNote> {
    wanted.balancers.iter().flat_map(|balancer| &balancer.owners)
}

/// The load balancers of the user's that objects used which want none any more.
fn released(live: &Live, wanted: &Wanted) -> BTreeSet<String> {
    let served: BTreeSet<&ObjectRef> = owners(wanted).map(|owner| &owner.object).collect();
    let gone = live.objects.iter().filter(|(object, live)| {
        let is_untouched = live.uid().is_some_and(|uid| wanted.untouched.contains(uid));
        live.is_held() && !served.contains(object) && !is_untouched
    });
    gone.flat_map(|(_, live)| live.existing()).collect()
}

/// What a Secret holds for TLS. The API server has its values in base64.
fn certificate(secret: &Value) -> CertificateSecret {
    let [server, authority] = SECRET_KEYS.map(|key| {
        let text = uturn_snapshot::base64_text(secret["data"][key].as_str()?)?;
        Some(text.trim().to_owned()).filter(|id| !id.is_empty())
    });
    match server {
        Some(server) => CertificateSecret::Certificate(Certificate { server, authority }),
        None => CertificateSecret::WithoutId,
    }
}
