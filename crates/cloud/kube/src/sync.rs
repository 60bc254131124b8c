//! Reconciliation: turns the current objects into load balancers, and writes the results back.
//!
//! The work is divided into groups: a single Service or Ingress, or all that share a load balancer.
//! A group is processed when a change concerns it, when its load balancer was not looked at for
//! some time, or when it failed before. Groups are processed concurrently; one that waits for the
//! cloud does not hold up the others. The known state of the cloud is kept between rounds.
//!
//! For each group (`sync::group`):
//!
//! 1. Its Secrets for TLS are read, and the wanted state is computed from its part of the store.
//! 2. The state of its load balancers is read from the cloud where it is not known. Before anything
//!    but targets is created, changed or deleted, all of it is read again.
//! 3. `uturn-operator` makes the plan; objects get the finalizer before anything is created for
//!    them; the owners of ports of a user's load balancer are recorded; the calls are performed.
//! 4. Addresses, ids, conditions and events are written.
//! 5. Objects whose load balancer is gone lose the finalizer.

mod back;
mod choose;
mod divide;
mod group;
mod refusal;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::FuturesUnordered;
use kube::Client;
use tokio::time::{Instant, sleep_until};
use uturn_cloud_api::client::CallError;
use uturn_model::ObjectRef;
use uturn_operator::api::Api as CloudApi;
use uturn_operator::event::Event;
use uturn_operator::mirror::Mirror;
use uturn_operator::observed::{self, Balancer};
use uturn_operator::shares::Shares;

use self::group::{Ended, Group, Hands};
use crate::metrics::{CLOUD, Metrics};
use crate::queue::{self, Due, Queue, Work};
use crate::records::Records;
use crate::related;
use crate::watch::Shared;

/// The time for which changes are collected before they are processed.
const COLLECT: Duration = Duration::from_millis(200);
/// The interval at which the load balancers are listed.
const LIST: Duration = Duration::from_secs(60);
/// The most groups that are processed at once.
const MAX_JOBS: usize = 128;
/// The number that is added to the count of refusals to choose a pause, so that the first is
/// longer.
const FIRST_PAUSE: u32 = 2;

/// The settings of the controllers in a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The cluster's id, which is a tag of its load balancers.
    pub cluster: String,
    /// The id of the cluster's network.
    pub network: String,
    /// The controllers' own namespace, which has the ledger of ports.
    pub namespace: String,
    /// The namespaces that may use each of the user's load balancers.
    pub shares: Shares,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            cluster: String::new(),
            network: String::new(),
            namespace: "kube-system".to_owned(),
            shares: Shares::default(),
        }
    }
}

/// The reason why a round could do nothing.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// Kinds of objects that the watches have not listed yet.
    #[error("not listed yet: {}", .0.join(", "))]
    Incomplete(Vec<&'static str>),
    /// Objects that cannot be read.
    #[error("objects cannot be read: {}", .0.join("; "))]
    Objects(Vec<String>),
    /// The cloud's API did not return its load balancers.
    #[error("the cloud's API cannot be called: {0}")]
    Observe(CallError),
}

/// The work done in a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Synced {
    /// The number of calls that changed something.
    pub calls: usize,
    /// The number of writes to objects.
    pub writes: usize,
    /// The number of objects and load balancers that failed or wait.
    pub left: usize,
}

/// The controllers of a cluster.
pub struct Controllers<A> {
    hands: Arc<Hands<A>>,
    shared: Shared,
    /// The known state of the cloud.
    mirror: Mirror,
    /// The objects and load balancers that have to be processed.
    due: Due,
    /// The groups that were read and wait for their turn.
    ready: VecDeque<Group>,
    jobs: FuturesUnordered<BoxFuture<'static, Finished>>,
    /// The objects and load balancers of groups that a job processes or that wait for their turn.
    busy: BTreeSet<Work>,
    /// The objects and load balancers that failed and wait for another try.
    queue: Queue,
    /// The events that were reported on each object and still hold.
    told: BTreeMap<ObjectRef, BTreeSet<Event>>,
    /// Load balancers of objects that are gone, which have nothing left to be removed.
    settled: BTreeSet<String>,
    /// Load balancers that may have been created for objects that are gone.
    suspects: BTreeSet<String>,
    /// The number of times in a row that the cloud's API refused all calls.
    refusals: u32,
    is_listing: bool,
    next_list: Instant,
    next_look: Instant,
    /// The time until which changes are collected.
    collecting: Option<Instant>,
    /// The work done since the controllers were last idle.
    synced: Option<Synced>,
}

/// The result of a job.
enum Finished {
    Group(Box<Ended>),
    List { asked: u64, result: Result<Vec<Balancer>, CallError> },
}

impl<A: CloudApi + Send + 'static> Controllers<A> {
    /// Returns controllers that read a store and call an API.
    pub fn new(
        client: Client,
        api: A,
        settings: Settings,
        shared: Shared,
        metrics: Arc<Metrics>,
    ) -> Self {
        let now = Instant::now();
        metrics.unserved.clear();
        let (namespace, cluster) = (&settings.namespace, &settings.cluster);
        let records = Records::new(client.clone(), namespace, cluster, Arc::clone(&metrics));
        let records = Arc::new(records);
        Self {
            hands: Arc::new(Hands { client, api, settings, metrics, records }),
            shared,
            mirror: Mirror::default(),
            due: Due::default(),
            ready: VecDeque::new(),
            jobs: FuturesUnordered::new(),
            busy: BTreeSet::new(),
            queue: Queue::default(),
            told: BTreeMap::new(),
            settled: BTreeSet::new(),
            suspects: BTreeSet::new(),
            refusals: 0,
            is_listing: false,
            next_list: now,
            next_look: now,
            collecting: None,
            synced: None,
        }
    }

    /// Returns the ledger of ports.
    pub fn records(&self) -> Arc<Records> {
        Arc::clone(&self.hands.records)
    }

    /// Processes all objects and all load balancers.
    ///
    /// # Errors
    ///
    /// Returns why a round could do nothing.
    pub async fn sync(&mut self) -> Result<Synced, SyncError> {
        self.mirror.doubt_all();
        self.settled.clear();
        self.suspects.extend(self.mirror.all().map(|balancer| balancer.id.clone()));
        self.next_list = Instant::now();
        let all: Vec<ObjectRef> =
            self.shared.with(|store| related::all(store).map(|(object, _)| object).collect());
        for object in all {
            self.due.insert_later(Work::Object(object));
        }
        self.follow().await
    }

    /// Processes only changes of objects and retries that are due.
    ///
    /// # Errors
    ///
    /// Returns why a round could do nothing.
    pub async fn follow(&mut self) -> Result<Synced, SyncError> {
        self.collecting = None;
        loop {
            self.start()?;
            match self.jobs.next().await {
                Some(finished) => self.finish(finished)?,
                None => {
                    let nothing = Synced { left: self.queue.len(), ..Synced::default() };
                    return Ok(self.rest().unwrap_or(nothing));
                }
            }
        }
    }

    /// Waits for the next event and processes it. When nothing is left to do, returns the work done
    /// since the controllers were last idle.
    ///
    /// # Errors
    ///
    /// Returns why a round could do nothing.
    pub async fn step(&mut self) -> Result<Option<Synced>, SyncError> {
        self.start()?;
        if self.jobs.is_empty()
            && let Some(synced) = self.rest()
        {
            return Ok(Some(synced));
        }
        let wake = self.wake();
        tokio::select! {
            Some(finished) = self.jobs.next() => self.finish(finished)?,
            () = self.shared.changed.notified() => {
                self.collecting.get_or_insert(Instant::now() + COLLECT);
            }
            () = sleep_until(wake) => {}
        }
        Ok(None)
    }

    /// Returns and resets the work done since the controllers were last idle.
    fn rest(&mut self) -> Option<Synced> {
        let synced = self.synced.take()?;
        Some(Synced { left: self.queue.len(), ..synced })
    }

    /// Returns the next time at which something is due.
    fn wake(&self) -> Instant {
        let now = Instant::now();
        let looks = self.refusals == 0 && !self.mirror.is_empty();
        let look = looks.then_some(self.next_look);
        let list = (!self.is_listing).then_some(self.next_list);
        let times = [list, look, self.collecting, self.queue.next(now)];
        times.into_iter().flatten().min().unwrap_or(now + LIST)
    }

    /// Starts the jobs that may run now.
    fn start(&mut self) -> Result<(), SyncError> {
        let missing = self.shared.with(|store| store.missing());
        if !missing.is_empty() {
            return Err(SyncError::Incomplete(missing));
        }
        let now = Instant::now();
        self.collect(now);
        if !self.is_listing && now >= self.next_list {
            self.is_listing = true;
            let (hands, asked) = (Arc::clone(&self.hands), self.mirror.clock());
            let list = async move {
                // Records that cannot be read now are read again for the objects that need them.
                let _ = hands.records.load().await;
                let result = observed::list(&hands.api, &hands.settings.cluster).await;
                Finished::List { asked, result }
            };
            self.jobs.push(list.boxed());
        }
        // Before the first list, a load balancer that would be created may already exist. A cloud
        // that refuses all calls is only asked for the list.
        if !self.mirror.is_listed() || self.refusals > 0 {
            return Ok(());
        }
        while self.jobs.len() < MAX_JOBS {
            if self.ready.is_empty() {
                self.prepare(now)?;
            }
            let Some(group) = self.ready.pop_front() else { break };
            self.launch(group);
        }
        Ok(())
    }

    fn launch(&mut self, group: Group) {
        let seen = group.members.balancers.iter();
        let seen = seen.filter_map(|id| {
            let seen = self.mirror.seen(id)?;
            Some((id.clone(), (Arc::clone(&seen.balancer), seen.is_whole)))
        });
        let seen = seen.collect();
        let told = group.members.objects.iter();
        let told = told.filter_map(|object| self.told.get(object)).flatten().cloned().collect();
        let hands = Arc::clone(&self.hands);
        let job = async move { Finished::Group(Box::new(hands.settle(group, seen, told).await)) };
        self.jobs.push(job.boxed());
    }

    fn finish(&mut self, finished: Finished) -> Result<(), SyncError> {
        let now = Instant::now();
        match finished {
            Finished::Group(ended) => {
                self.finish_group(*ended, now);
                Ok(())
            }
            Finished::List { asked, result } => {
                self.is_listing = false;
                match result {
                    Ok(heads) => {
                        if !self.mirror.is_listed() {
                            // The first idle time is reported even if there was nothing to do.
                            self.synced.get_or_insert_default();
                        }
                        (self.refusals, self.next_list) = (0, now + LIST);
                        self.suspects.extend(self.hands.records.ids());
                        self.hands.metrics.mended(CLOUD);
                        for id in self.mirror.list(heads, asked, now) {
                            self.settled.remove(&id);
                            self.due.insert_later(Work::Balancer(id));
                        }
                        Ok(())
                    }
                    Err(error) => {
                        self.refused(&error, now);
                        Err(SyncError::Observe(error))
                    }
                }
            }
        }
    }

    fn finish_group(&mut self, ended: Ended, now: Instant) {
        let works = ended.members.works();
        for work in &works {
            self.busy.remove(work);
        }
        for (id, (balancer, is_fresh)) in ended.seen {
            self.suspects.insert(id.clone());
            self.mirror.note(&id, balancer, is_fresh.then_some(now));
        }
        if ended.is_doubtful {
            ended.members.balancers.iter().for_each(|id| self.mirror.doubt(id, now));
        }
        self.shared.with(|store| {
            for (object, value) in ended.objects {
                store.wrote(related::kind_of(&object), value);
            }
        });
        for object in &ended.members.objects {
            let own = ended.told.iter().filter(|event| event.object == *object).cloned();
            let own: BTreeSet<Event> = own.collect();
            if own.is_empty() {
                self.told.remove(object)
            } else {
                self.told.insert(object.clone(), own)
            };
        }
        if let Some(unserved) = &ended.unserved {
            self.hands.metrics.unserved.note(&ended.members.objects, unserved);
        }
        works.difference(&ended.failed).for_each(|work| self.queue.succeeded(work));
        ended.failed.iter().for_each(|work| self.queue.failed(work, now));
        if ended.failed.is_empty() && ended.members.objects.is_empty() {
            self.settled.extend(ended.members.balancers.first().cloned());
        }
        if let Some(error) = &ended.refusal {
            self.refused(error, now);
        }
        let synced = self.synced.get_or_insert_default();
        synced.calls += ended.synced.calls;
        synced.writes += ended.synced.writes;
        let metrics = &self.hands.metrics;
        Metrics::add(&metrics.calls, ended.synced.calls);
        Metrics::add(&metrics.writes, ended.synced.writes);
        let waiting = u64::try_from(self.queue.len()).unwrap_or(u64::MAX);
        metrics.waiting.store(waiting, Ordering::Relaxed);
    }

    /// Notes that the cloud's API refused in a way in which it refuses all calls. The next request
    /// after a pause is for the list.
    fn refused(&mut self, error: &CallError, now: Instant) {
        if self.refusals == 0 || now >= self.next_list {
            self.refusals += 1;
            self.next_list = now + queue::pause(self.refusals + FIRST_PAUSE);
        }
        self.hands.metrics.trouble(CLOUD, &refusal::lasting(error));
    }
}
