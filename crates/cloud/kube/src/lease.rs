//! The lease by which one of several processes works.
//!
//! Clocks are not compared: a process takes a lease over when its holder has not renewed it for
//! as long as it lasts, by the process's own clock.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::api::PostParams;
use kube::core::DynamicObject;
use kube::{Api, Client, Error};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::kinds::LEASE;
use crate::metrics::Metrics;

/// How soon a renewal that failed is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// Which lease it is, and who wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseSettings {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// A name of this process that no other one has.
    pub identity: String,
    /// How long it lasts without being renewed.
    pub duration: Duration,
    /// How often it is renewed, or asked for.
    pub period: Duration,
}

impl LeaseSettings {
    /// The usual times for a process.
    pub fn new(namespace: String, identity: String) -> Self {
        Self {
            namespace,
            name: "uturn-operator".to_owned(),
            identity,
            duration: Duration::from_secs(15),
            period: Duration::from_secs(4),
        }
    }
}

/// A lease.
pub struct Lease {
    api: Api<DynamicObject>,
    settings: LeaseSettings,
    /// What was seen of it last, and when that was seen first.
    seen: Option<(String, Instant)>,
    metrics: Arc<Metrics>,
}

/// The lease was lost: another process may work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lease was lost: {0}")]
pub struct Lost(pub String);

impl Lease {
    /// A lease that is not held.
    pub fn new(client: Client, settings: LeaseSettings, metrics: Arc<Metrics>) -> Self {
        let api = Api::namespaced_with(client, &settings.namespace, &LEASE.resource());
        Self { api, settings, seen: None, metrics }
    }

    /// Waits until the lease is held.
    pub async fn acquire(&mut self) {
        // What cannot be asked now may be asked later.
        while !matches!(self.take().await, Ok(true)) {
            sleep(self.settings.period).await;
        }
    }

    /// Renews the lease until it is lost.
    pub async fn keep(&mut self) -> Lost {
        let mut renewed = Instant::now();
        let mut pause = self.settings.period;
        loop {
            sleep(pause).await;
            // Others see the renewal before its answer is here.
            let asked = Instant::now();
            // A renewal that takes longer than the lease lasts does not renew it.
            let left = self.settings.duration.saturating_sub(renewed.elapsed());
            match timeout(left, self.take()).await {
                Ok(Ok(true)) => (renewed, pause) = (asked, self.settings.period),
                Ok(Ok(false)) => return Lost("another process holds it".to_owned()),
                Ok(Err(error)) if renewed.elapsed() >= self.settings.duration => {
                    return Lost(error.to_string());
                }
                Ok(Err(_)) => pause = self.settings.period.min(AGAIN),
                Err(_) => return Lost("it could not be renewed in time".to_owned()),
            }
        }
    }

    /// Takes or renews the lease. Returns whether it is held.
    async fn take(&mut self) -> Result<bool, Error> {
        let found = self.api.get_opt(&self.settings.name).await;
        let Some(mut lease) = self.noted("get", found)? else {
            let value = json!({
                "apiVersion": LEASE.api_version(),
                "kind": LEASE.kind,
                "metadata": { "name": self.settings.name, "namespace": self.settings.namespace },
                "spec": self.spec(&Value::Null),
            });
            let lease = serde_json::from_value(value).map_err(Error::SerdeError)?;
            let created = self.api.create(&PostParams::default(), &lease).await;
            return is_done(self.noted("create", created).map(drop));
        };
        let holder = lease.data["spec"]["holderIdentity"].as_str().unwrap_or_default();
        if !holder.is_empty() && holder != self.settings.identity && !self.is_over(&lease) {
            return Ok(false);
        }
        lease.data["spec"] = self.spec(&lease.data["spec"]);
        // Its version is in the request: of two processes, one succeeds.
        let replaced = self.api.replace(&self.settings.name, &PostParams::default(), &lease).await;
        is_done(self.noted("update", replaced).map(drop))
    }

    /// Notes whether a right is missing.
    fn noted<T>(&self, verb: &str, result: Result<T, Error>) -> Result<T, Error> {
        let what = format!("{verb} {}", LEASE.plural);
        match &result {
            Ok(_) => self.metrics.mended(&what),
            Err(Error::Api(status)) if [401, 403].contains(&status.code) => {
                self.metrics.trouble(&what, &status.message);
            }
            Err(_) => {}
        }
        result
    }

    /// Whether another process has not renewed its lease for as long as it lasts.
    fn is_over(&mut self, lease: &DynamicObject) -> bool {
        let version = lease.metadata.resource_version.clone().unwrap_or_default();
        match &self.seen {
            Some((seen, since)) if *seen == version => since.elapsed() >= self.settings.duration,
            _ => {
                self.seen = Some((version, Instant::now()));
                false
            }
        }
    }

    fn spec(&self, before: &Value) -> Value {
        let now = format!("{:.6}", Timestamp::now());
        let is_renewed = before["holderIdentity"] == *self.settings.identity;
        let transitions = before["leaseTransitions"].as_i64();
        let (acquired, transitions) = match (is_renewed, transitions) {
            (true, _) => (before["acquireTime"].clone(), transitions.unwrap_or_default()),
            (false, before) => (now.as_str().into(), before.map_or(0, |count| count + 1)),
        };
        json!({
            "holderIdentity": self.settings.identity,
            "leaseDurationSeconds": self.settings.duration.as_secs(),
            "acquireTime": acquired,
            "renewTime": now,
            "leaseTransitions": transitions,
        })
    }
}

/// Whether a write succeeded. One that another process was faster with did not.
fn is_done(result: Result<(), Error>) -> Result<bool, Error> {
    match result {
        Ok(()) => Ok(true),
        Err(Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error),
    }
}
