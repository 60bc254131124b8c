//! The lease that lets only one of several processes work.
//!
//! Clocks are not compared: a process takes a lease over when its holder has not renewed it for the
//! lease's duration, by the process's own clock.

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

/// The pause after a renewal that failed.
const AGAIN: Duration = Duration::from_secs(1);

/// The settings of a lease and of the process that wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseSettings {
    /// The namespace of the lease.
    pub namespace: String,
    /// The name of the lease.
    pub name: String,
    /// The unique name of this process.
    pub identity: String,
    /// The time after which the lease ends unless it is renewed.
    pub duration: Duration,
    /// The interval at which the lease is renewed or requested.
    pub period: Duration,
}

impl LeaseSettings {
    /// Returns settings with the usual times.
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
    /// The version of the lease that was seen last, and the time at which it was first seen.
    seen: Option<(String, Instant)>,
    metrics: Arc<Metrics>,
}

/// The lease was lost: another process may work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lease was lost: {0}")]
pub struct Lost(pub String);

impl Lease {
    /// Returns a lease that is not held.
    pub fn new(client: Client, settings: LeaseSettings, metrics: Arc<Metrics>) -> Self {
        let api = Api::namespaced_with(client, &settings.namespace, &LEASE.resource());
        Self { api, settings, seen: None, metrics }
    }

    /// Waits until the lease is held.
    pub async fn acquire(&mut self) {
        // A request that fails now may succeed later.
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
            // Other processes may see the renewal before its answer arrives.
            let asked = Instant::now();
            // A renewal that takes longer than the rest of the lease's duration comes too late.
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
        // The request states the lease's version: of two processes, only one succeeds.
        let replaced = self.api.replace(&self.settings.name, &PostParams::default(), &lease).await;
        is_done(self.noted("update", replaced).map(drop))
    }

    /// Notes whether the controllers lack the right for a request.
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

    /// Returns whether another process has not renewed its lease for the lease's duration.
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

/// Returns whether a write succeeded. A write that conflicts with another process's did not.
fn is_done(result: Result<(), Error>) -> Result<bool, Error> {
    match result {
        Ok(()) => Ok(true),
        Err(Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error),
    }
}
