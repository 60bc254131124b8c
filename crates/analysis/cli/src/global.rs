//! The options of every command.

use clap::{Args, ValueEnum};

/// The heading of the global options in `--help`.
const EVERYWHERE: &str = "Options of every command";

/// Flags of every command.
#[derive(Args, Debug, Default)]
pub struct Global {
    /// Print more details on stderr
    #[arg(short, long, global = true, help_heading = EVERYWHERE, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Print only errors on stderr
    #[arg(short, long, global = true, help_heading = EVERYWHERE)]
    pub quiet: bool,
    /// When to use colours; auto is on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "`--help` would print what says no more than the words")]
pub enum ColorChoice {
    #[default]
    Auto,
    Always,
    Never,
}
