//! Tasks, which record the progress of asynchronous requests.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The progress of an asynchronous request, which is answered before it is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The load balancers that the request changes.
    pub load_balancers: Vec<String>,
    /// The listeners that the request changes, adds or removes.
    #[serde(default)]
    pub listeners: Vec<String>,
    /// The time of the request.
    pub began: Timestamp,
    /// The status of the task.
    pub status: TaskStatus,
}

/// The status of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskStatus {
    /// Done.
    Done,
    /// Failed, for this reason.
    Failed(String),
    /// Done at this time.
    DoneAt(Timestamp),
    /// Done when the data plane serves the change.
    Serving,
}

impl Task {
    /// Returns whether the task is done only when the data plane serves its change.
    pub fn is_serving(&self) -> bool {
        self.status == TaskStatus::Serving
    }

    /// Returns whether the task is still running.
    pub fn is_running(&self, now: Timestamp) -> bool {
        match self.status {
            TaskStatus::Done | TaskStatus::Failed(_) => false,
            TaskStatus::DoneAt(time) => now < time,
            TaskStatus::Serving => true,
        }
    }

    /// Returns the API's code of the status: 0 done, 1 failed, 2 running.
    pub fn status_code(&self, now: Timestamp) -> i64 {
        match self.status {
            TaskStatus::Failed(_) => 1,
            _ if self.is_running(now) => 2,
            _ => 0,
        }
    }
}
