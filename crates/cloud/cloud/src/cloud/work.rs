//! The exchange between the cloud and its data plane: the plan that has to be served, and the tasks
//! that are done.

use tokio::sync::watch;

use super::{Cloud, StorageError};
use crate::plane::{self, Part, Plan, PlanContext};
use crate::state::{Batch, Place, Record, RecordKey, RecordKind, Task, TaskStatus};

/// The plan that has to be served, and the tasks that wait for it.
#[derive(Clone, Debug)]
pub struct Work {
    /// The number of the latest change that the plan contains.
    pub change: u64,
    /// The plan to serve.
    pub plan: Plan,
    /// The tasks that are done when the plan is served.
    pub tasks: Vec<ServingTask>,
}

/// A task that is done when its change is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServingTask {
    /// The account and region of the task.
    pub place: Place,
    /// The id of the request that began the task.
    pub id: String,
    /// The load balancers that the task changes.
    pub load_balancers: Vec<String>,
    /// The listeners that the task changes, adds or removes.
    pub listeners: Vec<String>,
}

impl ServingTask {
    /// Returns whether the task changed this load balancer, or for a listener also the listener.
    pub fn asked_for(&self, (load_balancer, listener): &Part) -> bool {
        let changes = |id: &String| self.listeners.contains(id);
        self.load_balancers.contains(load_balancer) && listener.as_ref().is_none_or(changes)
    }
}

/// A task that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedTask {
    /// The account and region of the task.
    pub place: Place,
    /// The id of the request that began the task.
    pub id: String,
    /// The reason of its failure; `None` if it is done.
    pub failure: Option<String>,
}

impl Cloud {
    /// Returns a receiver of the number of the latest change.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.accounts.changes()
    }

    /// Returns the number of the latest change.
    pub fn change(&self) -> u64 {
        *self.changes().borrow()
    }

    /// Returns the plan that has to be served now, with the tasks that wait for it.
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

    /// Ends tasks. Tasks that have already ended stay as they are.
    ///
    /// # Errors
    ///
    /// Returns why the ends could not be stored; then all of the tasks are still running.
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

    /// Ends the tasks that wait for a data plane, for a cloud that no longer has one.
    ///
    /// # Errors
    ///
    /// Returns the same error as [`Self::finish`].
    pub fn finish_serving(&self) -> Result<(), StorageError> {
        let done =
            |task: ServingTask| FinishedTask { place: task.place, id: task.id, failure: None };
        let tasks: Vec<FinishedTask> = self.work().tasks.into_iter().map(done).collect();
        self.finish(&tasks)
    }
}
