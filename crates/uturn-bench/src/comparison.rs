//! The comparison: all load balancers beside each other on one core, clients and targets on another,
//! measured in turns so that whatever else the machine does meets all of them.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::arguments::LbArguments;
use crate::contestant::{Contestant, Setting, make_certificate, start_targets};
use crate::failure::Failure;
use crate::load::Measured;
use crate::namespaces::{self, Namespaces};
use crate::process::{Place, Running};
use crate::row::Row;
use crate::table::{self, Constant, Full, Memory};

/// How long a load balancer may take to serve.
const START: Duration = Duration::from_secs(20);

/// The constant rate, as a part of what the slowest can do.
const PART: f64 = 0.5;

/// Compares in every row that was asked for, and prints a table for each.
///
/// # Errors
/// When a program cannot be started, or a load balancer does not serve.
pub(crate) fn run(arguments: &LbArguments) -> Result<(), Failure> {
    let stopped = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stopped))
            .map_err(Failure::of("listen for signals"))?;
    }
    let contestants: Vec<Contestant> =
        Contestant::ALL.into_iter().filter(|contestant| is_here(*contestant)).collect();
    raise_file_limit();
    let folder = Folder::make()?;
    make_certificate(&folder.0)?;
    let stage = Stage {
        arguments,
        contestants,
        folder: &folder.0,
        namespaces: Namespaces::make()?,
        stopped,
    };
    let rows = match arguments.rows.as_slice() {
        [] => Row::value_variants(),
        rows => rows,
    };
    for row in rows {
        match row {
            Row::Memory => stage.memory(*row)?,
            row => stage.speed(*row)?,
        }
    }
    Ok(())
}

/// Whether a contestant can be had; says so if not.
fn is_here(contestant: Contestant) -> bool {
    let is_here = match contestant {
        Contestant::Uturn | Contestant::Nginx => true,
        Contestant::HaProxy => Command::new("haproxy")
            .arg("-v")
            .stdout(Stdio::null())
            .status()
            .is_ok_and(|status| status.success()),
    };
    if !is_here {
        println!("{} is not here: it is left out", contestant.name());
    }
    is_here
}

/// Many connections need many descriptors. Programs that are started take the limit over.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    // Where it stays lower, connections fail, which is reported.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Where and by what is measured.
struct Stage<'a> {
    arguments: &'a LbArguments,
    contestants: Vec<Contestant>,
    folder: &'a Path,
    namespaces: Namespaces,
    stopped: Arc<AtomicBool>,
}

/// All load balancers of a row, and the targets behind them.
struct Started<'a> {
    stage: &'a Stage<'a>,
    row: Row,
    vip: IpAddr,
    contestants: Vec<(Contestant, Running)>,
    _targets: Running,
}

impl Stage<'_> {
    fn speed(&self, row: Row) -> Result<(), Failure> {
        let started = self.start(row)?;
        let mut full = vec![Vec::new(); self.contestants.len()];
        started.in_turns(|number| {
            let (measured, cpu) = started.load(number, row.connections(), None)?;
            let per_second = measured.answered as f64 / measured.seconds;
            full[number].push(Full { per_second, cpu: per_request(cpu, &measured), measured });
            Ok(())
        })?;
        let speeds = full.iter().map(|samples| table::median(samples, |full| full.per_second));
        let slowest = speeds.fold(f64::INFINITY, f64::min);
        let rate = ((slowest * PART) as u32).max(10);
        let mut constant = vec![Vec::new(); self.contestants.len()];
        // Enough for requests to be sent on time while some wait.
        let connections = if row.is_new() { 4 * row.connections() } else { row.connections() };
        started.in_turns(|number| {
            let (measured, cpu) = started.load(number, connections, Some(rate))?;
            constant[number].push(Constant { cpu: per_request(cpu, &measured), measured });
            Ok(())
        })?;
        table::print_speed(row, rate, &self.contestants, &full, &constant);
        Ok(())
    }

    fn memory(&self, row: Row) -> Result<(), Failure> {
        let started = self.start(row)?;
        let mut samples = Vec::new();
        for (number, (_, running)) in started.contestants.iter().enumerate() {
            let before = running.memory()?;
            let clients = started.clients(number, row.connections(), None, 0)?;
            let after = running.memory()?;
            clients.go()?;
            samples.push(Memory { before, after });
        }
        table::print_memory(row, &self.contestants, &samples);
        Ok(())
    }

    fn start(&self, row: Row) -> Result<Started<'_>, Failure> {
        let Self { arguments, folder, namespaces, .. } = self;
        let (vip, target, at_targets) = match row.keeps_source() {
            true => (namespaces::VIP, namespaces::TARGET, &namespaces.targets),
            false => (namespaces::LOCAL_VIP, namespaces::LOCAL_TARGET, &namespaces.balancer),
        };
        let at_targets = Place { namespace: at_targets, core: arguments.other_core };
        let targets = start_targets(target, at_targets, folder)?;
        let setting = Setting {
            row,
            vip,
            target,
            place: Place { namespace: &namespaces.balancer, core: arguments.core },
            folder,
            uturn: &arguments.uturn,
        };
        let mut contestants = Vec::new();
        for contestant in &self.contestants {
            contestants.push((*contestant, contestant.start(&setting)?));
        }
        let started = Started { stage: self, row, vip, contestants, _targets: targets };
        started.wait()?;
        Ok(started)
    }
}

impl Started<'_> {
    /// Waits until every load balancer serves.
    fn wait(&self) -> Result<(), Failure> {
        let end = Instant::now() + START;
        for (number, (contestant, _)) in self.contestants.iter().enumerate() {
            while let Err(failure) = self.clients(number, 1, None, 0).and_then(Clients::go) {
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

    /// Measures each load balancer as often as it was asked for, each time in another order.
    fn in_turns(
        &self,
        mut measure: impl FnMut(usize) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let count = self.contestants.len();
        for round in 0..self.stage.arguments.rounds as usize {
            for turn in 0..count {
                if self.stage.stopped.load(Ordering::Relaxed) {
                    return Err(Failure("stopped".to_owned()));
                }
                measure((round + turn) % count)?;
            }
        }
        Ok(())
    }

    /// Loads one of them, and returns what clients measured and what it took of its core.
    fn load(
        &self,
        number: usize,
        connections: usize,
        rate: Option<u32>,
    ) -> Result<(Measured, Duration), Failure> {
        let clients = self.clients(number, connections, rate, self.stage.arguments.seconds)?;
        let (contestant, running) = &self.contestants[number];
        let before = running.cpu()?;
        let measured = clients.go()?;
        let cpu = running.cpu()?.saturating_sub(before);
        if let Some(error) = &measured.error {
            println!(
                "{}: {}: {} failed: {error}",
                self.row.title(),
                contestant.name(),
                measured.failed
            );
        }
        match measured.answered {
            0 => Err(Failure(format!("{} answers nothing", contestant.name()))),
            _ => Ok((measured, cpu)),
        }
    }

    /// Clients whose connections are open.
    fn clients(
        &self,
        number: usize,
        connections: usize,
        rate: Option<u32>,
        seconds: u32,
    ) -> Result<Clients, Failure> {
        let Stage { arguments, namespaces, .. } = self.stage;
        let (namespace, from) = match self.row.keeps_source() {
            true => (&namespaces.clients, namespaces::clients()),
            false => (&namespaces.balancer, namespaces::local_clients()),
        };
        let this = std::env::current_exe().map_err(Failure::of("find this program"))?;
        let mut command = Place { namespace, core: arguments.other_core }.command(this);
        let to = self.contestants[number].0.address(self.vip);
        command.args(["load", "--to", &to.to_string(), "--path", self.row.path()]);
        command.args(["--connections", &connections.to_string()]);
        command.args(["--seconds", &seconds.to_string()]);
        for address in from {
            command.args(["--from", &address.to_string()]);
        }
        if let Some(rate) = rate {
            command.args(["--rate", &rate.to_string()]);
        }
        // What has no time to send anything only has to reach the server.
        if self.row.is_new() && seconds > 0 {
            command.arg("--new");
        }
        if self.row.is_tls() {
            command.arg("--tls");
        }
        Clients::start(&mut command)
    }
}

/// A process that makes load.
struct Clients {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Clients {
    /// Starts it and waits until its connections are open.
    fn start(command: &mut Command) -> Result<Self, Failure> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(Failure::of("start clients"))?;
        let output = child.stdout.take().ok_or_else(|| Failure("no output".to_owned()))?;
        let mut clients = Self { child, output: BufReader::new(output) };
        match clients.line()?.as_str() {
            "ready" => Ok(clients),
            _ => {
                let mut why = String::new();
                if let Some(stderr) = clients.child.stderr.take() {
                    let _ = BufReader::new(stderr).read_line(&mut why);
                }
                Err(Failure(why.trim().to_owned()))
            }
        }
    }

    /// Sends requests until the time is over.
    fn go(mut self) -> Result<Measured, Failure> {
        let doing = "reach clients";
        let mut input =
            self.child.stdin.take().ok_or_else(|| Failure(format!("cannot {doing}")))?;
        input.write_all(b"go\n").map_err(Failure::of(doing))?;
        let line = self.line()?;
        serde_json::from_str(&line).map_err(|error| Failure(format!("clients: {error}: {line}")))
    }

    fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(Failure::of("read from clients"))?;
        Ok(line.trim().to_owned())
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder that is there until this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn make() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("uturn-bench-{}", std::process::id()));
        let doing = format!("make the folder {}", path.display());
        fs::create_dir(&path).map_err(Failure::of(doing))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// In microseconds.
fn per_request(cpu: Duration, measured: &Measured) -> f64 {
    cpu.as_secs_f64() * 1e6 / measured.answered as f64
}
