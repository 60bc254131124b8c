//! Network namespaces.

use std::process::Command;

use uturn_netns::Held;

/// A network namespace, which is gone when this is dropped.
pub(crate) struct Space(Held);

impl Space {
    pub(crate) fn new() -> Self {
        Self(Held::new().unwrap())
    }

    /// The process by which tools find the namespace.
    pub(crate) fn pid(&self) -> u32 {
        self.0.pid()
    }

    /// A command that runs there, and ends with this process.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = self.0.command();
        command.arg(program);
        command
    }

    /// Runs a shell script there, and returns what it printed.
    pub(crate) fn sh(&self, script: &str) -> String {
        self.0.sh(script).unwrap()
    }

    /// Runs a closure there. Threads that it starts stay there.
    pub(crate) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.0.run(work).unwrap()
    }
}
