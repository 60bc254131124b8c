//! Measures how hostile clients affect honest ones: `uturn lb run` serves honest clients at a
//! constant rate, in turns alone and beside [hostile ones](crate::attack), and each turn is
//! measured in the same way ([`turn`]). At the end hostile clients leave, and the load balancer has
//! to give back what they had taken ([`verdict`]).

mod honest;
mod metrics;
mod site;
mod table;
mod turn;
mod verdict;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::arguments::HostileArguments;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::signals::until_stopped;
use site::Site;
use turn::{Company, Turn};
use verdict::{Left, Verdict};

/// The longest time until the load balancer has given back what hostile clients had taken.
const LEAVING: Duration = Duration::from_secs(300);

/// The durations of turns, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    rounds: u32,
    alone: u32,
    beside: u32,
}

impl Plan {
    /// Plans rounds of about ten minutes each, of which honest clients are alone for a seventh.
    fn new(arguments: &HostileArguments) -> Self {
        if arguments.quick {
            return Self { rounds: 1, alone: 5, beside: 20 };
        }
        let rounds = (arguments.minutes / 10).max(1);
        let seconds = arguments.minutes * 60 / rounds;
        let alone = seconds / 7;
        Self { rounds, alone, beside: seconds - alone }
    }
}

/// Runs the measurement and prints its results.
///
/// # Errors
/// When the measurement cannot be run, or finds a fault.
pub(crate) fn run(arguments: &HostileArguments) -> Result<(), Failure> {
    until_stopped(|stopped| attack(arguments, stopped))
}

fn attack(arguments: &HostileArguments, stopped: &AtomicBool) -> Result<(), Failure> {
    let plan = Plan::new(arguments);
    let folder = Folder::make()?;
    let site = Site::start(arguments, &folder.0)?;
    site.wait(stopped)?;
    print!("{}", table::head(arguments, plan.rounds, plan.alone, plan.beside));
    let mut turns: Vec<Turn> = Vec::new();
    for _ in 0..plan.rounds {
        for (company, seconds) in [(Company::None, plan.alone), (Company::Hostile, plan.beside)] {
            if stopped.load(Ordering::Relaxed) {
                return Err(Failure("stopped".to_owned()));
            }
            let turn = Turn::take(&site, company, seconds)?;
            print!("{}", table::turn(turns.len() + 1, &turn));
            turns.push(turn);
        }
    }
    let left = leave(&site, &turns[0], stopped)?;
    let verdict = Verdict::of(&turns, left);
    print!("{}", table::end(&turns, &verdict));
    match verdict.faults.as_slice() {
        [] => Ok(()),
        faults => Err(Failure(faults.join("; "))),
    }
}

/// Waits until the load balancer holds no more than when honest clients were alone, for `LEAVING`
/// at most.
fn leave(site: &Site, first: &Turn, stopped: &AtomicBool) -> Result<Left, Failure> {
    let begin = Instant::now();
    loop {
        let balancer = &site.balancer;
        let left = Left {
            descriptors: balancer.descriptors()?,
            resident: balancer.resident()?,
            after: begin.elapsed(),
        };
        let is_back = verdict::not_given_back(&first.end, left).is_empty();
        if is_back || begin.elapsed() > LEAVING || stopped.load(Ordering::Relaxed) {
            return Ok(left);
        }
        sleep(Duration::from_secs(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_have_about_ten_minutes() {
        let plan = |minutes, quick| {
            Plan::new(&HostileArguments {
                uturn: "uturn".into(),
                minutes,
                quick,
                connections_per_client: None,
                files: 1024,
            })
        };
        assert_eq!(plan(60, false), Plan { rounds: 6, alone: 85, beside: 515 });
        assert_eq!(plan(1, false), Plan { rounds: 1, alone: 8, beside: 52 });
        assert_eq!(plan(60, true).rounds, 1);
    }
}
