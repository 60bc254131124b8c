//! The accounts in memory: reads do not wait for the disk, and changes are stored in batches.
//!
//! Writers take turns. Each runs against all changes of the writers before it, and adds its own to
//! the open batch. A writer that finds no other waiting stores the batch in one transaction;
//! writers that come meanwhile make up the next batch. Readers see only stored data: a batch
//! becomes visible as a whole.

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

/// The most requests that are stored in one transaction.
const BATCH: usize = 256;

/// How long tasks are kept after they began. Running tasks are kept in any case.
pub(super) const TASKS_KEPT: SignedDuration = SignedDuration::from_hours(7 * 24);
/// The most ended tasks that an account keeps in a region: the latest ones.
pub(super) const MOST_TASKS: usize = 10_000;
/// The number of tasks beyond [`MOST_TASKS`] at which the oldest are searched for and removed.
const TASKS_SLACK: usize = MOST_TASKS / 8;
/// The interval at which an account is searched for old records.
const PRUNED_EVERY: SignedDuration = SignedDuration::from_hours(1);

/// The accounts in memory.
#[derive(Debug)]
pub(super) struct SharedAccounts {
    /// The accounts as they are stored.
    stored: RwLock<Accounts>,
    turn: Mutex<Turn>,
    batch_ended: Condvar,
    /// The number of changes so far; only changes while `stored` is locked for writing.
    changes: watch::Sender<u64>,
    /// The number of writers that wait for their turn.
    waiting: AtomicUsize,
}

/// The state that only the writer whose turn it is may change.
#[derive(Debug)]
struct Turn {
    /// The stored accounts with the changes of the open batch.
    ahead: Accounts,
    batch: Batch,
    /// The number of requests that have run since the batch was opened.
    requests: usize,
    outcome: Outcome,
    /// The time of each account's last search for old records.
    pruned: HashMap<Place, Timestamp>,
}

/// The result of storing a batch, once it is known.
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

    /// Returns a receiver of the number of changes.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Runs a function against the stored accounts.
    pub(super) fn read<T>(&self, run: impl FnOnce(&Accounts) -> T) -> T {
        run(&self.stored())
    }

    /// Runs a request that may change accounts. Returns its answer when everything that the request
    /// saw and changed is stored. If `now` is given, also removes old records of the changed
    /// accounts.
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
        // A request that panics has added nothing; the batch of the other requests goes on.
        let ran = catch_unwind(AssertUnwindSafe(|| run(&turn.ahead)));
        let ran = ran.map(|result| result.map(|(changes, answer)| (turn.add(changes), answer).1));
        turn.requests += 1;
        // The answer may depend on changes of earlier requests in the batch: it waits for those
        // too.
        let outcome = (!turn.batch.is_empty()).then(|| Arc::clone(&turn.outcome));
        // A writer that is waiting now runs later and will store the batch.
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
        // Each batch has its own outcome, which is set only here.
        let _ = outcome.set(stored.map_err(|error| error.to_string()));
        self.batch_ended.notify_all();
    }

    fn stored(&self) -> RwLockReadGuard<'_, Accounts> {
        // Changes are applied as a whole, and no code that panics runs meanwhile.
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

    /// Removes old records from the accounts that the batch changes.
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

/// Returns the keys of tasks that ended and began long ago or before many others, and of client
/// tokens whose load balancers no longer exist.
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

/// Returns whether the data plane has to learn of a changed record. It already knows which tasks
/// have ended.
fn is_to_be_served((key, record): (&RecordKey, &Option<Record>)) -> bool {
    match record {
        Some(Record::Task(task)) => task.is_serving(),
        _ => key.kind != RecordKind::Task,
    }
}
