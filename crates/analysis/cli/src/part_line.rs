//! The command line of a program that has one command of `uturn`.

use std::ffi::OsString;
use std::fmt::Debug;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::global::Global;
use crate::part::Part;
use crate::printer::Printer;
use crate::program::{Program, main};
use crate::status::{Failure, Status};

/// Finds, explains and proves load-balancer loopback in Kubernetes.
#[derive(Debug, Parser)]
#[command(name = "uturn", bin_name = "uturn", version, propagate_version = true)]
pub struct PartLine<C: Subcommand> {
    #[command(flatten)]
    global: Global,
    /// The command of the part, the only one.
    #[command(subcommand)]
    pub command: C,
}

/// The command of a part.
pub trait PartCommand: Debug + Subcommand {
    /// Runs the command that was typed.
    ///
    /// # Errors
    /// If the command fails.
    fn run(self, printer: &Printer) -> Result<Status, Failure>;
}

impl<C: PartCommand> Program for PartLine<C> {
    fn global(&self) -> &Global {
        &self.global
    }

    fn run(self, printer: &Printer) -> Result<Status, Failure> {
        self.command.run(printer)
    }
}

/// Runs the program of a part with the words of this process. They are a whole line of `uturn`, as
/// `uturn` hands it over, or what follows the part's command: `uturn lb run` is `uturn-lb run`.
pub fn main_of<C: PartCommand>(part: Part) -> ExitCode {
    main::<PartLine<C>>(&line_of(part, std::env::args_os().collect()))
}

/// Returns a line with the command of the part in it.
fn line_of(part: Part, mut words: Vec<OsString>) -> Vec<OsString> {
    let rest = words.get(1..).unwrap_or_default();
    if Part::named(rest).is_none_or(|(named, _)| named != part) {
        words.insert(words.len().min(1), part.command().into());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_takes_lines_with_and_without_its_command() {
        for (typed, line) in [
            ("uturn-lab run x", "uturn-lab lab run x"),
            ("uturn-lab", "uturn-lab lab"),
            ("uturn-lab -q run x", "uturn-lab lab -q run x"),
            ("uturn-lab help run", "uturn-lab lab help run"),
            ("uturn-lab --help", "uturn-lab lab --help"),
            ("uturn lab run x", "uturn lab run x"),
            ("uturn -q lab run x", "uturn -q lab run x"),
            ("uturn help lab run", "uturn help lab run"),
            // No command of a part has the name of another part.
            ("uturn-lab lb", "uturn-lab lab lb"),
        ] {
            let words = line_of(Part::Lab, typed.split(' ').map(OsString::from).collect());
            assert_eq!(words.join(" ".as_ref()), *line, "{typed}");
        }
    }
}
