//! Measures many scenarios: several in parallel on this kernel, where they mostly wait, the others
//! one by one in the small machine.

use uturn_cli::{Failure, Printer};
use uturn_lab::{LabError, MeasuredFlow, Unavailable};
use uturn_snapshot::Source;

use super::Trial;
use crate::lab::broken;
use crate::lab::kernels::{Kernels, Native};
use crate::lab::machine::{self, Named};
use crate::lab::options::MeasureOptions;
use crate::lab::parallel;

/// The number of cases that one start of the machine measures.
const BATCH: usize = 25;

/// The result of a lab on this kernel.
type Built = Result<Vec<MeasuredFlow>, LabError>;

/// The kernels on which scenarios are measured, and the options.
pub(super) struct Lab {
    options: MeasureOptions,
    jobs: usize,
    printer: Printer,
    kernels: Kernels,
}

/// The result of one scenario.
pub(super) enum Measured {
    Flows(Vec<MeasuredFlow>),
    /// The scenario cannot be built here.
    NotRun(String),
    /// The scenario could not be built because of an error.
    Failed(String),
}

impl Lab {
    pub(super) fn find(
        options: MeasureOptions,
        jobs: usize,
        printer: Printer,
    ) -> Result<Self, Failure> {
        Ok(Self { options, jobs, printer, kernels: Kernels::find(false)? })
    }

    /// Has the connections of each flow begin one after another from now on.
    pub(super) fn pace(&mut self) {
        self.options.paced = true;
    }

    /// Returns how many scenarios are measured in parallel.
    pub(super) fn jobs(&self) -> usize {
        self.jobs
    }

    /// Measures all trials. The results are in the order of the trials.
    pub(super) fn measure(&mut self, trials: &[Trial]) -> Result<Vec<Measured>, Failure> {
        let here: Vec<usize> = (0..trials.len())
            .filter(|at| self.kernels.native(trials[*at].case()) == Native::Yes)
            .collect();
        let mut all: Vec<Option<Measured>> = trials.iter().map(|_| None).collect();
        for (at, measured) in self.side_by_side(trials, &here)? {
            match measured {
                Err(LabError::Unavailable(Unavailable::Part(part))) => self.kernels.lacks(part),
                Err(LabError::Plan(why)) => all[at] = Some(Measured::NotRun(why)),
                Err(why @ LabError::Unavailable(_)) => return Err(broken(&why)),
                Err(why) => all[at] = Some(Measured::Failed(why.to_string())),
                Ok(flows) => all[at] = Some(Measured::Flows(flows)),
            }
        }
        let mut there = Vec::new();
        for at in 0..trials.len() {
            if all[at].is_none() {
                match self.kernels.machine(trials[at].case()) {
                    Ok(()) => there.push(at),
                    Err(why) => all[at] = Some(Measured::NotRun(why)),
                }
            }
        }
        for batch in there.chunks(BATCH) {
            self.in_machine(trials, batch, &mut all)?;
        }
        let unknown = || Measured::Failed("no result arrived".to_owned());
        Ok(all.into_iter().map(|result| result.unwrap_or_else(unknown)).collect())
    }

    fn side_by_side(
        &self,
        trials: &[Trial],
        which: &[usize],
    ) -> Result<Vec<(usize, Built)>, Failure> {
        let cases: Vec<Named<'_>> = which.iter().map(|at| trials[*at].named()).collect();
        let mut all = Vec::new();
        let mut failed = None;
        parallel::measure(
            &cases,
            &self.options,
            self.jobs,
            &self.printer,
            &mut |at, measured, _| {
                match measured {
                    Ok(Err(why @ LabError::Interrupted)) => {
                        failed.get_or_insert_with(|| broken(&why));
                    }
                    Err(why) => drop(failed.get_or_insert(why)),
                    Ok(measured) => all.push((which[at], measured)),
                }
                failed.is_none()
            },
        );
        failed.map_or(Ok(all), Err)
    }

    fn in_machine(
        &self,
        trials: &[Trial],
        batch: &[usize],
        all: &mut [Option<Measured>],
    ) -> Result<(), Failure> {
        let Some(machine) = self.kernels.found() else { return Ok(()) };
        let cases: Vec<Named<'_>> = batch.iter().map(|at| trials[*at].named()).collect();
        // A trial that is measured again is in the list several times.
        let mut sources: Vec<Source> = batch.iter().map(|at| trials[*at].source()).collect();
        sources.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        sources.dedup_by(|a, b| a.name == b.name);
        self.printer.progress(&format!("{} in a small machine …", batch.len()));
        machine::measure(
            machine,
            &cases,
            &sources,
            &self.options,
            &self.printer,
            &mut |at, watched, _| {
                all[batch[at]] = Some(match watched {
                    Ok(watched) => Measured::Flows(watched.flows),
                    Err(why) => Measured::NotRun(why),
                });
            },
        )
    }
}
