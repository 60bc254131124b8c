//! The known state of a watched cluster.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::Value;

use crate::error::LiveError;
use crate::form::{Kept, Purpose, keep, name_of};
use crate::plan::listed_kinds;
use crate::read::{ConfigMapRead, config_maps};
use crate::reading::{Kind, Reading, now};

/// The current state of a cluster, shared by several threads.
#[derive(Debug)]
pub struct WatchedCluster {
    purpose: Purpose,
    state: Mutex<State>,
    changed: Condvar,
    /// Whether slices contain all that Endpoints do; `None` before slices were read.
    slices: tokio::sync::watch::Sender<Option<bool>>,
}

/// The state of a watched cluster as two numbers. Each change increases one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// The number of changes of objects, and of what may be read.
    pub changes: u64,
    /// The number of changes of what is not current.
    pub conditions: u64,
}

/// Objects whose known state may not be current.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCurrent {
    /// The name of the objects: `Pods`, `ConfigMap kube-system/coredns`.
    pub what: String,
    /// The time since which they may be outdated, in UTC: `2026-11-23T06:00:00Z`.
    pub since: String,
    /// Whether they are read again from time to time, since they may not be watched. Otherwise
    /// their state is that of the server's last answer.
    pub is_read_again: bool,
    /// The server's message, or the error that came instead of an answer.
    pub why: String,
}

/// The reason why a watch ended.
#[derive(Debug)]
pub enum WatchEnd {
    /// A signal told this process to end.
    Interrupted,
    /// The cluster could not be read for the first time.
    Failed(LiveError),
}

#[derive(Debug, Default)]
struct State {
    server: Option<String>,
    begun: String,
    /// The kinds by their position in the list of kinds.
    kinds: BTreeMap<usize, KnownKind>,
    config_maps: BTreeMap<usize, KnownConfigMap>,
    /// Whether all kinds and ConfigMaps were read once.
    is_read: bool,
    moment: Moment,
    end: Option<WatchEnd>,
}

#[derive(Debug)]
struct KnownKind {
    /// The kind without its objects.
    kind: Kind,
    /// The objects by name, in the order in which a server lists them.
    objects: BTreeMap<String, Arc<Kept>>,
    not_current: Option<NotCurrent>,
}

#[derive(Debug)]
struct KnownConfigMap {
    read: ConfigMapRead,
    not_current: Option<NotCurrent>,
}

impl WatchedCluster {
    /// Returns a cluster of which nothing is known yet.
    pub fn new(purpose: Purpose) -> Self {
        let (slices, _) = tokio::sync::watch::channel(None);
        Self { purpose, state: Mutex::default(), changed: Condvar::new(), slices }
    }

    /// Waits until the whole cluster is known and its state differs from `seen`, at most until
    /// `until`. Returns the state then.
    ///
    /// # Errors
    /// If the watch has ended.
    pub fn wait(&self, seen: Moment, until: Option<Instant>) -> Result<Moment, WatchEnd> {
        let mut state = self.lock();
        loop {
            if let Some(end) = state.end.take() {
                return Err(end);
            }
            if state.is_read && state.moment != seen {
                return Ok(state.moment);
            }
            state = match until {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Ok(state.moment);
                    }
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Waits until a time, whatever changes.
    ///
    /// # Errors
    /// If the watch has ended.
    pub fn wait_until(&self, until: Instant) -> Result<(), WatchEnd> {
        let mut state = self.lock();
        loop {
            if let Some(end) = state.end.take() {
                return Err(end);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns what reading the cluster now would return, as far as it is current, with its state,
    /// and the version of each kind up to which it is known, by the kind's plural.
    pub fn reading(&self) -> (Reading, Moment, BTreeMap<String, String>) {
        let state = self.lock();
        let whole = |known: &KnownKind| {
            let objects = known.objects.values().cloned().collect();
            Kind { objects, ..known.kind.clone() }
        };
        // The kinds are in the order in which they are read.
        let (last, first): (Vec<&KnownKind>, Vec<&KnownKind>) =
            state.kinds.values().partition(|known| known.kind.kind == "Endpoints");
        let mut kinds: Vec<Kind> = first.into_iter().chain(last).map(whole).collect();
        let names =
            uturn_snapshot::config_maps().map(|(namespace, name)| format!("{namespace}/{name}"));
        let known = state.config_maps.values().map(|known| known.read.clone());
        let (maps, refused) = config_maps(self.purpose, names.zip(known));
        kinds.push(maps);
        let (server, begun) = (state.server.clone(), state.begun.clone());
        let moment = state.moment;
        drop(state);
        let versions = kinds
            .iter()
            .filter_map(|kind| Some((kind.called.clone(), kind.resource_version.clone()?)));
        let versions = versions.collect();
        (Reading::new(kinds, refused, server, begun), moment, versions)
    }

    /// Returns the objects whose known state may not be current.
    pub fn not_current(&self) -> Vec<NotCurrent> {
        let state = self.lock();
        let kinds = state.kinds.values().filter_map(|known| known.not_current.clone());
        let maps = state.config_maps.values().filter_map(|known| known.not_current.clone());
        kinds.chain(maps).collect()
    }

    /// Returns whether the whole cluster is known.
    pub(super) fn is_read(&self) -> bool {
        self.lock().is_read
    }

    pub(super) fn begin(&self, server: Option<String>) {
        let mut state = self.lock();
        state.server = server;
        state.begun = now();
    }

    pub(super) fn end(&self, end: WatchEnd) {
        self.lock().end = Some(end);
        self.changed.notify_all();
    }

    pub(super) fn has_kind(&self, at: usize) -> bool {
        self.lock().kinds.contains_key(&at)
    }

    pub(super) fn has_config_map(&self, at: usize) -> bool {
        self.lock().config_maps.contains_key(&at)
    }

    /// Replaces a kind by what was just read of it.
    pub(super) fn set_kind(&self, at: usize, mut kind: Kind) {
        let objects = std::mem::take(&mut kind.objects).into_iter();
        let objects = objects.map(|kept| (kept.name.clone(), kept)).collect();
        if kind.kind == "EndpointSlice" {
            self.slices.send_replace(Some(kind.is_all_slices()));
        }
        let mut state = self.lock();
        let known = KnownKind { kind, objects, not_current: None };
        let old = state.kinds.insert(at, known);
        let new = &state.kinds[&at];
        let is_same = old.as_ref().is_some_and(|old| old.is_like(new));
        // A note that the kind may not be watched stays until a watch succeeds: it is not removed
        // here.
        let note = old.and_then(|old| old.not_current);
        let was_stale = note.as_ref().is_some_and(|note| !note.is_read_again);
        if let Some(known) = state.kinds.get_mut(&at) {
            known.not_current = note.filter(|note| note.is_read_again);
        }
        state.moment.conditions += u64::from(was_stale);
        self.changed(state, !is_same);
    }

    /// Removes a kind that is not needed any more.
    pub(super) fn forget_kind(&self, at: usize) {
        let mut state = self.lock();
        let was_known = state.kinds.remove(&at).is_some();
        self.changed(state, was_known);
    }

    /// Replaces an object by its current state.
    pub(super) fn put(&self, at: usize, object: Value) {
        let mut state = self.lock();
        let Some(known) = state.kinds.get_mut(&at) else { return };
        let Some(api_version) = known.kind.api_version else { return };
        known.note_version(&object);
        let kept = keep(object, api_version, known.kind.kind, known.kind.form);
        let is_same = known.objects.get(&kept.name).is_some_and(|old| **old == kept);
        if !is_same {
            known.objects.insert(kept.name.clone(), Arc::new(kept));
        }
        self.changed(state, !is_same);
    }

    /// Removes an object that is gone.
    pub(super) fn remove(&self, at: usize, object: &Value) {
        let mut state = self.lock();
        let Some(known) = state.kinds.get_mut(&at) else { return };
        known.note_version(object);
        let was_there = known.objects.remove(&name_of(object)).is_some();
        self.changed(state, was_there);
    }

    /// Notes that nothing else happened up to a version.
    pub(super) fn note_version(&self, at: usize, version: &str) {
        if let Some(known) = self.lock().kinds.get_mut(&at) {
            known.kind.resource_version = Some(version.to_owned());
        }
    }

    pub(super) fn note_current(&self, at: usize) {
        self.note(|state| Some(&mut state.kinds.get_mut(&at)?.not_current), None);
    }

    pub(super) fn note_stale(&self, at: usize, why: &str) {
        self.note(
            |state| Some(&mut state.kinds.get_mut(&at)?.not_current),
            Some(NotCurrent::new(called(at), false, why)),
        );
    }

    /// Notes that a kind may be listed, but not watched.
    pub(super) fn note_listed_again(&self, at: usize, why: &str) {
        self.note(
            |state| Some(&mut state.kinds.get_mut(&at)?.not_current),
            Some(NotCurrent::new(called(at), true, why)),
        );
    }

    /// Replaces a ConfigMap by what was just read of it, or by what happened to it.
    pub(super) fn set_config_map(&self, at: usize, read: ConfigMapRead) {
        let mut state = self.lock();
        let known = state.config_maps.insert(at, KnownConfigMap { read, not_current: None });
        let is_same = known.as_ref().is_some_and(|old| old.read == state.config_maps[&at].read);
        let note = known.and_then(|old| old.not_current);
        let was_stale = note.as_ref().is_some_and(|note| !note.is_read_again);
        if let Some(known) = state.config_maps.get_mut(&at) {
            known.not_current = note.filter(|note| note.is_read_again);
        }
        state.moment.conditions += u64::from(was_stale);
        self.changed(state, !is_same);
    }

    pub(super) fn note_config_map_stale(&self, at: usize, why: &str) {
        self.note(
            |state| Some(&mut state.config_maps.get_mut(&at)?.not_current),
            Some(NotCurrent::new(config_map(at), false, why)),
        );
    }

    pub(super) fn note_config_map_read_again(&self, at: usize, why: &str) {
        self.note(
            |state| Some(&mut state.config_maps.get_mut(&at)?.not_current),
            Some(NotCurrent::new(config_map(at), true, why)),
        );
    }

    pub(super) fn note_config_map_current(&self, at: usize) {
        self.note(|state| Some(&mut state.config_maps.get_mut(&at)?.not_current), None);
    }

    /// Waits until slices contain all that Endpoints do (`all`), or do not.
    pub(super) async fn wait_for_slices(&self, all: bool) {
        let mut slices = self.slices.subscribe();
        // The sender is owned by `self`, so this cannot fail.
        let _ = slices.wait_for(|known| *known == Some(all)).await;
    }

    /// Sets or clears a note that something is not current, if that changes it.
    fn note(
        &self,
        place: impl Fn(&mut State) -> Option<&mut Option<NotCurrent>>,
        new: Option<NotCurrent>,
    ) {
        let mut state = self.lock();
        let Some(known) = place(&mut state) else { return };
        let is_same = match (&*known, &new) {
            (None, None) => true,
            // The earlier time stays, whatever the reason is now.
            (Some(known), Some(new)) => known.is_read_again == new.is_read_again,
            _ => false,
        };
        if !is_same {
            *known = new;
            state.moment.conditions += 1;
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Counts a change, and wakes the waiting threads.
    fn changed(&self, mut state: MutexGuard<'_, State>, is_change: bool) {
        state.moment.changes += u64::from(is_change);
        state.is_read = state.is_read || state.has_all();
        drop(state);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns whether each needed kind and each ConfigMap was read.
    fn has_all(&self) -> bool {
        let listed = listed_kinds();
        let slices = self.kinds.values().find(|known| known.kind.kind == "EndpointSlice");
        let has_slices = slices.is_some_and(|slices| slices.kind.is_all_slices());
        let is_needed = |kind: &str| kind != "Endpoints" || !has_slices;
        let mut needed = (0..).zip(&listed).filter(|(_, listed)| is_needed(listed.kind));
        needed.all(|(at, _)| self.kinds.contains_key(&at))
            && self.config_maps.len() == uturn_snapshot::config_maps().count()
    }
}

impl KnownKind {
    /// Returns whether the objects are the same, apart from the version.
    fn is_like(&self, other: &Self) -> bool {
        self.kind.api_version == other.kind.api_version
            && self.kind.extent == other.kind.extent
            && self.objects == other.objects
    }

    fn note_version(&mut self, object: &Value) {
        if let Some(version) = object["metadata"]["resourceVersion"].as_str() {
            self.kind.resource_version = Some(version.to_owned());
        }
    }
}

impl NotCurrent {
    fn new(what: String, is_read_again: bool, why: &str) -> Self {
        Self { what, since: time(), is_read_again, why: why.to_owned() }
    }
}

/// Returns the current time in UTC: `2026-11-23T06:00:00Z`.
pub fn time() -> String {
    let time = jiff::Timestamp::now();
    time.round(jiff::Unit::Second).unwrap_or(time).to_string()
}

fn called(at: usize) -> String {
    listed_kinds().get(at).map(|listed| listed.called()).unwrap_or_default()
}

fn config_map(at: usize) -> String {
    let name = uturn_snapshot::config_maps().nth(at);
    name.map(|(namespace, name)| format!("ConfigMap {namespace}/{name}")).unwrap_or_default()
}
