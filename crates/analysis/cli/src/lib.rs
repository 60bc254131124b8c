//! What the command lines of all programs have in common.
//!
//! **Owns** the options of every command (`global`), the arguments that name manifests (`inputs`)
//! and the form of the output (`output`), the only code that prints (`printer`), the exit status
//! (`status`), and candidates for a half-typed line (`completion`). `program` runs a command line
//! from its words to its exit status, `part` finds the programs beside `uturn`, and `part_line` is
//! the command line of such a program.
//!
//! **Out of scope:** commands. `uturn` has those that read clusters; each of its other programs has
//! a crate beside the crates that it runs.
//!
//! **Start reading** at [`Program`].

pub mod called;
pub mod completion;
mod global;
mod inputs;
mod output;
mod part;
mod part_line;
mod printer;
mod program;
pub mod secret_file;
mod status;
mod typed;

pub use global::{ColorChoice, Global};
pub use inputs::{Inputs, faulty, print_counts};
pub use output::{Output, print};
pub use part::{NotInstalled, Part};
pub use part_line::{PartCommand, PartLine, main_of};
pub use printer::Printer;
pub use program::{Ended, Program, main, run_on_files};
pub use status::{Failure, Status};
pub use typed::parse_as_typed;
