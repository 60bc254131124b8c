//! What the machine is asked to run, what it returns, and what can go wrong.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

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
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unavailable {
    /// User Mode Linux runs on Linux.
    #[error("the small machine needs Linux")]
    NotLinux,
    /// A program is not installed.
    #[error(
        "the small machine needs {program}, which is not installed \
         (Debian: apt-get install {package})"
    )]
    Missing {
        /// The program.
        program: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// The machine's kernel is there, its modules are not.
    #[error(
        "the small machine's kernel has no modules: expected them in {} \
         (Debian: apt-get install user-mode-linux)",
        folder.display()
    )]
    NoModules {
        /// Where they should be.
        folder: PathBuf,
    },
    /// The processor has more registers than the machine's kernel can keep.
    #[error(
        "this processor cannot carry the small machine: its extended state has {state} bytes, \
         User Mode Linux {release} keeps {kept}, and this build of uturn lacks the library that \
         makes up for it"
    )]
    Processor {
        /// The size of the processor's extended state, in bytes.
        state: u32,
        /// How much of it the machine's kernel keeps.
        kept: u32,
        /// The kernel's release.
        release: String,
    },
    /// The host does not allow what the machine needs.
    #[error("this host cannot carry the small machine: {tried}: {reason}")]
    Host {
        /// What was tried.
        tried: String,
        /// The error.
        reason: String,
    },
}

/// Why a job did not run to its end.
#[derive(Debug, Error)]
pub enum MachineError {
    /// The machine cannot run here.
    #[error("{0}")]
    Unavailable(#[from] Unavailable),
    /// A system call of the host failed.
    #[error("cannot {doing}: {source}")]
    System {
        /// What was being done.
        doing: String,
        /// The system's error.
        source: io::Error,
    },
    /// The job could not be started in the machine.
    #[error("in the small machine: {0}")]
    Inside(String),
    /// The time limit was reached first.
    #[error("the small machine was ended after {} s", .0.as_secs_f64())]
    Limit(Duration),
    /// The caller asked it to stop.
    #[error("the small machine was stopped")]
    Stopped,
    /// The machine was ended because it would never have started the job.
    #[error("the small machine did not start: {why}{}", last_lines(console))]
    Boot {
        /// By what that was recognised.
        why: String,
        /// The last lines of its console.
        console: String,
    },
    /// The machine's kernel panicked while the job ran.
    #[error("the small machine's kernel panicked{}", last_lines(console))]
    Panicked {
        /// The panic and the last lines of its console.
        console: String,
    },
    /// The machine ended before its job did.
    #[error("the small machine ended before its job did{}", died(console))]
    Died {
        /// The last lines of its console.
        console: String,
    },
}

fn last_lines(console: &str) -> String {
    match console {
        "" => "; its console is empty".to_owned(),
        console => format!("; the last lines of its console: {console}"),
    }
}

fn died(console: &str) -> String {
    match console {
        "" => ", and did not say why".to_owned(),
        console => format!(": {console}"),
    }
}
