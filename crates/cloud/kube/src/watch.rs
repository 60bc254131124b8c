//! Watches, each of which keeps the store's objects of one kind current.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::TryStreamExt as _;
use kube::core::DynamicObject;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, DefaultBackoff, Event};
use kube::{Api, Client};
use tokio::sync::Notify;

use crate::kept;
use crate::kinds::WatchedKind;
use crate::metrics::Metrics;
use crate::store::Store;

/// The store, and a notification of its changes.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    store: Arc<Mutex<Store>>,
    /// Notified when an object changes.
    pub changed: Arc<Notify>,
}

impl Shared {
    /// Reads or changes the store.
    pub fn with<T>(&self, action: impl FnOnce(&mut Store) -> T) -> T {
        action(&mut self.store.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Watches a kind for ever. Failures are counted and retried, with growing pauses.
pub async fn watch(
    client: Client,
    kind: &'static WatchedKind,
    shared: Shared,
    metrics: Arc<Metrics>,
) {
    let api: Api<DynamicObject> = Api::all_with(client, &kind.resource());
    let watcher = watcher::watcher(api, watcher::Config::default());
    let mut events = pin!(watcher.backoff(Pauses(DefaultBackoff::default())));
    let mut listed = Vec::new();
    let may = |verb: &str| format!("{verb} {}", kind.plural);
    loop {
        match events.try_next().await {
            Ok(Some(event)) => {
                match &event {
                    Event::InitDone => metrics.mended(&may("list")),
                    Event::Apply(_) | Event::Delete(_) => metrics.mended(&may("watch")),
                    Event::Init | Event::InitApply(_) => {}
                }
                if take(kind, event, &mut listed, &shared) {
                    shared.changed.notify_one();
                }
            }
            Ok(None) => return,
            Err(error) => {
                metrics.watch_failed(kind.kind, &error.to_string());
                if let Some((verb, why)) = forbidden(&error) {
                    metrics.trouble(&may(verb), why);
                }
                if kind.is_optional && is_unknown(&error) {
                    shared.with(|store| store.list(kind, Vec::new()));
                    shared.changed.notify_one();
                }
            }
        }
    }
}

/// The usual pauses between attempts, which do not become short again after a successful list.
/// Otherwise, if objects may be listed and not watched, all of them would be listed every second.
struct Pauses(DefaultBackoff);

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.0.next()
    }
}

impl Backoff for Pauses {
    /// Does nothing: the inner backoff makes pauses short again after two minutes without a
    /// failure.
    fn reset(&mut self) {}
}

/// Returns the verb of a missing right, and the API server's message.
fn forbidden(error: &watcher::Error) -> Option<(&'static str, &str)> {
    let (verb, status) = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status)) => ("list", status),
        watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => ("watch", status),
        watcher::Error::WatchError(status) => ("watch", status),
        _ => return None,
    };
    [401, 403].contains(&status.code).then_some((verb, &*status.message))
}

/// Applies an event to the store. Returns whether the store changed.
fn take(
    kind: &'static WatchedKind,
    event: Event<DynamicObject>,
    listed: &mut Vec<DynamicObject>,
    shared: &Shared,
) -> bool {
    match event {
        Event::Init => {
            listed.clear();
            false
        }
        Event::InitApply(object) => {
            listed.extend(Some(object).filter(|object| kept::is_kept(kind, object)));
            false
        }
        Event::InitDone => {
            shared.with(|store| store.list(kind, std::mem::take(listed)));
            true
        }
        Event::Apply(object) => shared.with(|store| store.apply(kind, object)),
        Event::Delete(object) => shared.with(|store| store.delete(kind, &object)),
    }
}

/// Returns whether the API server does not know the kind.
fn is_unknown(error: &watcher::Error) -> bool {
    let status = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => status,
        _ => return false,
    };
    status.code == 404
}
