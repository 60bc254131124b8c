//! Readiness gates: a pod that is a target of load balancers becomes ready when they serve it.
//!
//! The store keeps only pods with the gate, and of these only the fields that decide whether they
//! are targets. While gates are closed, the cloud is asked for the health of their pods. A gate
//! that is open stays open.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::core::DynamicObject;
use kube::{Api, Client, Error};
use serde_json::json;
use tokio::time::sleep;
use uturn_model::{NamespacedName, ObjectRef};
use uturn_operator::api::Api as CloudApi;
use uturn_operator::environment::Environment;
use uturn_operator::readiness::{GATE, REASON, Waiting, waiting};
use uturn_operator::shares::Shares;
use uturn_operator::wanted;

use crate::cluster;
use crate::kinds::POD;
use crate::metrics::Metrics;
use crate::records::Records;
use crate::sync::SyncError;
use crate::watch::Shared;
use crate::{pods, related};

/// The interval at which the cloud is asked while pods wait.
const ASK: Duration = Duration::from_secs(3);

/// A task that opens the gates of pods.
pub struct Gates<A> {
    /// The API server.
    pub client: Client,
    /// The cloud's API.
    pub api: A,
    /// The store of objects.
    pub shared: Shared,
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// The ledger of ports of the load balancers that users made.
    pub records: Arc<Records>,
    /// The namespaces that may use each of these load balancers.
    pub shares: Shares,
}

/// The result of one check of the pods that wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// The number of gates that were opened.
    pub opened: usize,
    /// The pods that still wait.
    pub pending: BTreeSet<NamespacedName>,
}

impl<A: CloudApi> Gates<A> {
    /// Opens gates for ever.
    pub async fn keep(self) -> std::convert::Infallible {
        loop {
            // A check that fails now is repeated.
            let _ = self.open().await;
            sleep(ASK).await;
        }
    }

    /// Opens the gates of the pods that load balancers serve. Without pods that wait, makes no
    /// request.
    ///
    /// # Errors
    ///
    /// Returns why it is not known which pods are served.
    pub async fn open(&self) -> Result<Opened, SyncError> {
        let closed: BTreeSet<NamespacedName> =
            self.shared.with(|store| store.of(&POD).filter_map(pods::closed).collect());
        if closed.is_empty() || !self.shared.with(|store| store.is_complete()) {
            return Ok(Opened::default());
        }
        let live = self.shared.with(|store| {
            let keys = closed.iter().map(|pod| (pod.namespace.to_string(), pod.name.to_string()));
            let meant = keys.flat_map(|key| related::of_pod(store, &key)).collect();
            cluster::read(store, &meant)
        });
        let live = live.map_err(SyncError::Objects)?;
        let Some(cluster) = &live.cluster else { return Ok(Opened::default()) };
        let is_meant = |object: &ObjectRef| live.objects.contains_key(object);
        let ids = self.records.ids();
        let environment = Environment {
            ledger: self.records.part(&ids),
            shares: self.shares.clone(),
            ..live.environment("", "")
        };
        let wanted = wanted::wanted_for(cluster, &environment, is_meant).unwrap_or_default();
        let waiting = waiting(&self.api, cluster, &wanted, &closed).await;
        let Waiting { served, pending } = waiting.map_err(SyncError::Observe)?;
        let mut opened = Opened { opened: 0, pending: pending.into_keys().collect() };
        for pod in served.into_keys() {
            match self.patch(&pod).await {
                Ok(()) => {
                    opened.opened += 1;
                    Metrics::add(&self.metrics.writes, 1);
                }
                Err(_) => {
                    Metrics::add(&self.metrics.failed_writes, 1);
                    opened.pending.insert(pod);
                }
            }
        }
        Ok(opened)
    }

    /// Sets the gate's condition of a pod. The other conditions belong to the kubelet.
    async fn patch(&self, pod: &NamespacedName) -> Result<(), Error> {
        let namespace = pod.namespace.as_str();
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), namespace, &POD.resource());
        let now = Timestamp::now();
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
        let patch = json!({ "status": { "conditions": [{
            "type": GATE,
            "status": "True",
            "reason": REASON,
            "message": "registered with its load balancers, and healthy",
            "lastTransitionTime": now,
        }] } });
        let parameters = PatchParams::default();
        let name = pod.name.as_str();
        let result = api.patch_status(name, &parameters, &Patch::Strategic(&patch)).await;
        self.metrics.note("patch", "pods/status", result.as_ref().err());
        result.map(drop)
    }
}
