//! Measures cases in parallel on this kernel: labs mostly wait, and are independent.

use std::sync::Mutex;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Instant;

use uturn_cli::{Failure, Printer};
use uturn_lab::{LabError, MeasuredFlow};
use uturn_snapshot::scenario::Case;

use super::machine::Named;
use super::options::MeasureOptions;
use super::plan::with_plan;

/// The result of a case.
pub(super) type Measured = Result<Result<Vec<MeasuredFlow>, LabError>, Failure>;

/// Measures a case on this kernel.
fn measure_here(case: &Case, options: &MeasureOptions, progress: &mut dyn FnMut(&str)) -> Measured {
    with_plan(case, options, |plan| uturn_lab::measure(plan, progress))
}

/// A message from a worker.
enum Message {
    Begun(usize),
    Detail(String),
    Done(usize, Measured, f64),
}

/// Returns the default number of labs at a time, which keeps the processors busy.
pub(super) fn usual_size() -> usize {
    2 * thread::available_parallelism().map_or(1, usize::from)
}

/// Measures `size` cases at a time. Calls `done` with each result and its duration in seconds. Once
/// `done` returns `false`, no more cases begin.
pub(super) fn measure(
    cases: &[Named<'_>],
    options: &MeasureOptions,
    size: usize,
    printer: &Printer,
    done: &mut dyn FnMut(usize, Measured, f64) -> bool,
) {
    let waiting = Mutex::new((0..cases.len()).collect::<std::collections::VecDeque<_>>());
    let (sender, messages) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..size.min(cases.len()) {
            let (sender, waiting) = (sender.clone(), &waiting);
            scope.spawn(move || work(cases, options, waiting, &sender));
        }
        drop(sender);
        for message in messages {
            match message {
                Message::Begun(at) => printer.progress(&format!("{} …", cases[at])),
                Message::Detail(what) => printer.detail(&what),
                Message::Done(at, measured, seconds) => {
                    if !done(at, measured, seconds)
                        && let Ok(mut waiting) = waiting.lock()
                    {
                        waiting.clear();
                    }
                }
            }
        }
    });
}

fn work(
    cases: &[Named<'_>],
    options: &MeasureOptions,
    waiting: &Mutex<std::collections::VecDeque<usize>>,
    sender: &Sender<Message>,
) {
    let next = || waiting.lock().ok()?.pop_front();
    while let Some(at) = next() {
        let began = Instant::now();
        let _ = sender.send(Message::Begun(at));
        let mut detail = |what: &str| {
            let _ = sender.send(Message::Detail(format!("{}: {what}", cases[at])));
        };
        let measured = measure_here(cases[at].case, options, &mut detail);
        let sent = sender.send(Message::Done(at, measured, began.elapsed().as_secs_f64()));
        if sent.is_err() {
            return;
        }
    }
}
