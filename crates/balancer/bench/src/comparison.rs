//! The comparison: contestants are measured in turns, so that other work on the machine affects all
//! of them ([`stage`](crate::stage)).

use std::fs;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::arguments::{LbArguments, Output};
use crate::failure::Failure;
use crate::folder::Folder;
use crate::goal::Goal;
use crate::network::Network;
use crate::result::{Comparison, Machine, version};
use crate::servers::make_certificate;
use crate::signals::until_stopped;
use crate::stage::Stage;
use crate::table;

/// Measures every row that was asked for, and prints a table for each.
///
/// # Errors
/// When a program cannot be started, or a load balancer does not serve.
pub(crate) fn run(arguments: &LbArguments) -> Result<(), Failure> {
    until_stopped(|stopped| compare(arguments, stopped))
}

fn compare(arguments: &LbArguments, stopped: &AtomicBool) -> Result<(), Failure> {
    let programs = [
        version(Command::new(&arguments.uturn).arg("--version")),
        version(Command::new("nginx").arg("-v")),
        version(Command::new("haproxy").arg("-v")),
    ];
    let has_haproxy = programs[2].is_some();
    let mut comparison = Comparison {
        machine: Machine::this(programs.into_iter().flatten().collect()),
        rounds: arguments.rounds(),
        seconds: arguments.seconds(),
        rows: Vec::new(),
        goals: Vec::new(),
    };
    let is_text = arguments.output == Output::Text;
    if is_text {
        print!("{}", table::head(&comparison));
        if !has_haproxy {
            println!("HAProxy is not here: it is left out");
        }
    }
    raise_file_limit();
    let folder = Folder::make()?;
    make_certificate(&folder.0)?;
    let network = Network::make()?;
    let stage = Stage { arguments, folder: &folder.0, network: &network, stopped, has_haproxy };
    for row in arguments.rows() {
        let result = stage.measure(*row)?;
        if is_text {
            print!("{}", table::row(&result));
        }
        comparison.goals.extend(Goal::of_row(&result));
        comparison.rows.push(result);
    }
    let json = serde_json::to_string_pretty(&comparison);
    let json = json.map_err(|error| Failure(error.to_string()))?;
    match arguments.output {
        Output::Text => print!("{}", table::goals(&comparison.goals)),
        Output::Json => println!("{json}"),
    }
    match &arguments.save {
        None => Ok(()),
        Some(file) => {
            let doing = format!("write {}", file.display());
            fs::write(file, json + "\n").map_err(Failure::of(doing))
        }
    }
}

/// Raises the limit of open files, as many connections need many descriptors. Programs that are
/// started inherit the limit.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    // If the limit stays lower, connections fail, which is reported.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
