//! What is known of a watched cluster.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::Value;

use crate::error::LiveError;
use crate::form::{Kept, Purpose, keep, name_of};
use crate::plan::listed_kinds;
use crate::read::{ConfigMapRead, config_maps};
use crate::reading::{Kind, Reading, now};

/// A cluster as it is known now. Threads share it.
#[derive(Debug)]
pub struct WatchedCluster {
    purpose: Purpose,
    state: Mutex<State>,
    changed: Condvar,
    /// Whether slices say all that Endpoints say; `None` before they were read.
    slices: tokio::sync::watch::Sender<Option<bool>>,
}

/// A state of a watched cluster: with each change, one of the numbers grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Changes of objects, and of what may be read.
    pub changes: u64,
    /// Changes of what is not current.
    pub conditions: u64,
}

/// Something that may not be known as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCurrent {
    /// Which objects: `Pods`, `ConfigMap kube-system/coredns`.
    pub what: String,
    /// Since when, in UTC: `2026-11-23T06:00:00Z`.
    pub since: String,
    /// Whether it is read again from time to time, since it may not be watched. Else it is as it
    /// was when the server answered the last time.
    pub is_read_again: bool,
    /// What the server says, or what came instead of an answer.
    pub why: String,
}

/// Why a watch ended.
#[derive(Debug)]
pub enum WatchEnd {
    /// This process was told to end.
    Interrupted,
    /// The cluster could not be read for the first time.
    Failed(LiveError),
}

#[derive(Debug, Default)]
struct State {
    server: Option<String>,
    begun: String,
    /// By their place in the list of kinds.
    kinds: BTreeMap<usize, KnownKind>,
    config_maps: BTreeMap<usize, KnownConfigMap>,
    /// How many kinds and ConfigMaps there are.
    is_read: bool,
    moment: Moment,
    end: Option<WatchEnd>,
}

#[derive(Debug)]
struct KnownKind {
    /// Without objects.
    kind: Kind,
    /// By name, in the order in which a server lists them.
    objects: BTreeMap<String, Arc<Kept>>,
    not_current: Option<NotCurrent>,
}

#[derive(Debug)]
struct KnownConfigMap {
    read: ConfigMapRead,
    not_current: Option<NotCurrent>,
}

impl WatchedCluster {
    /// Of which nothing is known yet.
    pub fn new(purpose: Purpose) -> Self {
        let (slices, _) = tokio::sync::watch::channel(None);
        Self { purpose, state: Mutex::default(), changed: Condvar::new(), slices }
    }

    /// Waits until the whole cluster is known and not in this state, at most until some time.
    /// Returns its state then.
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

    /// Waits, whatever changes, until some time.
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

    /// What reading the cluster now would give, as far as it is current; and by what several of a
    /// kind are called, the version up to which they are known.
    pub fn reading(&self) -> (Reading, Moment, BTreeMap<String, String>) {
        let state = self.lock();
        let whole = |known: &KnownKind| {
            let objects = known.objects.values().cloned().collect();
            Kind { objects, ..known.kind.clone() }
        };
        // In the order in which they are read.
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

    /// What may not be known as it is now.
    pub fn not_current(&self) -> Vec<NotCurrent> {
        let state = self.lock();
        let kinds = state.kinds.values().filter_map(|known| known.not_current.clone());
        let maps = state.config_maps.values().filter_map(|known| known.not_current.clone());
        kinds.chain(maps).collect()
    }

    /// Whether the whole cluster is known.
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

    /// Takes what reading a kind gave.
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
        // What may not be watched stays so until it is: the note is not taken back here.
        let note = old.and_then(|old| old.not_current);
        let was_stale = note.as_ref().is_some_and(|note| !note.is_read_again);
        if let Some(known) = state.kinds.get_mut(&at) {
            known.not_current = note.filter(|note| note.is_read_again);
        }
        state.moment.conditions += u64::from(was_stale);
        self.changed(state, !is_same);
    }

    /// Takes back a kind that is not needed any more.
    pub(super) fn forget_kind(&self, at: usize) {
        let mut state = self.lock();
        let was_known = state.kinds.remove(&at).is_some();
        self.changed(state, was_known);
    }

    /// Takes an object as it is now.
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

    /// Takes note that an object is gone.
    pub(super) fn remove(&self, at: usize, object: &Value) {
        let mut state = self.lock();
        let Some(known) = state.kinds.get_mut(&at) else { return };
        known.note_version(object);
        let was_there = known.objects.remove(&name_of(object)).is_some();
        self.changed(state, was_there);
    }

    /// Takes note that nothing else happened up to a version.
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

    /// Takes note that a kind may be listed and not watched.
    pub(super) fn note_listed_again(&self, at: usize, why: &str) {
        self.note(
            |state| Some(&mut state.kinds.get_mut(&at)?.not_current),
            Some(NotCurrent::new(called(at), true, why)),
        );
    }

    /// Takes what reading a ConfigMap gave, or what happened to it.
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

    /// Waits until slices say all that Endpoints say, or until they do not.
    pub(super) async fn wait_for_slices(&self, all: bool) {
        let mut slices = self.slices.subscribe();
        // The sender is here, so this cannot fail.
        let _ = slices.wait_for(|known| *known == Some(all)).await;
    }

    /// Notes something of what is not current, where it is new.
    fn note(
        &self,
        place: impl Fn(&mut State) -> Option<&mut Option<NotCurrent>>,
        new: Option<NotCurrent>,
    ) {
        let mut state = self.lock();
        let Some(known) = place(&mut state) else { return };
        let is_same = match (&*known, &new) {
            (None, None) => true,
            // It is so since then, for whatever reason.
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

    /// Takes note of a change.
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
    /// Whether each kind that is needed was read, and each ConfigMap.
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
    /// Whether it says the same, up to whatever version.
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

/// The time in UTC: `2026-11-23T06:00:00Z`.
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
