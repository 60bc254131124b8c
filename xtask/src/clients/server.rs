//! `uturn cloud serve` as a child process, which ends with its parent.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::shell::{Failure, built};

/// The credential of the clients.
pub(super) const ID: &str = "id-of-the-clients";
pub(super) const KEY: &str = "key-of-the-clients";

/// The duration of a task in milliseconds: long enough for clients to meet a busy load balancer.
const TASK_TIME: &str = "20";

/// A server that is empty at first.
pub(super) struct Server {
    child: Child,
    /// The address and port of the server.
    pub(super) address: String,
}

impl Server {
    /// Starts the server. Returns when it listens.
    pub(super) fn start(folder: &Path) -> Result<Self, Failure> {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&error)),
            _ => {}
        }
        fs::create_dir_all(folder).map_err(|error| failed(&error))?;
        let credentials = folder.join("credentials");
        fs::write(&credentials, format!("{ID} {KEY}\n")).map_err(|error| failed(&error))?;
        let mut uturn = Command::new(built("uturn-cloud"));
        uturn.args(["cloud", "serve", "--until-stdin-closes", "--listen", "127.0.0.1:0"]);
        uturn.args(["--task-time", TASK_TIME, "--credentials"]).arg(&credentials);
        uturn.arg("--state").arg(folder.join("state"));
        let child = uturn.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut server =
            Self { child: child.map_err(|error| failed(&error))?, address: String::new() };
        let mut line = String::new();
        if let Some(stdout) = server.child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).map_err(|error| failed(&error))?;
        }
        match line.trim_end().split_once("http://") {
            Some((_, address)) => server.address = address.to_owned(),
            None => return Err(Failure("uturn cloud serve ended before it listened".to_owned())),
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A process that has ended already cannot be ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn failed(error: &io::Error) -> Failure {
    Failure(format!("uturn cloud serve: {error}"))
}
