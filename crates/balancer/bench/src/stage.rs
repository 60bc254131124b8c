//! Measures a row: starts the contestants and the targets, and lets clients load each contestant in
//! turns.
//!
//! On layer 7, load balancers have one core, and everything else has another. On layer 4 the kernel
//! forwards packets on the core of their sender, so everything shares one core, and the total CPU
//! time per request is compared.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::arguments::LbArguments;
use crate::clients::Clients;
use crate::contestant::{Contestant, Setting};
use crate::cost::{Cost, cost_of, kernel_memory, packet_thread};
use crate::failure::Failure;
use crate::load::Measured;
use crate::network::{Addresses, Network};
use crate::process::{Place, Running};
use crate::result::{ContestantResult, Figure, Memory, RowResult, Sample, figures};
use crate::row::{Measure, Row};
use crate::servers::start_targets;
use crate::statistics::{Summary, constant_rate, constant_seconds, full_seconds};

/// The longest time until a load balancer serves.
const START: Duration = Duration::from_secs(20);

/// The surroundings of all measurements of a run.
pub(crate) struct Stage<'a> {
    pub(crate) arguments: &'a LbArguments,
    pub(crate) folder: &'a Path,
    pub(crate) network: &'a Network,
    /// Whether a signal asked to stop.
    pub(crate) stopped: &'a AtomicBool,
    pub(crate) has_haproxy: bool,
}

/// The contestants of a row, and the targets behind them.
struct Started<'a> {
    stage: &'a Stage<'a>,
    row: Row,
    starters: Vec<Starter<'a>>,
    targets: Running,
    /// The kernel's thread for packets on the core of clients and targets.
    packets: Option<u32>,
}

/// A contestant that was started.
struct Starter<'a> {
    contestant: Contestant,
    addresses: Addresses,
    clients: Place<'a>,
    /// The contestant's process. Plain routing has none.
    running: Option<Running>,
}

impl Stage<'_> {
    /// Measures a row.
    ///
    /// # Errors
    /// When a program cannot be started, or a load balancer does not serve.
    pub(crate) fn measure(&self, row: Row) -> Result<RowResult, Failure> {
        match row.measure() {
            Measure::Memory => self.memory(row),
            Measure::Speed => self.speed(row),
        }
    }

    fn speed(&self, row: Row) -> Result<RowResult, Failure> {
        let started = self.start(row)?;
        let mut result = self.result(&started);
        let seconds = self.arguments.seconds();
        started.in_turns(|number| {
            let sample = started.load(number, row.connections(), None, full_seconds(seconds))?;
            result.contestants[number].full.push(sample);
            Ok(())
        })?;
        if !row.has_constant_rate() {
            return Ok(result);
        }
        let speeds = result.contestants.iter().filter_map(|contestant| {
            Some(Summary::of(figures(&contestant.full, Figure::PerSecond))?.median)
        });
        let rate = constant_rate(speeds.fold(f64::INFINITY, f64::min));
        let seconds = constant_seconds(rate, seconds);
        (result.rate, result.rate_seconds) = (Some(rate), Some(seconds));
        let connections = row.connections_at_constant_rate();
        started.in_turns(|number| {
            let sample = started.load(number, connections, Some(rate), seconds)?;
            result.contestants[number].constant.push(sample);
            Ok(())
        })?;
        Ok(result)
    }

    fn memory(&self, row: Row) -> Result<RowResult, Failure> {
        let started = self.start(row)?;
        let mut result = self.result(&started);
        for (number, starter) in started.starters.iter().enumerate() {
            let Some(running) = &starter.running else { continue };
            started.check_stop()?;
            let (before, kernel_before) = (running.memory()?, kernel_memory());
            let clients = started.clients(number, row.connections(), None, 0)?;
            let (after, kernel_after) = (running.memory()?, kernel_memory());
            drop(clients);
            let memory = Memory { before, after, kernel_before, kernel_after };
            result.contestants[number].memory = Some(memory);
        }
        Ok(result)
    }

    fn result(&self, started: &Started<'_>) -> RowResult {
        let row = started.row;
        let contestants = started.starters.iter();
        RowResult {
            row,
            title: row.title(),
            unit: row.unit(),
            connections: row.connections(),
            full_seconds: full_seconds(self.arguments.seconds()),
            rate: None,
            rate_seconds: None,
            contestants: contestants
                .map(|starter| ContestantResult::new(starter.contestant))
                .collect(),
        }
    }

    fn start(&self, row: Row) -> Result<Started<'_>, Failure> {
        let Self { arguments, folder, network, .. } = self;
        // On layer 4 everything shares the load balancers' core.
        let other_core = if row.is_layer_4() { arguments.core } else { arguments.other_core };
        let (clients, targets) = if row.is_through_namespaces() {
            (&network.clients, &network.targets)
        } else {
            (&network.layer_7.space, &network.layer_7.space)
        };
        let place = |space| Place { space, core: other_core };
        let (clients, targets) = (place(clients), start_targets(row, place(targets), folder)?);
        let mut starters = Vec::new();
        for contestant in row.contestants() {
            if *contestant == Contestant::HaProxy && !self.has_haproxy {
                continue;
            }
            let middle =
                if row.is_layer_4() { network.layer_4(*contestant) } else { &network.layer_7 };
            let addresses =
                if row.is_through_namespaces() { middle.addresses() } else { Addresses::local() };
            let setting = Setting {
                row,
                vip: addresses.vip,
                target: addresses.target,
                gateway: middle.gateway(),
                place: Place { space: &middle.space, core: arguments.core },
                folder,
                uturn: &arguments.uturn,
            };
            let running = contestant.start(&setting)?;
            starters.push(Starter { contestant: *contestant, addresses, clients, running });
        }
        let packets = packet_thread(other_core);
        let started = Started { stage: self, row, starters, targets, packets };
        started.wait()?;
        Ok(started)
    }
}

impl Started<'_> {
    /// Waits until every load balancer serves.
    fn wait(&self) -> Result<(), Failure> {
        let end = Instant::now() + START;
        for (number, Starter { contestant, .. }) in self.starters.iter().enumerate() {
            while let Err(failure) = self.clients(number, 1, None, 0).and_then(Clients::go) {
                self.check_stop()?;
                if Instant::now() > end {
                    let log = self.stage.folder.join(format!("{}.log", contestant.name()));
                    let log = fs::read_to_string(log).unwrap_or_default();
                    let name = contestant.name();
                    return Err(Failure(format!("{name} does not serve: {failure}\n{log}")));
                }
                sleep(Duration::from_millis(100));
            }
        }
        Ok(())
    }

    fn check_stop(&self) -> Result<(), Failure> {
        if self.stage.stopped.load(Ordering::Relaxed) {
            Err(Failure("stopped".to_owned()))
        } else {
            Ok(())
        }
    }

    /// Measures each contestant in each round. The order changes from round to round.
    fn in_turns(
        &self,
        mut measure: impl FnMut(usize) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let count = self.starters.len();
        for round in 0..self.stage.arguments.rounds() as usize {
            for turn in 0..count {
                self.check_stop()?;
                measure((round + turn) % count)?;
            }
        }
        Ok(())
    }

    /// Loads a contestant, and returns the clients' measurements and the CPU time that was used.
    fn load(
        &self,
        number: usize,
        connections: usize,
        rate: Option<u32>,
        seconds: u32,
    ) -> Result<Sample, Failure> {
        let clients = self.clients(number, connections, rate, seconds)?;
        let before = (self.cost(number)?, self.cost_of_others()?);
        let measured = clients.go()?;
        let own = self.cost(number)? - before.0;
        let others = self.cost_of_others()? - before.1 + measured.cost;
        match measured {
            Measured { answered: 0, .. } => {
                let name = self.starters[number].contestant.name();
                let error = measured.error().unwrap_or_default();
                Err(Failure(format!("{name} answers nothing: {error}")))
            }
            measured if self.row.is_layer_4() => {
                Ok(Sample::new(measured, own + others, own + others))
            }
            measured => Ok(Sample::new(measured, own, others)),
        }
    }

    /// Returns the CPU time of a contestant's process until now.
    fn cost(&self, number: usize) -> Result<Cost, Failure> {
        let own = self.starters[number].running.as_ref().map(Running::cost).transpose()?;
        Ok(own.unwrap_or_default())
    }

    /// Returns the CPU time of the targets and of the kernel's thread until now.
    fn cost_of_others(&self) -> Result<Cost, Failure> {
        let packets = self.packets.map(cost_of).transpose()?.unwrap_or_default();
        Ok(self.targets.cost()? + packets)
    }

    /// Starts clients, and returns when their connections are open.
    fn clients(
        &self,
        number: usize,
        connections: usize,
        rate: Option<u32>,
        seconds: u32,
    ) -> Result<Clients, Failure> {
        let Starter { contestant, addresses, clients, .. } = &self.starters[number];
        let this = std::env::current_exe().map_err(Failure::of("find this program"))?;
        let mut command = clients.command(this);
        let to = contestant.address(addresses.vip, addresses.target);
        command.args(["load", "--to", &to.to_string(), "--path", self.row.path()]);
        command.args(["--exchange", self.row.exchange().word()]);
        command.args(["--connections", &connections.to_string()]);
        command.args(["--seconds", &seconds.to_string()]);
        for address in &addresses.clients {
            command.args(["--from", &address.to_string()]);
        }
        if let Some(rate) = rate {
            command.args(["--rate", &rate.to_string()]);
        }
        // Clients without time to send anything only have to reach the server.
        if self.row.is_new() && seconds > 0 {
            command.arg("--new");
        }
        // A single connection checks whether the server answers.
        if self.row.is_silent() && connections > 1 {
            command.arg("--silent");
        }
        if self.row.is_tls() {
            command.arg("--tls");
        }
        Clients::start(&mut command)
    }
}
