//! A client process that the comparison starts to make load.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::failure::Failure;
use crate::load::Measured;

/// The client process. It is killed when this is dropped.
pub(crate) struct Clients {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Clients {
    /// Starts the process and waits until its connections are open.
    ///
    /// # Errors
    /// When the connections cannot be opened.
    pub(crate) fn start(command: &mut Command) -> Result<Self, Failure> {
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

    /// Lets the clients send requests until their time is over, and returns what they measured.
    ///
    /// # Errors
    /// When the process ends early.
    pub(crate) fn go(mut self) -> Result<Measured, Failure> {
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
