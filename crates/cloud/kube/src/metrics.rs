//! The metrics of the controllers.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::Error;
use tokio::time::Instant;

use crate::unserved::UnservedObjects;

/// The counters and the current problems of the controllers.
#[derive(Debug, Default)]
pub struct Metrics {
    /// The rounds that succeeded.
    pub rounds: AtomicU64,
    /// Rounds that failed as a whole.
    pub failed_rounds: AtomicU64,
    /// Calls of the cloud's API that changed something.
    pub calls: AtomicU64,
    /// Load balancers whose calls failed.
    pub failed_calls: AtomicU64,
    /// Writes to objects.
    pub writes: AtomicU64,
    /// Writes to objects that failed.
    pub failed_writes: AtomicU64,
    /// Objects and load balancers that are tried again later.
    pub waiting: AtomicU64,
    /// Whether this process holds the lease.
    pub is_leader: AtomicBool,
    /// The objects that the data plane does not serve although the cloud has their settings.
    pub unserved: UnservedObjects,
    watch_failures: Mutex<BTreeMap<&'static str, (u64, String)>>,
    troubles: Mutex<BTreeMap<String, (String, Instant)>>,
}

/// The time after which a watch that reported no new failure counts as working. Longer than the
/// pauses between the attempts of a watch.
const WATCH_PAUSE: Duration = Duration::from_secs(90);

/// The name of the problem that the cloud refuses all calls.
pub const CLOUD: &str = "call the cloud's API";

impl Metrics {
    /// Adds to a counter.
    pub fn add(counter: &AtomicU64, more: usize) {
        counter.fetch_add(u64::try_from(more).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Notes that an operation fails, and why.
    pub fn trouble(&self, what: &str, why: &str) {
        self.all_troubles().insert(what.to_owned(), (why.to_owned(), Instant::now()));
    }

    /// Notes whether the controllers lack the right for a request to the API server.
    pub fn note(&self, verb: &str, resource: &str, error: Option<&Error>) {
        let what = format!("{verb} {resource}");
        match error {
            None => self.mended(&what),
            Some(error) if is_forbidden(error) => self.trouble(&what, &why(error)),
            Some(_) => {}
        }
    }

    /// Notes that an operation succeeds.
    pub fn mended(&self, what: &str) {
        self.all_troubles().remove(what);
    }

    /// Returns the operations that fail, and why. A working watch reports no success, but a failing
    /// one fails again and again, so that old failures of watches are left out.
    pub fn troubles(&self) -> Vec<(String, String)> {
        let troubles = self.all_troubles();
        let current = troubles
            .iter()
            .filter(|(what, (_, at))| !what.starts_with("watch ") || at.elapsed() < WATCH_PAUSE);
        current.map(|(what, (why, _))| (what.clone(), why.clone())).collect()
    }

    fn all_troubles(&self) -> MutexGuard<'_, BTreeMap<String, (String, Instant)>> {
        self.troubles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a watch failed.
    pub fn watch_failed(&self, kind: &'static str, why: &str) {
        let mut failures = self.watch_failures.lock().unwrap_or_else(PoisonError::into_inner);
        let failure = failures.entry(kind).or_default();
        *failure = (failure.0 + 1, why.to_owned());
    }

    /// Returns the reasons of the last failures of watches, by kind.
    pub fn watch_failures(&self) -> BTreeMap<&'static str, String> {
        let failures = self.watch_failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.iter().map(|(kind, (_, why))| (*kind, why.clone())).collect()
    }

    /// Returns the metrics in the format of Prometheus.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let counters = [
            ("rounds_total", "Rounds that ended well.", &self.rounds),
            ("failed_rounds_total", "Rounds that failed as a whole.", &self.failed_rounds),
            ("calls_total", "Calls that changed a load balancer.", &self.calls),
            ("failed_calls_total", "Load balancers whose calls failed.", &self.failed_calls),
            ("object_writes_total", "Writes to objects.", &self.writes),
            ("failed_object_writes_total", "Writes that failed.", &self.failed_writes),
        ];
        for (name, help, counter) in counters {
            let value = counter.load(Ordering::Relaxed);
            let _ = write!(
                text,
                "# HELP uturn_operator_{name} {help}\n# TYPE uturn_operator_{name} counter\n\
                 uturn_operator_{name} {value}\n"
            );
        }
        let waiting = self.waiting.load(Ordering::Relaxed);
        let unserved = u64::try_from(self.unserved.len()).unwrap_or(u64::MAX);
        let leader = u8::from(self.is_leader.load(Ordering::Relaxed));
        for (name, help, value) in [
            ("waiting", "Objects and load balancers that are tried again later.", waiting),
            ("leader", "Whether this process holds the lease.", leader.into()),
            ("unserved_objects", "Objects that the cloud has and does not serve.", unserved),
        ] {
            let _ = write!(
                text,
                "# HELP uturn_operator_{name} {help}\n# TYPE uturn_operator_{name} gauge\n\
                 uturn_operator_{name} {value}\n"
            );
        }
        let _ = write!(
            text,
            "# HELP uturn_operator_watch_failures_total Failures of watches.\n\
             # TYPE uturn_operator_watch_failures_total counter\n"
        );
        let failures = self.watch_failures.lock().unwrap_or_else(PoisonError::into_inner);
        for (kind, (count, _)) in failures.iter() {
            let _ =
                writeln!(text, "uturn_operator_watch_failures_total{{kind=\"{kind}\"}} {count}");
        }
        text
    }
}

/// Returns the message of an error of the API server.
pub(crate) fn why(error: &Error) -> String {
    match error {
        Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        other => other.to_string(),
    }
}

/// Returns whether the controllers lack a right.
fn is_forbidden(error: &Error) -> bool {
    matches!(error, Error::Api(status) if [401, 403].contains(&status.code))
}
