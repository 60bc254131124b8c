//! The interface of a capture to a machine: the output of tools, and files.

use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use thiserror::Error;

/// The reason why a tool has no output, or why a file could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ToolFailure {
    /// The machine has no such program or file.
    #[error("not there")]
    Missing,
    /// The tool did not end within the time limit, and was killed.
    #[error("did not end within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
    /// The tool ended with an error.
    #[error("{0}")]
    Failed(String),
}

/// A machine whose kernel is captured.
pub trait Machine {
    /// Runs a program and returns what it printed.
    ///
    /// # Errors
    /// Returns an error if there is no such program, or if it fails or takes too long.
    fn run(&self, program: &str, arguments: &[&str]) -> Result<String, ToolFailure>;

    /// Reads a file.
    ///
    /// # Errors
    /// Returns an error if the file does not exist or cannot be read.
    fn read(&self, path: &str) -> Result<String, ToolFailure>;

    /// Lists the names in a folder, in order. A folder that does not exist has none.
    fn list(&self, path: &str) -> Vec<String>;

    /// Reads files of one line each. Returns their paths and lines. A name in a pattern is `*`, or
    /// ends in `*` for all names with that prefix. Files that cannot be read are left out.
    ///
    /// # Errors
    /// Returns an error if the machine cannot be reached.
    fn values(&self, patterns: &[String]) -> Result<Vec<(String, String)>, ToolFailure> {
        let paths = patterns.iter().flat_map(|pattern| self.expand(pattern));
        let value = |path: String| {
            let text = self.read(&path).ok()?;
            Some((path, text.lines().next()?.to_owned()))
        };
        Ok(paths.filter_map(value).collect())
    }

    /// Returns the paths that match a pattern, in order.
    fn expand(&self, pattern: &str) -> Vec<String> {
        let mut paths = vec![String::new()];
        for name in pattern.split('/').skip(1) {
            let below = |folder: String| -> Vec<String> {
                let names = match name.strip_suffix('*') {
                    Some(start) => {
                        let mut names = self.list(&folder);
                        names.retain(|own| own.starts_with(start));
                        names
                    }
                    None => vec![name.to_owned()],
                };
                names.into_iter().map(|name| format!("{folder}/{name}")).collect()
            };
            paths = paths.into_iter().flat_map(below).collect();
        }
        paths
    }
}

/// The machine on which this program runs, in its network namespace.
#[derive(Clone, Copy, Debug)]
pub struct Local {
    /// The time limit of each tool.
    pub limit: Duration,
}

/// The folders of an administrator's tools, which the `PATH` of other users often lacks.
const ADMINISTRATION: &str = "/usr/local/sbin:/usr/sbin:/sbin";

impl Machine for Local {
    fn run(&self, program: &str, arguments: &[&str]) -> Result<String, ToolFailure> {
        let path = env::var("PATH").unwrap_or_default();
        let mut command = Command::new(program);
        command.args(arguments).env_clear().env("LC_ALL", "C");
        command.env("PATH", format!("{path}:{ADMINISTRATION}"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|why| failure(&why))?;
        let output = collect(&mut child, self.limit);
        if output.is_none() {
            // The child may have ended in the meantime.
            let _ = child.kill();
        }
        let ended = child.wait().map_err(|why| failure(&why))?;
        let Some([printed, complaint]) = output else {
            return Err(ToolFailure::TimedOut(self.limit));
        };
        if ended.success() {
            return Ok(printed);
        }
        let reason = complaint.lines().map(str::trim).find(|line| !line.is_empty());
        Err(ToolFailure::Failed(reason.map_or_else(|| ended.to_string(), str::to_owned)))
    }

    fn read(&self, path: &str) -> Result<String, ToolFailure> {
        fs::read_to_string(path).map_err(|why| failure(&why))
    }

    fn list(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

/// Returns what a child printed on its output and on its error output, once it has closed both.
/// Returns `None` if that takes longer than the limit.
fn collect(child: &mut Child, limit: Duration) -> Option<[String; 2]> {
    let end = Instant::now() + limit;
    let streams = [reader(child.stdout.take()), reader(child.stderr.take())];
    let texts = streams.map(|stream| {
        let left = end.saturating_duration_since(Instant::now());
        stream.recv_timeout(left).ok()
    });
    let [printed, complaint] = texts;
    Some([printed?, complaint?])
}

/// Reads a stream to its end on a thread, since the child may fill either of its streams.
fn reader(stream: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stream.map_or(Ok(0), |mut stream| stream.read_to_end(&mut bytes));
        if read.is_ok() {
            // The receiver is gone if the time is up.
            let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
        }
    });
    receiver
}

fn failure(why: &io::Error) -> ToolFailure {
    match why.kind() {
        io::ErrorKind::NotFound => ToolFailure::Missing,
        _ => ToolFailure::Failed(why.to_string()),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn a_tool_prints_fails_or_is_not_there() {
        let local = Local { limit: LONG };
        assert_eq!(local.run("sh", &["-c", "echo a; echo b >&2"]), Ok("a\n".into()));
        let failed = local.run("sh", &["-c", "echo; echo no right >&2; exit 4"]);
        assert_eq!(failed, Err(ToolFailure::Failed("no right".into())));
        assert_eq!(local.run("uturn-no-such-tool", &[]), Err(ToolFailure::Missing));
        assert_eq!(local.read("/no/such/file"), Err(ToolFailure::Missing));
        assert!(local.list("/no/such/folder").is_empty());
    }

    #[test]
    fn patterns_name_files_of_one_line() {
        let local = Local { limit: LONG };
        let patterns = ["/proc/sys/kernel/osrel*", "/proc/sys/*/hostname", "/no/such/*"];
        let values = local.values(&patterns.map(str::to_owned)).unwrap();
        let paths: Vec<&str> = values.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["/proc/sys/kernel/osrelease", "/proc/sys/kernel/hostname"]);
        let release = local.read("/proc/sys/kernel/osrelease").unwrap();
        assert_eq!(values[0].1, release.trim_end());
    }

    #[test]
    fn a_tool_gets_nothing_of_the_environment() {
        let printed = Local { limit: LONG }.run("env", &[]).unwrap();
        let names: Vec<&str> =
            printed.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
        assert_eq!(names, ["LC_ALL", "PATH"]);
    }

    #[test]
    fn a_tool_that_does_not_end_is_ended() {
        let local = Local { limit: Duration::ZERO };
        // This command never ends by itself.
        let ended = local.run("tail", &["-f", "/dev/null"]);
        assert_eq!(ended, Err(ToolFailure::TimedOut(Duration::ZERO)));
    }
}
