//! Captures a node from within a container of one of its pods that has the node's network, such as
//! kube-proxy's.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use uturn_node::{Machine, ToolFailure};

use crate::exec::{Container, ExecError, Executed, exec};
use crate::server::Server;

/// A container in which tools are run. Its methods block: they must be called from other threads
/// than the one that drives the runtime.
#[derive(Clone, Debug)]
pub struct PodMachine {
    server: Arc<Server>,
    container: Container,
    limit: Duration,
    runtime: Handle,
    stop: watch::Receiver<bool>,
}

impl PodMachine {
    /// Returns a container of this server. Each tool may take `limit`; all end once `stop` is true.
    pub fn new(
        server: Arc<Server>,
        container: Container,
        limit: Duration,
        runtime: Handle,
        stop: watch::Receiver<bool>,
    ) -> Self {
        Self { server, container, limit, runtime, stop }
    }

    /// Runs a command, and returns what it printed and how it ended.
    ///
    /// # Errors
    /// If the command cannot be started, or its end is not known.
    pub fn execute(&self, command: &[&str]) -> Result<Executed, ExecError> {
        let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        let mut stop = self.stop.clone();
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                _ = stop.wait_for(|is_over| *is_over) => {
                    Err(ExecError::Failed("interrupted".to_owned()))
                }
                executed = exec(&self.server, &self.container, &command, self.limit) => executed,
            }
        })
    }

    /// Returns the output of a command, if it did not fail.
    fn printed(&self, command: &[&str]) -> Result<String, ToolFailure> {
        let executed = self.execute(command).map_err(|error| match error {
            ExecError::NoProgram(_) => ToolFailure::Missing,
            ExecError::TimedOut(limit) => ToolFailure::TimedOut(limit),
            other => ToolFailure::Failed(other.to_string()),
        })?;
        if executed.exit == 0 {
            return Ok(String::from_utf8_lossy(&executed.stdout).into_owned());
        }
        let complaint = String::from_utf8_lossy(&executed.stderr).into_owned();
        let reason = complaint.lines().map(str::trim).find(|line| !line.is_empty());
        let code = format!("exit code {}", executed.exit);
        Err(ToolFailure::Failed(reason.map_or(code, str::to_owned)))
    }

    /// Runs a script with the container's shell. Images of kube-proxy have a shell, and little
    /// else.
    fn script(&self, script: &str, arguments: &[&str]) -> Result<String, ToolFailure> {
        let printed = self.printed(&[&["sh", "-c", script, "sh"], arguments].concat());
        printed.map_err(|why| match why {
            ToolFailure::Missing => ToolFailure::Failed("the image has no shell".to_owned()),
            other => other,
        })
    }
}

/// Prints a file. A file that does not exist is no failure of the script, so that it is told apart
/// from a failure of the container. The shell's own `read` would read a byte at a time, and most
/// files of `/proc/sys` return only the first one then.
const READ: &str = r#"if [ ! -e "$1" ]; then echo missing; exit; fi
echo there
exec cat "$1""#;

/// Prints the names in a folder.
const LIST: &str = r#"for path in "$1"/*; do [ -e "$path" ] && printf '%s\n' "${path##*/}"; done
exit 0"#;

/// Prints files of one line, which the shell finds by patterns.
const VALUES: &str = r#"if ! command -v cat > /dev/null; then echo 'cat is not there' >&2; exit 1; fi
for pattern in "$@"; do for path in $pattern; do
if [ -f "$path" ] && line=$(cat "$path"); then printf '%s\t%s\n' "$path" "$line"; fi
done; done 2> /dev/null
exit 0"#;

impl Machine for PodMachine {
    fn run(&self, program: &str, arguments: &[&str]) -> Result<String, ToolFailure> {
        self.printed(&[&[program], arguments].concat())
    }

    fn read(&self, path: &str) -> Result<String, ToolFailure> {
        let text = self.script(READ, &[path])?;
        match text.split_once('\n') {
            Some(("there", text)) => Ok(text.to_owned()),
            Some(("missing", _)) => Err(ToolFailure::Missing),
            _ => Err(ToolFailure::Failed("the shell of the image printed something else".into())),
        }
    }

    fn list(&self, path: &str) -> Vec<String> {
        let names = self.script(LIST, &[path]).unwrap_or_default();
        let mut names: Vec<String> = names.lines().map(str::to_owned).collect();
        names.sort();
        names
    }

    fn values(&self, patterns: &[String]) -> Result<Vec<(String, String)>, ToolFailure> {
        let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
        let text = self.script(VALUES, &patterns)?;
        let pair = |line: &str| {
            line.split_once('\t').map(|(path, value)| (path.to_owned(), value.to_owned()))
        };
        Ok(text.lines().filter_map(pair).collect())
    }
}
