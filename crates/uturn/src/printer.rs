//! The one place that prints: results on stdout, the rest on stderr.

use std::env;
use std::io::{self, IsTerminal, Write};

use uturn_report::Style;

use crate::cli::{ColorChoice, Global};

/// Decides what may be printed, and how it looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printer {
    quiet: bool,
    verbose: bool,
    color: ColorChoice,
}

impl Printer {
    pub(crate) fn new(global: &Global) -> Self {
        Self { quiet: global.quiet, verbose: global.verbose, color: global.color }
    }

    /// The result.
    pub(crate) fn result(&self, text: &str) {
        let mut out = io::stdout().lock();
        // A reader that went away (`| head`) wants no more, which is no failure.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    /// What is wrong.
    pub(crate) fn error(&self, message: &str) {
        let red = self.style_of(&io::stderr(), false).red("error:");
        Self::to_stderr(&format!("{red} {message}"));
    }

    /// What is worth knowing beside the result.
    pub(crate) fn note(&self, message: &str) {
        if !self.quiet {
            Self::to_stderr(message);
        }
    }

    /// Whether people are curious.
    pub(crate) fn is_verbose(&self) -> bool {
        self.verbose
    }

    /// What only curious people want.
    pub(crate) fn detail(&self, message: &str) {
        if self.verbose {
            Self::to_stderr(message);
        }
    }

    /// A line that the next one overwrites; only for people who watch.
    pub(crate) fn progress(&self, message: &str) {
        if !self.quiet && io::stderr().is_terminal() {
            let mut err = io::stderr().lock();
            let _ = write!(err, "\r\x1b[K{message}").and_then(|()| err.flush());
        }
    }

    /// Takes the last progress line away.
    pub(crate) fn progress_done(&self) {
        self.progress("");
    }

    /// How a result may look.
    pub(crate) fn style(&self, wide: bool) -> Style {
        self.style_of(&io::stdout(), wide)
    }

    fn style_of(&self, stream: &impl IsTerminal, wide: bool) -> Style {
        let terminal = stream.is_terminal();
        let color = match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                terminal
                    && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
                    && env::var_os("TERM").is_none_or(|term| term != "dumb")
            }
        };
        let stated = env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
        let screen =
            || terminal.then(terminal_size::terminal_size).flatten().map(|(w, _)| usize::from(w.0));
        let width = stated.or_else(screen).unwrap_or(Style::PLAIN.width).max(60);
        Style { width, color, wide }
    }

    fn to_stderr(message: &str) {
        let mut err = io::stderr().lock();
        let _ = writeln!(err, "{message}");
    }
}
