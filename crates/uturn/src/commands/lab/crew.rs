//! Cases side by side on this kernel: labs mostly wait, and each is a world of its own.

use std::sync::Mutex;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Instant;

use uturn_lab::{LabError, MeasuredFlow};

use super::how::How;
use super::machine::Named;
use super::measure_here;
use crate::printer::Printer;
use crate::status::Failure;

/// What became of a case.
pub(super) type Measured = Result<Result<Vec<MeasuredFlow>, LabError>, Failure>;

/// What a worker tells.
enum News {
    Begun(usize),
    Detail(String),
    Done(usize, Measured, f64),
}

/// As many labs at a time as keep the processors busy while they wait.
pub(super) fn usual_size() -> usize {
    2 * thread::available_parallelism().map_or(1, usize::from)
}

/// Measures cases, so many at a time, and hands each on as it is done, with the seconds it
/// took. After `done` said no, no other is begun.
pub(super) fn measure(
    cases: &[Named<'_>],
    how: &How,
    size: usize,
    printer: &Printer,
    done: &mut dyn FnMut(usize, Measured, f64) -> bool,
) {
    let waiting = Mutex::new((0..cases.len()).collect::<std::collections::VecDeque<_>>());
    let (sender, news) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..size.min(cases.len()) {
            let (sender, waiting) = (sender.clone(), &waiting);
            scope.spawn(move || work(cases, how, waiting, &sender));
        }
        drop(sender);
        for message in news {
            match message {
                News::Begun(at) => printer.progress(&format!("{} …", cases[at])),
                News::Detail(what) => printer.detail(&what),
                News::Done(at, measured, seconds) => {
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
    how: &How,
    waiting: &Mutex<std::collections::VecDeque<usize>>,
    sender: &Sender<News>,
) {
    let next = || waiting.lock().ok()?.pop_front();
    while let Some(at) = next() {
        let began = Instant::now();
        let _ = sender.send(News::Begun(at));
        let mut detail = |what: &str| {
            let _ = sender.send(News::Detail(format!("{}: {what}", cases[at])));
        };
        let measured = measure_here(cases[at].case, how, &mut detail);
        let told = sender.send(News::Done(at, measured, began.elapsed().as_secs_f64()));
        if told.is_err() {
            return;
        }
    }
}
