//! Rounds for ever: when an object changed, when something that failed is due, and now and then.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kube::Client;
use tokio::time::{Instant, sleep, sleep_until};
use uturn_operator::api::Api as CloudApi;

use crate::gates::Gates;
use crate::kinds::WATCHED;
use crate::lease::{Lease, LeaseSettings, Lost};
use crate::metrics::Metrics;
use crate::sync::{Controllers, Settings, SyncError, Synced};
use crate::watch::{Shared, watch};

/// How long changes are collected before a round.
const COLLECT: Duration = Duration::from_millis(200);
/// How often there is a round without a change: what is changed by hand is mended then.
const RESYNC: Duration = Duration::from_secs(60);
/// How long to wait after a round that failed as a whole.
const RETRY: Duration = Duration::from_secs(5);

/// What a process runs.
pub struct Process<A> {
    /// The API server.
    pub client: Client,
    /// The cloud's API.
    pub api: A,
    /// Which cluster it is.
    pub settings: Settings,
    /// The lease, if there may be several processes.
    pub lease: Option<LeaseSettings>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// The objects.
    pub shared: Shared,
}

impl<A: CloudApi + Clone> Process<A> {
    /// Watches, waits for the lease, and performs rounds until the lease is lost. Each round is
    /// reported.
    ///
    /// # Errors
    ///
    /// Returns [`Lost`] when another process may work.
    pub async fn run(
        self,
        mut report: impl FnMut(&Result<Synced, SyncError>),
    ) -> Result<Infallible, Lost> {
        let mut watches = tokio::task::JoinSet::new();
        for kind in WATCHED {
            let (client, metrics) = (self.client.clone(), Arc::clone(&self.metrics));
            watches.spawn(watch(client, kind, self.shared.clone(), metrics));
        }
        let mut lease = self.lease.map(|settings| Lease::new(self.client.clone(), settings));
        if let Some(lease) = &mut lease {
            lease.acquire().await;
        }
        self.metrics.is_leader.store(true, Ordering::Relaxed);
        let lost = async {
            match &mut lease {
                Some(lease) => lease.keep().await,
                None => std::future::pending().await,
            }
        };
        let metrics = Arc::clone(&self.metrics);
        let shared = self.shared.clone();
        let gates = Gates {
            client: self.client.clone(),
            api: self.api.clone(),
            shared: shared.clone(),
            metrics: Arc::clone(&metrics),
        };
        let mut controllers =
            Controllers::new(self.client, self.api, self.settings, self.shared, self.metrics);
        let rounds = async {
            while !shared.with(|store| store.is_complete()) {
                shared.changed.notified().await;
            }
            loop {
                let result = controllers.sync().await;
                let counter = if result.is_ok() { &metrics.rounds } else { &metrics.failed_rounds };
                Metrics::add(counter, 1);
                report(&result);
                let pause = if result.is_ok() { RESYNC } else { RETRY };
                let due = controllers.queue.next();
                let next =
                    (Instant::now() + pause).min(due.unwrap_or_else(|| Instant::now() + pause));
                tokio::select! {
                    () = shared.changed.notified() => sleep(COLLECT).await,
                    () = sleep_until(next) => {}
                }
            }
        };
        tokio::select! {
            why = lost => {
                metrics.is_leader.store(false, Ordering::Relaxed);
                Err(why)
            }
            never = rounds => never,
            never = gates.keep() => match never {},
        }
    }
}
