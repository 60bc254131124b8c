//! Chooses the groups that are processed next.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;
use uturn_model::ObjectRef;
use uturn_operator::api::Api as CloudApi;

use super::divide::{self, Members};
use super::{Controllers, SyncError};
use crate::index::{Index, Left};
use crate::queue::Work;
use crate::related;

/// The age at which the known state of a load balancer is read again.
const OLD: Duration = Duration::from_secs(60);
/// The interval at which some load balancers with an old state are chosen.
const LOOK: Duration = Duration::from_secs(5);
/// The most load balancers that are chosen at a time.
const MAX_LOOKED_AT: usize = 10;
/// The most objects that are read from the store at once.
const BATCH: usize = 256;

impl<A: CloudApi + Send + 'static> Controllers<A> {
    /// Adds to the due work: changes, retries that are due, and load balancers that were not looked
    /// at for some time.
    pub(super) fn collect(&mut self, now: Instant) {
        if self.collecting.is_none_or(|until| until <= now) {
            self.collecting = None;
            let (own, all) = self.shared.with(|store| {
                let changes = store.take_changes();
                let (own, general): (Vec<_>, Vec<_>) =
                    changes.iter().partition(|change| related::is_own(change));
                let objects = |changes: &[&_]| -> BTreeSet<ObjectRef> {
                    changes.iter().flat_map(|change| related::touched(store, change)).collect()
                };
                (objects(&own), objects(&general[..general.len().min(1)]))
            });
            own.into_iter().for_each(|object| self.due.insert(Work::Object(object)));
            all.into_iter().for_each(|object| self.due.insert_later(Work::Object(object)));
        }
        let again: Vec<Work> = self.queue.due(now).cloned().collect();
        for work in again.into_iter().filter(|work| !self.busy.contains(work)) {
            self.due.insert(work);
        }
        if now >= self.next_look && self.refusals == 0 {
            self.next_look = now + LOOK;
            let before = now.checked_sub(OLD);
            let old = before.map(|before| self.mirror.oldest(before, MAX_LOOKED_AT));
            for id in old.unwrap_or_default() {
                self.mirror.doubt(&id, now);
                self.settled.remove(&id);
                self.due.insert_later(Work::Balancer(id));
            }
        }
    }

    /// Reads the next groups from the store.
    pub(super) fn prepare(&mut self, now: Instant) -> Result<(), SyncError> {
        let shared = self.shared.clone();
        let (groups, faults) = shared.with(|store| {
            self.suspect(store.take_left());
            self.add_orphans(store.index());
            let members = self.next_members(store.index(), now);
            divide::read(store, members)
        });
        let has_faults = !faults.is_empty();
        let is_whole = groups.iter().all(|group| group.fault.is_some());
        for group in groups {
            self.busy.extend(group.works());
            self.ready.push_back(group);
        }
        if has_faults && is_whole {
            return Err(SyncError::Objects(faults));
        }
        Ok(())
    }

    /// Marks load balancers that objects no longer name as suspects.
    fn suspect(&mut self, left: Left) {
        let of_gone = left.uids.iter().flat_map(|uid| self.mirror.of_uid(uid));
        self.suspects.extend(of_gone.cloned());
        let records = &self.hands.records;
        self.suspects.extend(left.uids.iter().flat_map(|uid| records.of_uid(uid)));
        self.suspects.extend(left.balancers);
    }

    /// Adds the suspects that were created for objects that are gone to the due work.
    fn add_orphans(&mut self, index: &Index) {
        for id in std::mem::take(&mut self.suspects) {
            let seen = self.mirror.seen(&id).map(|seen| &seen.balancer);
            let is_orphan = seen.is_some_and(|balancer| divide::is_orphan(index, balancer));
            let is_orphan = is_orphan || divide::has_orphans(index, &self.hands.records, &id);
            if is_orphan && !self.settled.contains(&id) {
                self.due.insert_later(Work::Balancer(id));
            }
        }
    }

    /// Takes the next objects that may be processed, each with those that share its load balancers.
    fn next_members(&mut self, index: &Index, now: Instant) -> Vec<Members> {
        let (mut taken, mut done) = (Vec::new(), Vec::new());
        let (mut works, mut count) = (BTreeSet::new(), 0);
        for work in self.due.iter() {
            if count >= BATCH {
                break;
            }
            if works.contains(work) {
                done.push(work.clone());
                continue;
            }
            let members = divide::members(index, work, &self.mirror, &self.hands.records);
            let all = members.works();
            if all.iter().any(|work| self.busy.contains(work)) {
                continue;
            }
            done.push(work.clone());
            if members.is_empty() {
                self.queue.succeeded(work);
                if let Work::Object(object) = work {
                    self.told.remove(object);
                    self.hands.metrics.unserved.forget(object);
                }
                continue;
            }
            // Work that failed waits; the queue adds it again when it is due.
            if self.queue.is_due(work, now) {
                count += all.len();
                works.extend(all);
                taken.push(members);
            }
        }
        for work in done.iter().chain(&works) {
            self.due.remove(work);
        }
        taken
    }
}
