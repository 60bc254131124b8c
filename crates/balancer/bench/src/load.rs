//! A client that makes load and measures how long answers take.
//!
//! At a constant rate, a request's time counts from when it should have been sent, not from when
//! a connection was free for it: a server that stalls delays all requests that were due meanwhile,
//! and each of them counts (the correction for coordinated omission). A request that had no answer
//! when the client stopped waiting counts as one that took as long as the client waited.
//!
//! The client opens its connections, prints a line, waits for a line on standard input, sends
//! requests until its time is over, and prints what it measured as JSON.

mod connection;
mod http2;
mod raw;
mod schedule;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::BufRead;
use std::rc::Rc;
use std::time::{Duration, Instant};

use connection::{Connection, Server};
use hdrhistogram::Histogram;
use schedule::Schedule;
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::spawn_local;
use tokio::time::timeout;

use crate::arguments::LoadArguments;
use crate::cost::{Cost, cost_of};
use crate::failure::Failure;

/// The time for which the client waits for answers after the last request was due.
const GRACE: Duration = Duration::from_secs(10);

/// The number of different errors that are counted separately. Further ones are counted as one.
const KINDS: usize = 16;

/// The measurements of a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// Requests that were answered as they should be.
    pub(crate) answered: u64,
    /// Requests that failed or got another answer.
    pub(crate) failed: u64,
    /// Requests that had no answer when the client stopped to wait.
    pub(crate) unanswered: u64,
    /// The seconds from the first request to the last answer.
    pub(crate) seconds: f64,
    /// The quantiles of the times of answers, in microseconds.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    /// The CPU time of the client process.
    pub(crate) cost: Cost,
    /// The errors of failed requests, each with its number of occurrences.
    pub(crate) errors: BTreeMap<String, u64>,
}

impl Measured {
    /// Returns one of the errors of failed requests.
    pub(crate) fn error(&self) -> Option<&str> {
        self.errors.keys().next().map(String::as_str)
    }
}

/// The state that all connections share.
struct Load {
    server: Server,
    is_new: bool,
    schedule: Schedule,
    times: RefCell<Histogram<u64>>,
    failed: Cell<u64>,
    errors: RefCell<BTreeMap<String, u64>>,
    last_answer: Cell<Option<Instant>>,
}

/// Makes load and prints what it measured.
pub(crate) fn run(arguments: &LoadArguments) -> Result<(), Failure> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
    let runtime = runtime.map_err(Failure::of("start the runtime"))?;
    let measured = runtime.block_on(measure(arguments))?;
    let json = serde_json::to_string(&measured).map_err(|error| Failure(error.to_string()))?;
    println!("{json}");
    Ok(())
}

async fn measure(arguments: &LoadArguments) -> Result<Measured, Failure> {
    let times = Histogram::new_with_bounds(1_000, 100_000_000_000, 3);
    let load = Rc::new(Load {
        server: Server::new(arguments)?,
        is_new: arguments.new,
        schedule: Schedule::new(arguments.rate),
        times: RefCell::new(times.map_err(|error| Failure(error.to_string()))?),
        failed: Cell::new(0),
        errors: RefCell::default(),
        last_answer: Cell::new(None),
    });
    let mut connections = Vec::new();
    for number in 0..arguments.connections {
        connections.push(if arguments.new {
            None
        } else {
            let opened = timeout(GRACE, opened(&load, number, arguments.silent)).await;
            Some(opened.unwrap_or_else(|_| Err(Failure("no answer in time".to_owned())))?)
        });
    }
    println!("ready");
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(Failure::of("read standard input"))?;

    let before = cost_of(std::process::id())?;
    let begin = Instant::now();
    load.schedule.start(begin, Duration::from_secs(arguments.seconds.into()));
    let workers: Vec<_> = connections
        .into_iter()
        .enumerate()
        .map(|(number, connection)| spawn_local(work(Rc::clone(&load), number, connection)))
        .collect();
    load.schedule.run().await.map_err(Failure::of("wait for the next request's time"))?;
    let _ = timeout(GRACE, async {
        for worker in workers {
            let _ = worker.await;
        }
    })
    .await;
    let cost = cost_of(std::process::id())? - before;
    Ok(load.measured(begin, cost))
}

/// Opens a connection and sends a first request over it, unless the connection is to be silent.
async fn opened(load: &Load, number: usize, is_silent: bool) -> Result<Connection, Failure> {
    let doing = || Failure::of(format!("ask {}", load.server.address));
    let mut connection = load.server.connect(number).await.map_err(doing())?;
    if !is_silent {
        connection.ask(&load.server.request).await.map_err(doing())?;
    }
    Ok(connection)
}

/// Sends requests until none is due any more.
async fn work(load: Rc<Load>, number: usize, mut connection: Option<Connection>) {
    while let Some(due) = load.schedule.next().await {
        match request(&load, number, connection.take()).await {
            Ok(kept) => {
                connection = (!load.is_new).then_some(kept);
                let now = Instant::now();
                let nanos = u64::try_from(now.duration_since(due).as_nanos()).unwrap_or(u64::MAX);
                load.times.borrow_mut().saturating_record(nanos);
                load.last_answer.set(Some(now));
            }
            Err(error) => {
                load.failed.set(load.failed.get() + 1);
                load.note(&error);
            }
        }
    }
}

async fn request(
    load: &Load,
    number: usize,
    connection: Option<Connection>,
) -> std::io::Result<Connection> {
    let mut connection = match connection {
        Some(connection) => connection,
        None => load.server.connect(number).await?,
    };
    connection.ask(&load.server.request).await?;
    Ok(connection)
}

impl Load {
    /// Counts an error. Beyond `KINDS` different errors, new ones are counted together as others.
    fn note(&self, error: &std::io::Error) {
        let mut errors = self.errors.borrow_mut();
        let text = error.to_string();
        let kind = match errors.len() {
            KINDS.. if !errors.contains_key(&text) => "others".to_owned(),
            _ => text,
        };
        *errors.entry(kind).or_default() += 1;
    }

    fn measured(&self, begin: Instant, cost: Cost) -> Measured {
        let mut times = self.times.borrow_mut();
        let (answered, failed) = (times.len(), self.failed.get());
        let unanswered = self.schedule.taken().saturating_sub(answered + failed);
        record_unanswered(&mut times, unanswered);
        let micros = |quantile: f64| times.value_at_quantile(quantile) as f64 / 1_000.0;
        let end = self.last_answer.get().unwrap_or(begin);
        Measured {
            answered,
            failed,
            unanswered,
            seconds: end.duration_since(begin).as_secs_f64(),
            p50: micros(0.5),
            p99: micros(0.99),
            p999: micros(0.999),
            cost,
            errors: self.errors.borrow().clone(),
        }
    }
}

/// Records requests without an answer as answers that took as long as the client waited.
fn record_unanswered(times: &mut Histogram<u64>, count: u64) {
    times.saturating_record_n(u64::try_from(GRACE.as_nanos()).unwrap_or(u64::MAX), count);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_without_an_answer_are_among_the_slowest() {
        let mut times = Histogram::<u64>::new_with_bounds(1_000, 100_000_000_000, 3).unwrap();
        times.saturating_record_n(50_000, 980);
        record_unanswered(&mut times, 20);
        assert!(times.value_at_quantile(0.5) < 60_000);
        assert!(Duration::from_nanos(times.value_at_quantile(0.99)) >= GRACE);
    }
}
