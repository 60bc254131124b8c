//! `clients`: calls the API that `uturn cloud serve` has with independent clients.
//!
//! Installs the SDKs for Python, Go and Node.js and the command line tool of the API's own vendor
//! (`conformance/cloud-clients` has their versions and checksums) under `target/clients`. Each
//! client gets a server of its own. Also compares the schema of `uturn-cloud-api` with the description
//! that one of the clients contains, and replays the exchanges documented there.

mod install;
mod server;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::shell::{self, Failure};
use crate::{Outcome, machine};
use install::Installed;
use server::Server;

/// The variables with the address and the credential for the clients.
const VARIABLES: [&str; 3] = ["CLOUD_ADDRESS", "CLOUD_ID", "CLOUD_KEY"];

/// Installs the clients and runs each against a server of its own.
pub(crate) fn run() -> Result<Outcome, Failure> {
    if let Err(why) = machine::install_for_clients() {
        return Ok(Outcome::Skipped(why));
    }
    if machine::find("go").is_none() {
        return Ok(Outcome::Skipped(
            "go not found; it builds a client (Go 1.26 or later)".to_owned(),
        ));
    }
    let sources = shell::root().join("conformance").join("cloud-clients");
    let installed = match Installed::new(&sources, &shell::target().join("clients")) {
        Ok(installed) => installed,
        // The most frequent reason is a registry that cannot be reached.
        Err(failure) => {
            return Ok(Outcome::Skipped(format!("the clients are not here: {failure}")));
        }
    };
    shell::build(&["uturn-cloud"])?;
    let failures: Vec<String> = facts(&sources, &installed)
        .map(|mut compare| shell::run(&mut compare))
        .into_iter()
        .chain(clients(&sources, &installed).map(|client| client.run(&installed)))
        .filter_map(|ended| ended.err().map(|failure| failure.0))
        .collect();
    if failures.is_empty() { Ok(Outcome::Complete) } else { Err(Failure(failures.join("; "))) }
}

/// Returns the commands that compare this repository's own facts with those of the clients.
fn facts(sources: &Path, installed: &Installed) -> [Command; 2] {
    let python = |file: &str| installed.python(&sources.join("python").join(file));
    let room = shell::root().join("crates/cloud");
    let (mut schema, mut codes) = (python("schema.py"), python("codes.py"));
    schema.arg(room.join("cloud-api"));
    codes.arg(room.join("cloud")).arg(sources.join("go"));
    [schema, codes]
}

/// A program that calls a server.
struct Client {
    name: &'static str,
    program: Command,
}

fn clients(sources: &Path, installed: &Installed) -> [Client; 6] {
    let python = |file: &str| installed.python(&sources.join("python").join(file));
    [
        Client { name: "python", program: python("sdk.py") },
        Client { name: "exchanges", program: python("exchanges.py") },
        Client { name: "neighbours", program: python("neighbours.py") },
        Client { name: "commands", program: python("commands.py") },
        Client { name: "go", program: installed.go() },
        Client { name: "node", program: installed.node() },
    ]
}

impl Client {
    /// Runs the client against a server of its own.
    fn run(mut self, installed: &Installed) -> Result<(), Failure> {
        let start = Instant::now();
        let folder: PathBuf = installed.folder.join(self.name);
        let server = Server::start(&folder.join("server"))?;
        let values = [server.address.as_str(), server::ID, server::KEY];
        self.program.envs(VARIABLES.into_iter().zip(values));
        // Some clients write settings to their user's folder.
        self.program.env("HOME", &folder).env("USERPROFILE", &folder);
        shell::run(&mut self.program)?;
        println!("{} called the server ({} s)", self.name, start.elapsed().as_secs());
        Ok(())
    }
}
