//! A process of the controllers: watches, the lease, and the rounds.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use kube::Client;
use uturn_operator::api::Api as CloudApi;

use crate::gates::Gates;
use crate::kinds::WATCHED;
use crate::lease::{Lease, LeaseSettings, Lost};
use crate::metrics::Metrics;
use crate::sync::{Controllers, Settings, SyncError, Synced};
use crate::watch::{Shared, watch};

/// The components of a process.
pub struct Process<A> {
    /// The API server.
    pub client: Client,
    /// The cloud's API.
    pub api: A,
    /// The settings of the controllers in the cluster.
    pub settings: Settings,
    /// The lease, if there may be several processes.
    pub lease: Option<LeaseSettings>,
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// The store of objects.
    pub shared: Shared,
}

impl<A: CloudApi + Clone + Send + 'static> Process<A> {
    /// Watches, waits for the lease, and performs rounds until the lease is lost. Passes the result
    /// of each round to `report`.
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
        let (client, metrics) = (self.client.clone(), Arc::clone(&self.metrics));
        let mut lease = self.lease.map(|settings| Lease::new(client, settings, metrics));
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
        let shares = self.settings.shares.clone();
        let (client, api) = (self.client.clone(), self.api.clone());
        let mut controllers =
            Controllers::new(self.client, self.api, self.settings, self.shared, self.metrics);
        let gates = Gates {
            client,
            api,
            shared: shared.clone(),
            metrics: Arc::clone(&metrics),
            records: controllers.records(),
            shares,
        };
        let rounds = async {
            while !shared.with(|store| store.is_complete()) {
                shared.changed.notified().await;
            }
            loop {
                let result = match controllers.step().await {
                    Ok(None) => continue,
                    Ok(Some(synced)) => Ok(synced),
                    Err(error) => Err(error),
                };
                let counter = if result.is_ok() { &metrics.rounds } else { &metrics.failed_rounds };
                Metrics::add(counter, 1);
                report(&result);
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
