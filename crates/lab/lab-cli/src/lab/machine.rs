//! Measures cases in the small machine: the caller's side, and the side that runs inside.

use std::env;
use std::fmt;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

use uturn_cli::{Failure, Printer, Status};
use uturn_lab::{LabError, Unavailable, Watched};
use uturn_machine::{Ended, Job, JobOutput, Machine};
use uturn_model::Flow;
use uturn_model::visible;
use uturn_report::lab::CaseReport;
use uturn_snapshot::Source;
use uturn_snapshot::scenario::Case;

use super::options::MeasureOptions;
use super::plan::with_plan;
use super::protocol::{MachineAnswer, MachineRequest};
use crate::scenarios;

/// The time limits for the start of the machine and for each case. They only end a machine that
/// hangs: a machine whose kernel panics, or never gets to its job, ends by itself.
const START: Duration = Duration::from_secs(900);
const EACH: Duration = Duration::from_secs(900);

/// A case with the name of its scenario.
#[derive(Clone, Copy)]
pub(super) struct Named<'a> {
    pub(super) scenario: &'a str,
    pub(super) case: &'a Case,
}

impl Named<'_> {
    /// Returns the report of a case that did not run.
    pub(super) fn not_run(&self, why: String) -> CaseReport {
        CaseReport {
            scenario: self.scenario.to_owned(),
            case: self.case.label.clone(),
            flows: Vec::new(),
            probes: Vec::new(),
            seconds: 0.0,
            place: None,
            first_try: Vec::new(),
            not_run: Some(why),
        }
    }
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.scenario, self.case.label)
    }
}

/// Measures cases in a machine. Calls `done` with each result in order, as soon as it is known.
pub(super) fn measure(
    machine: &Machine,
    cases: &[Named<'_>],
    own: &[Source],
    options: &MeasureOptions,
    printer: &Printer,
    done: &mut dyn FnMut(usize, Result<Watched, String>, f64),
) -> Result<(), Failure> {
    let request = MachineRequest {
        sources: own.to_vec(),
        cases: cases
            .iter()
            .map(|case| (case.scenario.to_owned(), case.case.label.clone()))
            .collect(),
        options: options.clone(),
    };
    if let Some(folder) = &options.pcap {
        fs::create_dir_all(folder)
            .map_err(|why| Failure::usage(format!("--pcap {}: {why}", folder.display())))?;
    }
    let machine = machine.clone().with_limit(START + EACH * cases.len() as u32);
    let mut reader = OutputReader { cases, done, answered: 0, failed: None };
    let (mut answers, mut details) = (Lines::default(), Lines::default());
    let mut complaints = Vec::new();
    let ended = machine
        .run(&job(&request, printer)?, &mut |output| match output {
            JobOutput::Out(bytes) => answers.add(bytes, &mut |line| reader.read_line(line)),
            JobOutput::Err(bytes) => {
                details.add(bytes, &mut |line| printer.detail(line));
                complaints.extend(bytes);
            }
        })
        .map_err(|why| Failure::unavailable(why.to_string()))?;
    let in_it = |what: &str| Failure::unavailable(format!("in the small machine: {what}"));
    if let Some(why) = reader.failed {
        return Err(in_it(&why));
    }
    if ended == Ended::Exit(0) && reader.answered == cases.len() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&complaints);
    Err(in_it(&format!("uturn ended early ({ended:?}): {}", stderr.trim())))
}

fn job(request: &MachineRequest, printer: &Printer) -> Result<Job, Failure> {
    let here = |why: io::Error| Failure::unavailable(format!("cannot find this program: {why}"));
    let unwritable = |why| Failure::usage(format!("a path of the command line: {why}"));
    let mut arguments = vec!["lab", "measure-in-machine"];
    if printer.is_verbose() {
        arguments.push("--verbose");
    }
    Ok(Job {
        program: env::current_exe().map_err(here)?,
        arguments: arguments.into_iter().map(Into::into).collect(),
        environment: env::vars_os().collect(),
        folder: "/".into(),
        stdin: request.write().map_err(unwritable)?.into_bytes(),
        shared: request.options.pcap.clone().into_iter().collect(),
    })
}

/// Assembles lines from pieces of output.
#[derive(Default)]
pub(super) struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    pub(super) fn add(&mut self, bytes: &[u8], done: &mut dyn FnMut(&str)) {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.begun.extend(part);
            if self.begun.last() == Some(&b'\n') {
                done(String::from_utf8_lossy(&self.begun).trim_end());
                self.begun.clear();
            }
        }
    }
}

/// Reads the output of the machine.
struct OutputReader<'a, 'b> {
    cases: &'a [Named<'a>],
    done: &'b mut dyn FnMut(usize, Result<Watched, String>, f64),
    answered: usize,
    failed: Option<String>,
}

impl OutputReader<'_, '_> {
    fn read_line(&mut self, line: &str) {
        if self.failed.is_some() {
            return;
        }
        let Some(next) = self.cases.get(self.answered) else {
            self.failed = Some(format!("an answer without a request: {line}"));
            return;
        };
        match MachineAnswer::read(line, &flows(next.case)) {
            Some(MachineAnswer::Measured { watched, seconds }) => {
                (self.done)(self.answered, Ok(watched), seconds);
            }
            Some(MachineAnswer::NotRun(why)) => (self.done)(self.answered, Err(why), 0.0),
            Some(MachineAnswer::Failed(why)) => self.failed = Some(why),
            None => self.failed = Some(format!("an answer that cannot be read: {line}")),
        }
        self.answered += 1;
    }
}

/// Runs in the machine: reads the request, measures, and answers line by line.
pub(super) fn serve(printer: &Printer) -> Result<Status, Failure> {
    let request = io::read_to_string(io::stdin())
        .map_err(|why| Failure::input(vec![format!("the request cannot be read: {why}")]))?;
    let request = MachineRequest::read(&request)
        .map_err(|why| Failure::usage(format!("measure-in-machine is for uturn itself: {why}")))?;
    let scenarios = scenarios::read(request.sources)?;
    for (scenario, case) in &request.cases {
        let began = Instant::now();
        let found = scenarios
            .iter()
            .filter(|known| *known.name == **scenario)
            .flat_map(|known| &known.cases)
            .find(|scenario| scenario.label == *case);
        let found = found
            .ok_or_else(|| Failure::usage(format!("there is no case {case} of {scenario}")))?;
        let watching = request.options.watching(scenario, case);
        let measured = with_plan(found, &request.options, |plan| {
            uturn_lab::watch(plan, &watching, None, &mut |what| printer.detail(what))
        })?;
        let answer = match measured {
            Ok(watched) => {
                MachineAnswer::Measured { watched, seconds: began.elapsed().as_secs_f64() }
            }
            Err(LabError::Plan(why)) => MachineAnswer::NotRun(why),
            Err(LabError::Unavailable(why @ Unavailable::Part(_))) => {
                MachineAnswer::NotRun(why.to_string())
            }
            Err(why) => MachineAnswer::Failed(why.to_string()),
        };
        let failed = matches!(answer, MachineAnswer::Failed(_));
        printer.result(&visible::json(&format!("{}\n", answer.write())));
        if failed {
            return Ok(Status::Unavailable);
        }
    }
    Ok(Status::Clean)
}

fn flows(case: &Case) -> Vec<Flow> {
    case.flows.iter().map(|flow| flow.flow.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_however_they_come() {
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        for part in ["a", "b\n\nc", "d", "\n", "e"] {
            lines.add(part.as_bytes(), &mut |line| found.push(line.to_owned()));
        }
        assert_eq!(found, ["ab", "", "cd"]);
    }
}
