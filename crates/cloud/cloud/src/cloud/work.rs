//! What the cloud and its data plane tell each other: what has to be served, and which tasks are
//! done.

use tokio::sync::watch;

use super::{Cloud, StorageError};
use crate::plane::{self, Part, Plan, PlanContext};
use crate::state::{Batch, Place, Record, RecordKey, RecordKind, Task, TaskStatus};

/// What has to be served.
#[derive(Clone, Debug)]
pub struct Work {
    /// The number of the latest change that it has.
    pub change: u64,
    /// What to serve.
    pub plan: Plan,
    /// The tasks that are done when it is served.
    pub tasks: Vec<ServingTask>,
}

/// A task that is done when its change is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServingTask {
    /// Where it belongs.
    pub place: Place,
    /// The id of its request.
    pub id: String,
    /// The load balancers that it changes.
    pub load_balancers: Vec<String>,
    /// The listeners that it changes, adds or removes.
    pub listeners: Vec<String>,
}

impl ServingTask {
    /// Whether it asked for a load balancer (`None`) or a listener to be as it is now.
    pub fn asked_for(&self, (load_balancer, listener): &Part) -> bool {
        let changes = |id: &String| self.listeners.contains(id);
        self.load_balancers.contains(load_balancer) && listener.as_ref().is_none_or(changes)
    }
}

/// A task that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedTask {
    /// Where it belongs.
    pub place: Place,
    /// The id of its request.
    pub id: String,
    /// Why it failed; `None` if it is done.
    pub failure: Option<String>,
}

impl Cloud {
    /// Sees the number of the latest change.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.accounts.changes()
    }

    /// The number of the latest change.
    pub fn change(&self) -> u64 {
        *self.changes().borrow()
    }

    /// What has to be served now.
    pub fn work(&self) -> Work {
        let context = PlanContext {
            inventory: &self.inventory,
            snat_range: self.settings.snat_range,
            path_normalization: self.settings.path_normalization,
        };
        self.accounts.read(|accounts| {
            let mut tasks = Vec::new();
            for (place, account) in accounts {
                let serving = account.tasks.iter().filter(|(_, task)| task.is_serving());
                tasks.extend(serving.map(|(id, task)| ServingTask {
                    place: place.clone(),
                    id: id.clone(),
                    load_balancers: task.load_balancers.clone(),
                    listeners: task.listeners.clone(),
                }));
            }
            Work { change: self.change(), plan: plane::plan(accounts, context), tasks }
        })
    }

    /// Ends tasks. Those that have ended already stay as they are.
    ///
    /// # Errors
    ///
    /// Returns why that could not be stored; then all of them are still running.
    pub fn finish(&self, finished: &[FinishedTask]) -> Result<(), StorageError> {
        self.accounts.change(None, &*self.storage, |accounts| {
            let mut batch = Batch::new();
            for FinishedTask { place, id, failure } in finished {
                let task = accounts.get(place).and_then(|account| account.tasks.get(id));
                let Some(task) = task.filter(|task| task.is_serving()) else { continue };
                let status = match failure {
                    None => TaskStatus::Done,
                    Some(reason) => TaskStatus::Failed(reason.clone()),
                };
                let key = RecordKey { kind: RecordKind::Task, id: id.clone() };
                let ended = Record::Task(Task { status, ..task.clone() });
                batch.entry(place.clone()).or_default().insert(key, Some(ended));
            }
            Ok((batch, ()))
        })
    }

    /// Ends the tasks that wait for a data plane, where there is none any more.
    ///
    /// # Errors
    ///
    /// As [`Self::finish`].
    pub fn finish_serving(&self) -> Result<(), StorageError> {
        let done =
            |task: ServingTask| FinishedTask { place: task.place, id: task.id, failure: None };
        let tasks: Vec<FinishedTask> = self.work().tasks.into_iter().map(done).collect();
        self.finish(&tasks)
    }
}
