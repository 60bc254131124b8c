//! The jobs that the machine runs, their results, and the errors.

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
    /// The arguments of the program.
    pub arguments: Vec<OsString>,
    /// The program's whole environment. The machine prepends its own tools to `PATH` and appends
    /// the folders of system administration programs.
    pub environment: Vec<(OsString, OsString)>,
    /// The program's working directory.
    pub folder: PathBuf,
    /// The program's standard input.
    pub stdin: Vec<u8>,
    /// Folders of the host that the program may write to. Anything else that it writes is discarded
    /// with the machine.
    pub shared: Vec<PathBuf>,
}

/// A piece of the job's output, passed on while the job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobOutput<'a> {
    /// Bytes of standard output.
    Out(&'a [u8]),
    /// Bytes of standard error.
    Err(&'a [u8]),
}

/// The end of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The job exited with this code.
    Exit(i32),
    /// The job was ended by this signal.
    Signal(i32),
}

/// A reason why the machine cannot run here.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unavailable {
    /// The system is not Linux, which User Mode Linux needs.
    #[error("the small machine needs Linux")]
    NotLinux,
    /// A program is not installed.
    #[error(
        "the small machine needs {program}, which is not installed \
         (Debian: apt-get install {package})"
    )]
    Missing {
        /// The missing program.
        program: &'static str,
        /// The Debian package that contains the program.
        package: &'static str,
    },
    /// The machine's kernel is installed, but its modules are not.
    #[error(
        "the small machine's kernel has no modules: expected them in {} \
         (Debian: apt-get install user-mode-linux)",
        folder.display()
    )]
    NoModules {
        /// The folder where the modules are expected.
        folder: PathBuf,
    },
    /// The processor has more registers than the machine's kernel can keep.
    #[error(
        "this processor cannot run the small machine: its extended state has {state} bytes, \
         User Mode Linux {release} keeps {kept}, and this build of uturn lacks the library that \
         makes up for it"
    )]
    Processor {
        /// The size of the processor's extended state, in bytes.
        state: u32,
        /// The part of it that the machine's kernel keeps, in bytes.
        kept: u32,
        /// The release of the machine's kernel.
        release: String,
    },
    /// The host does not allow what the machine needs.
    #[error("this host cannot run the small machine: {tried}: {reason}")]
    Host {
        /// The operation that was tried.
        tried: String,
        /// The error.
        reason: String,
    },
}

/// A reason why a job did not run to its end.
#[derive(Debug, Error)]
pub enum MachineError {
    /// The machine cannot run here.
    #[error("{0}")]
    Unavailable(#[from] Unavailable),
    /// A system call of the host failed.
    #[error("cannot {doing}: {source}")]
    System {
        /// The operation that failed.
        doing: String,
        /// The system's error.
        source: io::Error,
    },
    /// The job could not be started in the machine.
    #[error("in the small machine: {0}")]
    Inside(String),
    /// The time limit was reached before the job ended.
    #[error("the small machine was ended after {} s", .0.as_secs_f64())]
    Limit(Duration),
    /// The caller asked the machine to stop.
    #[error("the small machine was stopped")]
    Stopped,
    /// The machine was ended because it would never have started the job.
    #[error("the small machine did not start: {why}{}", last_lines(console))]
    Boot {
        /// The sign that the job would never start.
        why: String,
        /// The last lines of the machine's console.
        console: String,
    },
    /// The machine's kernel panicked while the job ran.
    #[error("the small machine's kernel panicked{}", last_lines(console))]
    Panicked {
        /// The panic and the last lines of the machine's console.
        console: String,
    },
    /// The machine ended before its job did.
    #[error("the small machine ended before its job did{}", died(console))]
    Died {
        /// The last lines of the machine's console.
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
