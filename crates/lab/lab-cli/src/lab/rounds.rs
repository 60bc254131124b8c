//! Measures cases, on this kernel or in a small machine, and has them judged.

use uturn_cli::{Failure, Printer};
use uturn_lab::{LabError, Unavailable};
use uturn_report::lab::CaseReport;
use uturn_snapshot::Source;

use super::judge::report;
use super::kernels::{self, Kernels, Native};
use super::machine::{self, Named};
use super::options::MeasureOptions;
use super::{broken, parallel};

/// Cases that are measured, here and in the machine, and judged.
pub(super) struct Rounds<'a> {
    pub(super) cases: &'a [Named<'a>],
    pub(super) own: &'a [Source],
    pub(super) options: &'a MeasureOptions,
    /// Whether connections begin one after another.
    pub(super) paced: bool,
    pub(super) predicts: bool,
    pub(super) printer: &'a Printer,
    pub(super) kernels: Kernels,
}

impl Rounds<'_> {
    /// Measures some of the cases, `size` at a time on this kernel. Returns a report for each.
    pub(super) fn run(&mut self, which: &[usize], size: usize) -> Result<Vec<CaseReport>, Failure> {
        let cases: Vec<Named<'_>> = which.iter().map(|at| self.cases[*at]).collect();
        let options = self.options();
        let mut reports: Vec<Option<CaseReport>> = cases.iter().map(|_| None).collect();
        let (here, mut elsewhere): (Vec<usize>, Vec<usize>) =
            (0..cases.len()).partition(|at| self.kernels.native(cases[*at].case) == Native::Yes);
        let native_cases: Vec<Named<'_>> = here.iter().map(|at| cases[*at]).collect();
        let mut failed = None;
        parallel::measure(
            &native_cases,
            &options,
            size,
            self.printer,
            &mut |at, measured, seconds| {
                let (case, at) = (&native_cases[at], here[at]);
                let measured = match measured {
                    // Nothing was built in this case.
                    Ok(Err(LabError::Unavailable(Unavailable::Part(part)))) => {
                        self.kernels.lacks(part);
                        elsewhere.push(at);
                        return true;
                    }
                    Ok(Err(LabError::Plan(why))) => Ok(Err(why)),
                    Ok(Err(why)) => Err(broken(&why)),
                    Ok(Ok(flows)) => Ok(Ok(flows)),
                    Err(why) => Err(why),
                };
                let made = measured
                    .and_then(|found| report(case, found, kernels::here(), seconds, self.predicts));
                match made {
                    Ok(made) => reports[at] = Some(made),
                    Err(why) => drop(failed.get_or_insert(why)),
                }
                failed.is_none()
            },
        );
        if let Some(why) = failed {
            return Err(why);
        }
        elsewhere.sort_unstable();
        let mut for_machine = Vec::new();
        for at in elsewhere {
            match self.kernels.machine(cases[at].case) {
                Ok(()) => for_machine.push(at),
                Err(why) => reports[at] = Some(cases[at].not_run(why)),
            }
        }
        self.in_machine(&cases, &for_machine, &mut reports)?;
        Ok(reports.into_iter().flatten().collect())
    }

    fn options(&self) -> MeasureOptions {
        MeasureOptions { paced: self.paced, ..self.options.clone() }
    }

    fn in_machine(
        &self,
        cases: &[Named<'_>],
        which: &[usize],
        reports: &mut [Option<CaseReport>],
    ) -> Result<(), Failure> {
        let Some(found) = self.kernels.found().filter(|_| !which.is_empty()) else { return Ok(()) };
        let there: Vec<Named<'_>> = which.iter().map(|at| cases[*at]).collect();
        let show_progress = |at: usize| {
            if let Some(next) = there.get(at) {
                self.printer.progress(&format!("{next} in a small machine …"));
            }
        };
        show_progress(0);
        let (options, mut judged) = (self.options(), Ok(()));
        machine::measure(
            found,
            &there,
            self.own,
            &options,
            self.printer,
            &mut |at, watched, seconds| {
                let flows = watched.map(|watched| watched.flows);
                match report(&there[at], flows, kernels::in_machine(found), seconds, self.predicts)
                {
                    Ok(made) => reports[which[at]] = Some(made),
                    Err(why) => judged = Err(why),
                }
                show_progress(at + 1);
            },
        )?;
        judged
    }
}
