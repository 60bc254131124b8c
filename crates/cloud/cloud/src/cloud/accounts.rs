//! The accounts in memory: read without waiting for the disk, changed in batches.
//!
//! Writers take turns. Each runs against all changes of the writers before it, and adds its own to
//! the open batch. A writer that finds no other waiting stores the batch in one transaction, and
//! those that come meanwhile make up the next. Readers see what is stored, and nothing of a batch
//! until all of it is.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

use super::{Batch, Storage, StorageError};
use crate::state::{Account, Accounts, Changes, Place, Record, RecordKey, RecordKind};

/// Requests that are stored in one transaction at most.
const BATCH: usize = 256;

/// How long tasks are kept after they began. Those that are still running are kept in any case.
pub(super) const TASKS_KEPT: SignedDuration = SignedDuration::from_hours(7 * 24);
/// How many tasks that have ended an account keeps in a region: the latest.
pub(super) const MOST_TASKS: usize = 10_000;
/// How many more there may be before they are searched for the oldest.
const TASKS_SLACK: usize = MOST_TASKS / 8;
/// How often an account is searched for what is old.
const PRUNED_EVERY: SignedDuration = SignedDuration::from_hours(1);

/// The accounts in memory.
#[derive(Debug)]
pub(super) struct SharedAccounts {
    /// What is stored.
    stored: RwLock<Accounts>,
    turn: Mutex<Turn>,
    batch_ended: Condvar,
    /// How many changes there were; it changes while `stored` is locked.
    changes: watch::Sender<u64>,
    /// Writers that wait for their turn.
    waiting: AtomicUsize,
}

/// What the writer whose turn it is may change.
#[derive(Debug)]
struct Turn {
    /// What is stored, with the open batch.
    ahead: Accounts,
    batch: Batch,
    /// How many requests have run since the batch was opened.
    requests: usize,
    outcome: Outcome,
    /// When accounts were last searched for what is old.
    pruned: HashMap<Place, Timestamp>,
}

/// What became of a batch, once it is known.
type Outcome = Arc<OnceLock<Result<(), String>>>;

impl SharedAccounts {
    pub(super) fn new(stored: Accounts) -> Self {
        let turn = Turn {
            ahead: stored.clone(),
            batch: Batch::new(),
            requests: 0,
            outcome: Outcome::default(),
            pruned: HashMap::new(),
        };
        Self {
            stored: RwLock::new(stored),
            turn: Mutex::new(turn),
            batch_ended: Condvar::new(),
            changes: watch::Sender::new(1),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Sees how many changes there were.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Runs against what is stored.
    pub(super) fn read<T>(&self, run: impl FnOnce(&Accounts) -> T) -> T {
        run(&self.stored())
    }

    /// Runs a request that may change accounts, and returns its answer when everything that it
    /// saw and changed is stored. Tasks that are old at the time `now` are removed with it.
    ///
    /// # Errors
    ///
    /// Returns the request's own error, or why changes could not be stored.
    pub(super) fn change<T, E: From<StorageError>>(
        &self,
        now: Option<Timestamp>,
        storage: &dyn Storage,
        run: impl FnOnce(&Accounts) -> Result<(Batch, T), E>,
    ) -> Result<T, E> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let mut turn = self.turn();
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        // A request that panics has added nothing, and the batch of the others goes on.
        let ran = catch_unwind(AssertUnwindSafe(|| run(&turn.ahead)));
        let ran = ran.map(|result| result.map(|(changes, answer)| (turn.add(changes), answer).1));
        turn.requests += 1;
        // An answer may rest on changes of others: it waits for them too.
        let outcome = (!turn.batch.is_empty()).then(|| Arc::clone(&turn.outcome));
        // A writer that waits now runs later and finds the batch again.
        if turn.requests >= BATCH || self.waiting.load(Ordering::SeqCst) == 0 {
            self.store(&mut turn, now, storage);
        }
        if let Some(outcome) = outcome {
            let ended = self.batch_ended.wait_while(turn, |_| outcome.get().is_none());
            drop(ended);
            if let Some(Err(error)) = outcome.get() {
                return Err(StorageError(error.clone()).into());
            }
        } else {
            drop(turn);
        }
        ran.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Stores the open batch, and begins the next.
    fn store(&self, turn: &mut Turn, now: Option<Timestamp>, storage: &dyn Storage) {
        turn.requests = 0;
        if turn.batch.is_empty() {
            return;
        }
        if let Some(now) = now {
            turn.prune(now);
        }
        let batch = std::mem::take(&mut turn.batch);
        let stored = catch_unwind(AssertUnwindSafe(|| storage.commit(&batch)))
            .unwrap_or_else(|_| Err(StorageError("the storage failed".to_owned())));
        match stored {
            Ok(()) => {
                let is_to_be_served = batch.values().flatten().any(is_to_be_served);
                let mut accounts = self.stored.write().unwrap_or_else(PoisonError::into_inner);
                for (place, changes) in batch {
                    apply(&mut accounts, place, changes);
                }
                if is_to_be_served {
                    self.changes.send_modify(|count| *count += 1);
                }
            }
            Err(_) => turn.ahead.clone_from(&self.stored()),
        }
        let outcome = std::mem::take(&mut turn.outcome);
        // Each batch has an outcome of its own, which is set here alone.
        let _ = outcome.set(stored.map_err(|error| error.to_string()));
        self.batch_ended.notify_all();
    }

    fn stored(&self) -> RwLockReadGuard<'_, Accounts> {
        // Changes are applied as a whole; nothing that panics runs meanwhile.
        self.stored.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// Adds changes to the open batch.
    fn add(&mut self, changes: Batch) {
        for (place, changes) in changes {
            if !changes.is_empty() {
                apply(&mut self.ahead, place.clone(), changes.clone());
                self.batch.entry(place).or_default().extend(changes);
            }
        }
    }

    /// Removes what is old from the accounts that the batch changes.
    fn prune(&mut self, now: Timestamp) {
        let mut removed = Batch::new();
        for place in self.batch.keys() {
            let is_recent = |last: &Timestamp| now.duration_since(*last) < PRUNED_EVERY;
            let has_many = self
                .ahead
                .get(place)
                .is_some_and(|account| account.tasks.len() > MOST_TASKS + TASKS_SLACK);
            if !has_many && self.pruned.get(place).is_some_and(is_recent) {
                continue;
            }
            self.pruned.insert(place.clone(), now);
            if let Some(account) = self.ahead.get(place) {
                let keys = old_records(account, now);
                removed.insert(place.clone(), keys.map(|key| (key, None)).collect());
            }
        }
        self.add(removed);
    }
}

/// Tasks that have ended and began long ago or before many others, and client tokens whose load
/// balancers are gone, which stand for nothing any more.
fn old_records(account: &Account, now: Timestamp) -> impl Iterator<Item = RecordKey> {
    let ended = account.tasks.iter().filter(|(_, task)| !task.is_running(now));
    let mut ended: Vec<(Timestamp, &String)> = ended.map(|(id, task)| (task.began, id)).collect();
    ended.sort_unstable();
    let surplus = ended.len().saturating_sub(MOST_TASKS);
    let tasks = ended.into_iter().enumerate().filter(move |(position, (began, _))| {
        *position < surplus || now.duration_since(*began) > TASKS_KEPT
    });
    let tasks = tasks.map(|(_, (_, id))| (RecordKind::Task, id));
    let tokens = account.client_tokens.iter().filter(|(_, load_balancers)| {
        !load_balancers.iter().any(|id| account.load_balancers.contains_key(id))
    });
    let tokens = tokens.map(|(id, _)| (RecordKind::ClientToken, id));
    tasks.chain(tokens).map(|(kind, id)| RecordKey { kind, id: id.clone() })
}

fn apply(accounts: &mut Accounts, place: Place, changes: Changes) {
    let account = accounts.entry(place).or_default();
    for (key, record) in changes {
        account.apply(key, record);
    }
}

/// Whether a data plane has to know of a changed record. It knows which tasks have ended.
fn is_to_be_served((key, record): (&RecordKey, &Option<Record>)) -> bool {
    match record {
        Some(Record::Task(task)) => task.is_serving(),
        _ => key.kind != RecordKind::Task,
    }
}
