//! What the machine is asked to run, what it returns, and what can go wrong.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// A program to run in the machine, as its root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The program. Without a slash it is looked for in the machine's search path.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its whole environment. The machine prepends its own tools to `PATH` and appends the
    /// folders of system administration programs.
    pub environment: Vec<(OsString, OsString)>,
    /// Its working directory.
    pub folder: PathBuf,
    /// What it reads from standard input.
    pub stdin: Vec<u8>,
    /// Folders of the host that it may write to. Whatever else it writes is discarded with the
    /// machine.
    pub shared: Vec<PathBuf>,
}

/// A piece of the job's output, passed on while the job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobOutput<'a> {
    /// On standard output.
    Out(&'a [u8]),
    /// On standard error.
    Err(&'a [u8]),
}

/// How the job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this code.
    Exit(i32),
    /// By this signal.
    Signal(i32),
}

/// Why the machine cannot run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// User Mode Linux runs on Linux.
    NotLinux,
    /// A program is not installed.
    Missing {
        /// The program.
        program: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// The machine's kernel is there, its modules are not.
    NoModules {
        /// Where they should be.
        folder: PathBuf,
    },
    /// The host does not allow what the machine needs.
    Host {
        /// What was tried.
        tried: String,
        /// What it said.
        said: String,
    },
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLinux => f.write_str("the small machine needs Linux"),
            Self::Missing { program, package } => write!(
                f,
                "the small machine needs {program}, which is not installed \
                 (Debian: apt-get install {package})"
            ),
            Self::NoModules { folder } => write!(
                f,
                "the small machine's kernel has no modules: expected them in {} \
                 (Debian: apt-get install user-mode-linux)",
                folder.display()
            ),
            Self::Host { tried, said } => {
                write!(f, "this host cannot carry the small machine: {tried}: {said}")
            }
        }
    }
}

impl std::error::Error for Unavailable {}

/// Why a job did not run to its end.
#[derive(Debug)]
pub enum MachineError {
    /// The machine cannot run here.
    Unavailable(Unavailable),
    /// A system call of the host failed.
    System {
        /// What was being done.
        doing: String,
        /// What it said.
        source: io::Error,
    },
    /// The job could not be started in the machine.
    Inside(String),
    /// The time limit was reached first.
    Limit(Duration),
    /// The caller asked it to stop.
    Stopped,
    /// The machine ended before its job did.
    Died {
        /// The last lines of its console.
        said: String,
    },
}

impl fmt::Display for MachineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(why) => why.fmt(f),
            Self::System { doing, source } => write!(f, "cannot {doing}: {source}"),
            Self::Inside(why) => write!(f, "in the small machine: {why}"),
            Self::Limit(limit) => {
                write!(f, "the small machine was ended after {} s", limit.as_secs_f64())
            }
            Self::Stopped => f.write_str("the small machine was stopped"),
            Self::Died { said } if said.is_empty() => {
                f.write_str("the small machine ended before its job did, and did not say why")
            }
            Self::Died { said } => {
                write!(f, "the small machine ended before its job did: {said}")
            }
        }
    }
}

impl std::error::Error for MachineError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unavailable(why) => Some(why),
            Self::System { source, .. } => Some(source),
            Self::Inside(_) | Self::Limit(_) | Self::Stopped | Self::Died { .. } => None,
        }
    }
}

impl From<Unavailable> for MachineError {
    fn from(why: Unavailable) -> Self {
        Self::Unavailable(why)
    }
}
