//! State shared by the tasks that drive the machines.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::watch;
use tokio::task::spawn_blocking;
use uturn_cloud_api::unserved::Unserved;

use super::progress::Progress;
use super::status::{DriveStatus, MachineStatus};
use super::{Notice, Observer, PlaneHealth};
use crate::cloud::{Cloud, Work};
use crate::plane::{LeftOut, Part};

/// State shared by the tasks that drive the machines.
pub(super) struct Shared {
    cloud: Arc<Cloud>,
    pub(super) health: Arc<PlaneHealth>,
    observer: Observer,
    progress: Mutex<Progress>,
    /// The latest work. Locked while it is made, so that it is made once for all machines.
    work: tokio::sync::Mutex<Option<Arc<Work>>>,
    left_out: Mutex<BTreeSet<LeftOut>>,
    /// The parts that the previous plan left out; `None` before the first plan.
    unserved: Mutex<Option<BTreeMap<Part, Unserved>>>,
    failed_tasks: AtomicU64,
    statuses: Mutex<Vec<MachineStatus>>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Shared").field("progress", &self.progress).finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn new(
        cloud: Arc<Cloud>,
        addresses: Vec<String>,
        health: Arc<PlaneHealth>,
        observer: Observer,
    ) -> Self {
        let machines = addresses.len();
        health.expect(machines);
        let status = |address| MachineStatus { address, ..MachineStatus::default() };
        Self {
            cloud,
            health,
            observer,
            progress: Mutex::new(Progress::new(machines)),
            work: tokio::sync::Mutex::default(),
            left_out: Mutex::default(),
            unserved: Mutex::default(),
            failed_tasks: AtomicU64::new(0),
            statuses: Mutex::new(addresses.into_iter().map(status).collect()),
        }
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.cloud.changes()
    }

    pub(super) fn notice(&self, notice: &Notice) {
        (self.observer)(notice);
    }

    /// Returns the status of the machines.
    pub(super) fn status(&self) -> DriveStatus {
        DriveStatus {
            change: self.cloud.change(),
            data_planes: locked(&self.statuses).clone(),
            left_out: locked(&self.left_out).iter().cloned().collect(),
            unserved: self.health.unserved_counts(),
            failed_tasks: self.failed_tasks.load(Ordering::Relaxed),
        }
    }

    /// Sets the status that is shown for a machine.
    pub(super) fn show(&self, machine: usize, status: MachineStatus) {
        locked(&self.statuses)[machine] = status;
    }

    /// Returns the work that includes all changes so far.
    pub(super) async fn work(&self) -> Arc<Work> {
        let mut kept = self.work.lock().await;
        let latest = self.cloud.change();
        if let Some(work) = kept.as_ref().filter(|work| work.change == latest) {
            return Arc::clone(work);
        }
        let cloud = Arc::clone(&self.cloud);
        let work = spawn_blocking(move || Arc::new(cloud.work())).await;
        let work = work.expect("planning does not panic, and nothing cancels it");
        self.report_left_out(&work);
        self.note_unserved(&work);
        *kept = Some(Arc::clone(&work));
        work
    }

    /// Reports the parts that are left out now and were not before.
    fn report_left_out(&self, work: &Work) {
        let now: BTreeSet<LeftOut> = work.plan.left_out.iter().cloned().collect();
        let mut before = locked(&self.left_out);
        for left_out in now.difference(&before) {
            self.notice(&Notice::LeftOut(left_out.clone()));
        }
        *before = now;
    }

    /// Notes the parts that the plan does not serve. A task fails if it changed a part that is
    /// newly left out.
    fn note_unserved(&self, work: &Work) {
        let mut before = locked(&self.unserved);
        if let Some(before) = before.as_ref() {
            let news = work.plan.unserved.iter().filter(|(key, _)| !before.contains_key(*key));
            let news: Vec<(&Part, &Unserved)> = news.collect();
            let mut progress = locked(&self.progress);
            for task in &work.tasks {
                if let Some((_, why)) = news.iter().find(|(part, _)| task.asked_for(part)) {
                    progress.fails(task, why.words().to_owned());
                }
            }
        }
        self.health.leaves_out(work.plan.unserved.clone());
        *before = Some(work.plan.unserved.clone());
    }

    /// Notes that a machine serves this work, except the load balancers and listeners that it
    /// refused.
    pub(super) async fn serves(
        self: &Arc<Self>,
        machine: usize,
        work: &Work,
        mut refused: BTreeMap<Part, String>,
    ) {
        refused.extend(work.plan.conflicts.clone());
        locked(&self.progress).serves(machine, work, refused);
        self.finish().await;
    }

    /// Notes that a machine cannot be reached.
    pub(super) async fn is_away(self: &Arc<Self>, machine: usize) {
        locked(&self.progress).is_away(machine);
        self.health.forget(machine);
        self.finish().await;
    }

    /// Stores the ends of tasks that have ended.
    pub(super) async fn finish(self: &Arc<Self>) {
        let shared = Arc::clone(self);
        let finished = spawn_blocking(move || {
            let mut progress = locked(&shared.progress);
            let ended = progress.ended();
            if ended.is_empty() {
                return;
            }
            match shared.cloud.finish(&ended) {
                Ok(()) => {
                    let failed = ended.iter().filter(|task| task.failure.is_some()).count();
                    let failed = u64::try_from(failed).unwrap_or(u64::MAX);
                    shared.failed_tasks.fetch_add(failed, Ordering::Relaxed);
                    progress.forget(&ended);
                }
                Err(error) => shared.notice(&Notice::NotStored(error.to_string())),
            }
        });
        finished.await.expect("storing does not panic, and nothing cancels it");
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change of a locked value is a single assignment, so that a panic leaves it consistent.
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
