//! A turn: a period in which honest clients call, alone or beside hostile ones.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use super::honest::{FLOWS, Met};
use super::metrics::Metrics;
use super::site::Site;
use crate::attack::Report;
use crate::clients::Clients;
use crate::cost::Cost;
use crate::failure::Failure;

/// The clients that call beside the honest ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Company {
    None,
    Hostile,
}

/// The load balancer's resource use at a moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holding {
    pub(super) descriptors: usize,
    /// The resident memory, in kB.
    pub(super) resident: u64,
}

/// The measurements of a turn.
pub(super) struct Turn {
    pub(super) company: Company,
    pub(super) seconds: u32,
    /// The results of honest clients by flow, in the order of [`FLOWS`].
    pub(super) honest: Vec<Met>,
    pub(super) hostile: Option<Report>,
    /// The load balancer's CPU time.
    pub(super) cost: Cost,
    /// The load balancer's resource use after honest clients ended, while hostile clients still
    /// ran.
    pub(super) end: Holding,
    /// The number of refused connections, by reason.
    pub(super) refused: BTreeMap<String, u64>,
    /// The number of failures of the load balancer's own machine, by cause.
    pub(super) local_errors: BTreeMap<String, u64>,
    /// The number of health checks that failed, by result.
    pub(super) bad_checks: BTreeMap<String, u64>,
    /// The number of failures that the load balancer counted against targets.
    pub(super) target_failures: u64,
    /// The number of times that a health check declared a target dead.
    pub(super) deaths: u64,
    pub(super) log: AccessLog,
}

/// The counts of an access log's lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AccessLog {
    pub(super) lines: u64,
    /// The number of lines that are not JSON, or have a character that a terminal could obey.
    pub(super) bad: u64,
}

impl Turn {
    /// Runs a turn and measures it.
    ///
    /// # Errors
    /// When the load balancer or another program of this run has ended.
    pub(super) fn take(site: &Site, company: Company, seconds: u32) -> Result<Self, Failure> {
        let hostile = match company {
            Company::None => None,
            Company::Hostile => Some(Hostile::start(&mut site.attack_command()?)?),
        };
        let (before, deaths) = (site.metrics()?, site.deaths()?);
        let cost = site.balancer.cost()?;
        let clients: Vec<_> = FLOWS.iter().map(|flow| flow.start(site, seconds)).collect();
        let honest = go(clients);
        let cost = site.balancer.cost()? - cost;
        let end = Holding {
            descriptors: site.balancer.descriptors()?,
            resident: site.balancer.resident()?,
        };
        let after = site.metrics()?;
        let hostile = hostile.map(Hostile::end).transpose()?;
        let gained = |family: &str, label: &str| gain(&before, &after, family, label);
        let mut bad_checks = gained("uturn_lb_target_probes_total", "result");
        bad_checks.remove("answered");
        let failures = |metrics: &Metrics| metrics.sum("uturn_lb_target_failures_total");
        Ok(Self {
            company,
            seconds,
            honest,
            hostile,
            cost,
            end,
            refused: gained("uturn_lb_connections_refused_total", "reason"),
            local_errors: gained("uturn_lb_local_errors_total", "cause"),
            bad_checks,
            target_failures: failures(&after).saturating_sub(failures(&before)),
            deaths: site.deaths()?.saturating_sub(deaths),
            log: AccessLog::take(&site.access_log)?,
        })
    }
}

/// Lets all clients begin at once, and returns what they measured.
fn go(clients: Vec<Result<Clients, Failure>>) -> Vec<Met> {
    thread::scope(|scope| {
        let going: Vec<_> = clients
            .into_iter()
            .map(|clients| scope.spawn(|| clients.and_then(Clients::go).map_err(|it| it.0)))
            .collect();
        going
            .into_iter()
            .map(|one| one.join().unwrap_or_else(|_| Err("the thread has ended".to_owned())))
            .collect()
    })
}

/// Returns how much the samples of a family have grown, by the values of a label. Samples that have
/// not grown are left out.
fn gain(before: &Metrics, after: &Metrics, family: &str, label: &str) -> BTreeMap<String, u64> {
    let earlier = before.by(family, label);
    let mut gained = after.by(family, label);
    for (value, count) in &mut gained {
        *count = count.saturating_sub(earlier.get(value).copied().unwrap_or(0));
    }
    gained.retain(|_, count| *count > 0);
    gained
}

/// The process of hostile clients. It ends when this is dropped.
struct Hostile(Child);

impl Hostile {
    fn start(command: &mut Command) -> Result<Self, Failure> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.spawn().map(Self).map_err(Failure::of("start hostile clients"))
    }

    /// Ends the hostile clients by closing their input, and returns their report.
    fn end(mut self) -> Result<Report, Failure> {
        drop(self.0.stdin.take());
        let output = self.0.stdout.take().ok_or_else(|| Failure("no output".to_owned()))?;
        let mut last = String::new();
        for line in BufReader::new(output).lines() {
            last = line.map_err(Failure::of("read what hostile clients met"))?;
        }
        serde_json::from_str(&last)
            .map_err(|error| Failure(format!("hostile clients: {error}: {last}")))
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl AccessLog {
    /// Reads the log and empties it, so that it does not fill the disk.
    fn take(path: &Path) -> Result<Self, Failure> {
        let doing = || Failure::of(format!("read {}", path.display()));
        let file = File::options().read(true).write(true).open(path).map_err(doing())?;
        let mut log = Self::default();
        for line in BufReader::new(&file).split(b'\n') {
            log.add(&line.map_err(doing())?);
        }
        file.set_len(0).map_err(doing())?;
        Ok(log)
    }

    fn add(&mut self, line: &[u8]) {
        self.lines += 1;
        let is_good = std::str::from_utf8(line).is_ok_and(|text| {
            let is_obeyed = |c: char| c.is_control() || is_bidi(c);
            !text.chars().any(is_obeyed) && serde_json::from_str::<serde_json::Value>(text).is_ok()
        });
        self.bad += u64::from(!is_good);
    }
}

/// Returns whether the character changes the order in which other characters are shown.
fn is_bidi(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_a_terminal_could_obey_are_bad() {
        let mut log = AccessLog::default();
        for line in ["{\"path\":\"/\"}", "{\"path\":\"/\u{1b}[31m\"}", "no JSON", "{}\r"] {
            log.add(line.as_bytes());
        }
        log.add(b"{\"path\":\"\xff\"}");
        log.add("{\"path\":\"\u{202e}\"}".as_bytes());
        assert_eq!(log, AccessLog { lines: 6, bad: 5 });
    }

    #[test]
    fn only_what_has_grown_is_told() {
        let before = Metrics::read("a{x=\"p\"} 3\na{x=\"q\"} 1\n");
        let after = Metrics::read("a{x=\"p\"} 3\na{x=\"q\"} 4\na{x=\"r\"} 2\n");
        let gained = gain(&before, &after, "a", "x");
        assert_eq!(gained, [("q".to_owned(), 3), ("r".to_owned(), 2)].into());
    }
}
