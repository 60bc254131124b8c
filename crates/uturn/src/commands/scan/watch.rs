//! `uturn scan --watch`: the findings of a running cluster as its objects change.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, IsTerminal as _};
use std::time::{Duration, Instant};

use uturn_cli::{Failure, Printer, Status};
use uturn_diagnose::PreparedCluster;
use uturn_diagnose::analysis::{Input, KnownFindings, MAX_BYTES, Options};
use uturn_live::{Moment, WatchEnd, WatchedCluster};
use uturn_report::ScanReport;
use uturn_report::schema::scan::{NotCurrent, Scan as ScanJson, Watch};
use uturn_snapshot::Manifests;

use super::baseline::BaselineFile;
use super::{detail, report_of};
use crate::cli::{Output, Scan};
use crate::input;

mod screen;

use screen::Screen;

/// The shortest interval between states that are shown.
const INTERVAL: Duration = Duration::from_secs(1);
/// The longest interval between states, however long the last analysis took.
const LONGEST_INTERVAL: Duration = Duration::from_secs(30);

pub(super) fn run(args: &Scan, printer: &Printer) -> Result<Status, Failure> {
    if !args.cluster.is_live() {
        return Err(Failure::usage(
            "--watch watches a running cluster; with --live, -f names Facts beside it",
        ));
    }
    let Some(output @ (Output::Text | Output::Wide | Output::Json)) = args.output.plain() else {
        return Err(Failure::usage("--watch prints text, wide and json"));
    };
    let namespace = args.namespace.as_deref();
    let (watching, facts) = input::live::watch(&args.cluster, namespace, printer)?;
    let mut watch = Analyses {
        args,
        facts,
        cluster: watching.cluster(),
        prepared: PreparedCluster::default(),
        baseline: None,
        last: Err(Failure::unavailable("ended before the cluster was read")),
        versions: BTreeMap::new(),
        printer,
    };
    let view = match output {
        Output::Json => View::Json,
        _ => View::Text(Screen::new(args, printer, io::stdout().is_terminal())),
    };
    match watch.run(view)? {
        WatchEnd::Interrupted => watch.status(),
        WatchEnd::Failed(error) => {
            printer.progress_done();
            Err(input::live::failure(&error))
        }
    }
}

/// The form in which states are shown.
enum View<'w> {
    Text(Screen<'w>),
    Json,
}

/// A watched cluster and its last analysis.
struct Analyses<'w> {
    args: &'w Scan,
    facts: Manifests,
    cluster: &'w WatchedCluster,
    prepared: PreparedCluster,
    baseline: Option<BaselineFile>,
    last: Result<ScanReport, Failure>,
    /// The versions of the objects in the last reading.
    versions: BTreeMap<String, String>,
    printer: &'w Printer,
}

impl Analyses<'_> {
    /// Shows one state after another until the watch ends, or nobody reads them any more.
    fn run(&mut self, mut view: View<'_>) -> Result<WatchEnd, Failure> {
        let mut seen = Moment::default();
        let mut is_first = true;
        loop {
            let moment = match self.cluster.wait(seen, None) {
                Ok(moment) => moment,
                Err(end) => return Ok(end),
            };
            let begun = Instant::now();
            if is_first || moment.changes != seen.changes {
                seen = self.analyze(is_first)?;
            }
            seen.conditions = moment.conditions;
            is_first = false;
            let shown = match &mut view {
                View::Text(screen) => screen.show(self.last.as_ref(), &self.state(seen)),
                View::Json => self.show_json(seen),
            };
            match shown {
                Ok(()) => {}
                // A reader that is gone (`| head`) wants no more output, which is no failure.
                Err(why) if why.kind() == ErrorKind::BrokenPipe => {
                    return Ok(WatchEnd::Interrupted);
                }
                Err(why) => return Err(Failure::unwritten(&why)),
            }
            let pause = (begun.elapsed() * 2).clamp(INTERVAL, LONGEST_INTERVAL);
            if let Err(end) = self.cluster.wait_until(begun + pause) {
                return Ok(end);
            }
        }
    }

    /// Analyses the cluster as it is now. Returns the moment of that state.
    ///
    /// # Errors
    /// If the cluster can never be analysed: nothing of it, or not the file of `--baseline`, can be
    /// read.
    fn analyze(&mut self, is_first: bool) -> Result<Moment, Failure> {
        let begun = Instant::now();
        let (reading, moment, versions) = self.cluster.reading();
        self.versions = versions;
        if is_first {
            self.printer.progress_done();
            let namespace = self.args.namespace.as_deref();
            input::live::check_read(&reading, namespace, self.printer)?;
        }
        let manifests = reading.manifests(self.facts.clone());
        let input = Input::of(manifests, Vec::new(), MAX_BYTES);
        let input = match input.map_err(|faults| uturn_cli::faulty(&faults)) {
            Ok(input) => input,
            Err(failure) => {
                self.last = Err(failure);
                return Ok(moment);
            }
        };
        let read = begun.elapsed();
        let cluster = &input.loaded.cluster;
        if is_first {
            self.baseline = BaselineFile::read(self.args.baseline.as_deref(), cluster)?;
        }
        let known =
            self.baseline.as_ref().map(|file| (file, |finding: &_| file.list.knows(finding)));
        let options = Options {
            namespace: self.args.namespace.as_deref(),
            known: known
                .as_ref()
                .map(|(file, contains)| KnownFindings { list: &file.name, contains }),
            detail: detail(self.args.output),
            is_exhaustive: false,
        };
        let analysis = self.prepared.analyze(&input.manifests, cluster, &options);
        let counts = self.prepared.counts();
        self.printer.detail(&format!(
            "read in {} ms, analysed in {} ms: {} clients of targets walked, {} known from before, {} \
             walked targets kept",
            read.as_millis(),
            (begun.elapsed() - read).as_millis(),
            counts.walked,
            counts.reused,
            counts.kept,
        ));
        self.last = match analysis {
            Ok(analysis) => {
                if is_first {
                    for note in &analysis.notes {
                        self.printer.note(&note.to_string());
                    }
                }
                let gone = self.baseline.as_ref().map_or(0, |file| file.gone(&analysis));
                Ok(report_of(self.args, analysis, gone, input.loaded))
            }
            Err(error) => Err(error.into()),
        };
        Ok(moment)
    }

    fn state(&self, moment: Moment) -> Watch {
        let counts = self.prepared.counts();
        let not_current = self.cluster.not_current().into_iter().map(|known| NotCurrent {
            what: known.what,
            since: known.since,
            read_again: known.is_read_again,
            why: known.why,
        });
        Watch {
            at: uturn_live::time(),
            changes: moment.changes,
            versions: self.versions.clone(),
            not_current: not_current.collect(),
            walked: counts.walked,
            reused: counts.reused,
            kept: counts.kept,
        }
    }

    /// Prints a state as a JSON document on one line. A state that cannot be analysed is reported
    /// on stderr.
    fn show_json(&self, moment: Moment) -> io::Result<()> {
        match &self.last {
            Ok(report) => {
                let watch = Some(self.state(moment));
                let document = ScanJson { watch, ..ScanJson::from(report) };
                screen::write(&uturn_report::json::line(&document))
            }
            Err(failure) => {
                failure.messages().iter().for_each(|message| self.printer.error(message));
                Ok(())
            }
        }
    }

    /// Returns the exit status that a scan of the last state would have.
    fn status(self) -> Result<Status, Failure> {
        let report = self.last?;
        let fails = report.findings.iter().any(|finding| report.fails(finding));
        Ok(if fails { Status::Found } else { Status::Clean })
    }
}
