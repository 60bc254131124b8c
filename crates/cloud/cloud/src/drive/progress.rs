//! Finds the tasks that are done: those whose change all reachable machines serve.

use std::collections::BTreeMap;

use crate::cloud::{FinishedTask, ServingTask, Work};
use crate::plane::Part;
use crate::state::Place;

/// The progress of the machines, and the tasks that wait for them.
#[derive(Debug)]
pub(super) struct Progress {
    machines: Vec<MachineProgress>,
    waiting: BTreeMap<(Place, String), Waiting>,
    /// Tasks that fail once they end, for a reason that does not come from a machine.
    failures: BTreeMap<(Place, String), String>,
}

/// The progress of a machine.
#[derive(Clone, Debug, Default)]
struct MachineProgress {
    /// Whether the machine could not be reached at the last try.
    is_away: bool,
    /// The latest change that the machine serves.
    served: Option<u64>,
    /// The load balancers and listeners that the machine refused, with the text for tenants.
    refused: BTreeMap<Part, String>,
}

/// A task that waits for the machines, with the change that they have to serve.
#[derive(Debug)]
struct Waiting {
    change: u64,
    task: ServingTask,
}

impl Progress {
    pub(super) fn new(machines: usize) -> Self {
        Self {
            machines: vec![MachineProgress::default(); machines],
            waiting: BTreeMap::new(),
            failures: BTreeMap::new(),
        }
    }

    /// Makes a task fail for this reason once its change is served as far as possible.
    pub(super) fn fails(&mut self, task: &ServingTask, why: String) {
        self.failures.insert((task.place.clone(), task.id.clone()), why);
    }

    /// Notes that a machine serves this work, except the load balancers and listeners that it
    /// refused.
    pub(super) fn serves(&mut self, machine: usize, work: &Work, refused: BTreeMap<Part, String>) {
        for task in &work.tasks {
            let key = (task.place.clone(), task.id.clone());
            let waiting = Waiting { change: work.change, task: task.clone() };
            self.waiting.entry(key).or_insert(waiting);
        }
        self.machines[machine] =
            MachineProgress { is_away: false, served: Some(work.change), refused };
    }

    /// Notes that a machine cannot be reached. Tasks do not wait for it.
    pub(super) fn is_away(&mut self, machine: usize) {
        self.machines[machine] = MachineProgress { is_away: true, ..Default::default() };
    }

    /// Returns the tasks that have ended. They are kept until [`Self::forget`] is called.
    pub(super) fn ended(&self) -> Vec<FinishedTask> {
        let reached = || self.machines.iter().filter(|machine| !machine.is_away);
        // A machine that was not tried yet has `None`, which is less than every change.
        let Some(Some(served)) = reached().map(|machine| machine.served).min() else {
            return Vec::new();
        };
        let ended = self.waiting.values().filter(|waiting| waiting.change <= served);
        let finished = ended.map(|Waiting { task, .. }| {
            let mut refused = reached().flat_map(|machine| {
                let asked_for = machine.refused.iter().filter(|(part, _)| task.asked_for(part));
                asked_for.map(|(_, message)| message)
            });
            FinishedTask {
                place: task.place.clone(),
                id: task.id.clone(),
                failure: refused
                    .next()
                    .or_else(|| self.failures.get(&(task.place.clone(), task.id.clone())))
                    .cloned(),
            }
        });
        finished.collect()
    }

    /// Forgets tasks after their ends were stored.
    pub(super) fn forget(&mut self, ended: &[FinishedTask]) {
        for task in ended {
            let key = (task.place.clone(), task.id.clone());
            self.waiting.remove(&key);
            self.failures.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plane::Plan;

    fn work(change: u64, tasks: &[&str]) -> Work {
        let place = Place { account: "a".to_owned(), region: "r".to_owned() };
        let task = |id: &&str| ServingTask {
            place: place.clone(),
            id: (*id).to_owned(),
            load_balancers: vec![format!("lb-{id}")],
            listeners: vec![format!("lbl-{id}")],
        };
        Work { change, plan: Plan::default(), tasks: tasks.iter().map(task).collect() }
    }

    fn ended(progress: &mut Progress) -> Vec<(String, Option<String>)> {
        let ended = progress.ended();
        progress.forget(&ended);
        ended.into_iter().map(|task| (task.id, task.failure)).collect()
    }

    fn done(id: &str) -> (String, Option<String>) {
        (id.to_owned(), None)
    }

    #[test]
    fn a_task_is_done_when_all_machines_serve_it() {
        let mut progress = Progress::new(2);
        progress.serves(0, &work(1, &["1"]), BTreeMap::new());
        assert_eq!(ended(&mut progress), [], "the other machine was not tried yet");
        progress.serves(0, &work(2, &["1", "2"]), BTreeMap::new());
        progress.serves(1, &work(1, &["1"]), BTreeMap::new());
        assert_eq!(ended(&mut progress), [done("1")]);
        progress.serves(1, &work(2, &["2"]), BTreeMap::new());
        assert_eq!(ended(&mut progress), [done("2")]);
        assert_eq!(ended(&mut progress), [], "it is forgotten");
    }

    #[test]
    fn tasks_do_not_wait_for_machines_that_are_away_unless_all_are() {
        let mut progress = Progress::new(2);
        progress.serves(0, &work(1, &["1"]), BTreeMap::new());
        progress.is_away(1);
        assert_eq!(ended(&mut progress), [done("1")]);
        progress.is_away(0);
        assert_eq!(ended(&mut progress), []);
        progress.serves(1, &work(3, &["3"]), BTreeMap::new());
        assert_eq!(ended(&mut progress), [done("3")]);
    }

    #[test]
    fn a_task_fails_where_any_machine_refuses_its_load_balancer() {
        let mut progress = Progress::new(2);
        let refused = BTreeMap::from([(("lb-1".to_owned(), None), "no".to_owned())]);
        progress.serves(0, &work(1, &["1", "2"]), BTreeMap::new());
        progress.serves(1, &work(1, &["1", "2"]), refused);
        let failed = ("1".to_owned(), Some("no".to_owned()));
        assert_eq!(ended(&mut progress), [failed, done("2")]);
    }

    #[test]
    fn a_task_fails_for_the_listeners_that_it_changes() {
        let refused = |listener: &str| {
            let part = ("lb-1".to_owned(), Some(listener.to_owned()));
            BTreeMap::from([(part, "no".to_owned())])
        };
        let failed = ("1".to_owned(), Some("no".to_owned()));
        let mut progress = Progress::new(1);
        progress.serves(0, &work(1, &["1"]), refused("lbl-1"));
        assert_eq!(ended(&mut progress), std::slice::from_ref(&failed));
        progress.serves(0, &work(2, &["1"]), refused("lbl-other"));
        assert_eq!(ended(&mut progress), [done("1")], "another task's listener");
        let whole = BTreeMap::from([(("lb-1".to_owned(), None), "no".to_owned())]);
        progress.serves(0, &work(3, &["1"]), whole);
        assert_eq!(ended(&mut progress), [failed], "the load balancer as a whole");
    }

    #[test]
    fn a_task_fails_for_what_no_machine_can_serve() {
        let mut progress = Progress::new(1);
        let first = work(1, &["1", "2"]);
        progress.fails(&first.tasks[0], "QUIC".to_owned());
        assert_eq!(ended(&mut progress), []);
        progress.serves(0, &first, BTreeMap::new());
        let failed = ("1".to_owned(), Some("QUIC".to_owned()));
        assert_eq!(ended(&mut progress), [failed, done("2")]);
        assert!(progress.failures.is_empty());
    }
}
