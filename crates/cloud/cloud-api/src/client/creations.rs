//! Load balancers that are being created. One request asks for those of several callers: asking for
//! the task of each would take many calls, since a creation takes about ten seconds.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::sleep;

use super::CallError;

/// The pause before load balancers are first asked for. Each further pause is twice as long.
const FIRST: Duration = Duration::from_millis(100);
/// The longest of these pauses.
const LONGEST: Duration = Duration::from_secs(2);
/// The number of pauses. A load balancer that does not run after them has a task that tells why.
const MAX: usize = 20;
/// The most load balancers that one request asks for.
const MAX_IDS: usize = 20;

/// The load balancers that are being created.
#[derive(Debug, Default)]
pub struct Creations {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The ids of load balancers, and whether they run.
    waiting: BTreeMap<String, bool>,
    /// Whether a caller is asking for them.
    is_asking: bool,
}

impl Creations {
    /// Waits until the load balancers run. `ask` returns those of its load balancers that run.
    /// Returns `false` if some do not run or `ask` fails: then the caller should look at their
    /// task.
    pub async fn wait<F, R>(&self, ids: &[String], ask: F) -> bool
    where
        F: Fn(Vec<String>) -> R,
        R: Future<Output = Result<Vec<String>, CallError>>,
    {
        let entry = Entry::new(self, ids);
        let mut pause = FIRST;
        for _ in 0..MAX {
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST);
            if let Some(turn) = entry.turn() {
                let ids = self.state().next(ids);
                let Ok(running) = ask(ids).await else { return false };
                self.state().note(&running);
                drop(turn);
            }
            if entry.is_done() {
                return true;
            }
        }
        false
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns these load balancers and others that are not known to run, up to the limit of one
    /// request.
    fn next(&self, ids: &[String]) -> Vec<String> {
        let others = self.waiting.iter().filter(|(id, runs)| !**runs && !ids.contains(id));
        ids.iter().chain(others.map(|(id, _)| id)).take(MAX_IDS).cloned().collect()
    }

    fn note(&mut self, running: &[String]) {
        for id in running {
            if let Some(runs) = self.waiting.get_mut(id) {
                *runs = true;
            }
        }
    }
}

/// The load balancers of a caller, which are forgotten when this is dropped.
struct Entry<'c> {
    creations: &'c Creations,
    ids: &'c [String],
}

impl<'c> Entry<'c> {
    fn new(creations: &'c Creations, ids: &'c [String]) -> Self {
        creations.state().waiting.extend(ids.iter().map(|id| (id.clone(), false)));
        Self { creations, ids }
    }

    fn is_done(&self) -> bool {
        let state = self.creations.state();
        self.ids.iter().all(|id| state.waiting.get(id).copied().unwrap_or_default())
    }

    /// Returns the turn to ask, if there is anything to ask for and no other caller is asking.
    fn turn(&self) -> Option<Turn<'c>> {
        if self.is_done() {
            return None;
        }
        let is_asking = std::mem::replace(&mut self.creations.state().is_asking, true);
        (!is_asking).then(|| Turn(self.creations))
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        let mut state = self.creations.state();
        for id in self.ids {
            state.waiting.remove(id);
        }
    }
}

/// The turn to ask, which ends when this is dropped.
struct Turn<'c>(&'c Creations);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.state().is_asking = false;
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures_util::future::join_all;
    use tokio::time::Instant;

    use super::*;

    fn ids(numbers: std::ops::Range<usize>) -> Vec<[String; 1]> {
        numbers.map(|number| [format!("lb-{number:08}")]).collect()
    }

    /// Waits for these load balancers at once, which run after `seconds`. Returns whether each runs
    /// in the end, and the sizes of the requests.
    async fn wait(ids: &[[String; 1]], seconds: u64) -> (Vec<bool>, Vec<usize>) {
        let (creations, asked, start) =
            (Creations::default(), Mutex::new(Vec::new()), Instant::now());
        let ask = |ids: Vec<String>| {
            asked.lock().unwrap().push(ids.len());
            let runs = start.elapsed() >= Duration::from_secs(seconds);
            async move { Ok(if runs { ids } else { Vec::new() }) }
        };
        let all = join_all(ids.iter().map(|own| creations.wait(own, ask))).await;
        assert!(creations.state().waiting.is_empty());
        (all, asked.into_inner().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn load_balancers_are_asked_for_together() {
        let (all, asked) = wait(&ids(0..45), 0).await;
        assert!(all.into_iter().all(|runs| runs));
        assert_eq!(asked, [20, 20, 5]);
        let (all, asked) = wait(&ids(0..20), 10).await;
        assert!(all.into_iter().all(|runs| runs));
        assert!(asked.len() >= 8 && asked.iter().all(|size| *size == 20), "{asked:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_never_runs_ends_some_time() {
        let (all, asked) = wait(&ids(0..1), 1_000_000).await;
        assert_eq!((all, asked.len()), (vec![false], MAX));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_hangs_holds_up_no_other_for_ever() {
        let creations = Creations::default();
        let all = ids(0..2);
        let hanging = creations.wait(&all[0], |_| pending());
        let other = creations.wait(&all[1], |_| pending());
        tokio::select! {
            // The first caller gets the turn to ask.
            biased;
            _ = hanging => panic!("it hangs"),
            runs = other => assert!(!runs),
        }
    }
}
