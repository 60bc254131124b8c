//! Tasks: what an asynchronous request leaves behind.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What became of a request that is answered before it is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The load balancers that it changes.
    pub load_balancers: Vec<String>,
    /// The listeners that it changes, adds or removes.
    #[serde(default)]
    pub listeners: Vec<String>,
    /// When the request came.
    pub began: Timestamp,
    /// How it stands.
    pub status: TaskStatus,
}

/// How a task stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskStatus {
    /// Done.
    Done,
    /// Failed, for this reason.
    Failed(String),
    /// Done at this time.
    DoneAt(Timestamp),
    /// Done when the data plane serves it.
    Serving,
}

impl Task {
    /// Whether the task is done when the data plane serves what it changed.
    pub fn is_serving(&self) -> bool {
        self.status == TaskStatus::Serving
    }

    /// Whether the task is still running.
    pub fn is_running(&self, now: Timestamp) -> bool {
        match self.status {
            TaskStatus::Done | TaskStatus::Failed(_) => false,
            TaskStatus::DoneAt(time) => now < time,
            TaskStatus::Serving => true,
        }
    }

    /// The status as the API has it: 0 done, 1 failed, 2 running.
    pub fn status_code(&self, now: Timestamp) -> i64 {
        match self.status {
            TaskStatus::Failed(_) => 1,
            _ if self.is_running(now) => 2,
            _ => 0,
        }
    }
}
