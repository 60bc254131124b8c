//! The only module of a program that prints: results on stdout, the rest on stderr. It lets no
//! character pass that a terminal interprets or that a reader cannot see, except line breaks and the
//! colours of [`Style`].

use std::borrow::Cow;
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;
use std::{env, panic};

use anstream::AutoStream;
use anstream::stream::RawStream;
use uturn_model::visible;
use uturn_report::Style;
use uturn_report::style::on_terminal;

use crate::called;
use crate::global::{ColorChoice, Global};

/// The error of the first result that could not be written.
static UNWRITTEN: OnceLock<io::Error> = OnceLock::new();

/// The printer, which also decides the style of the output.
#[derive(Clone, Copy, Debug)]
pub struct Printer {
    quiet: bool,
    verbose: bool,
    color: ColorChoice,
}

impl Printer {
    /// Creates the printer that the options of every command ask for.
    pub fn new(global: &Global) -> Self {
        Self { quiet: global.quiet, verbose: global.verbose, color: global.color }
    }

    /// Prints a result that programs read. The producer has escaped, in the way of its format,
    /// characters that terminals interpret or readers cannot see. Any that it missed are escaped
    /// here.
    pub fn result(&self, text: &str) {
        self.write(&visible::lines_and_tabs(text));
    }

    fn write(&self, text: &str) {
        let mut out = io::stdout();
        let has_colors = self.has_colors(&out);
        let write = |out: &mut dyn Write| out.write_all(text.as_bytes()).and_then(|()| out.flush());
        let written =
            if has_colors { write(&mut AutoStream::always(out)) } else { write(&mut out) };
        match written {
            // A reader that is gone (`| head`) wants no more output, which is no failure.
            Err(why) if why.kind() == ErrorKind::BrokenPipe => {}
            // Only the first error is kept.
            Err(why) => drop(UNWRITTEN.set(why)),
            Ok(()) => {}
        }
    }

    /// Returns why a result could not be written, if that has happened.
    pub fn unwritten() -> Option<&'static io::Error> {
        UNWRITTEN.get()
    }

    /// Prints a result that people read, with commands as they type them.
    pub fn text(&self, text: &str) {
        self.write(&on_terminal(&called::as_typed(text)));
    }

    /// Prints an error.
    pub fn error(&self, message: &str) {
        let red = self.style_of(&io::stderr(), false).red("error:");
        // Lines after the first are indented, so that no line looks like another message.
        Self::to_stderr(&format!("{red} {}", indented(message)));
    }

    /// Prints a note beside the result, unless --quiet was given.
    pub fn note(&self, message: &str) {
        if !self.quiet {
            Self::to_stderr(message);
        }
    }

    /// Returns whether --verbose was given.
    pub fn is_verbose(&self) -> bool {
        self.verbose
    }

    /// Prints details if --verbose was given.
    pub fn detail(&self, message: &str) {
        if self.verbose {
            Self::to_stderr(message);
        }
    }

    /// Prints a line that the next one overwrites, on a terminal only.
    pub fn progress(&self, message: &str) {
        if !self.quiet && io::IsTerminal::is_terminal(&io::stderr()) {
            let mut err = io::stderr().lock();
            let message = uturn_report::style::in_a_line(message);
            let _ = write!(err, "\r\x1b[K{}", on_terminal(&message)).and_then(|()| err.flush());
        }
    }

    /// Clears the last progress line.
    pub fn progress_done(&self) {
        self.progress("");
    }

    /// Returns the style for results on stdout.
    pub fn style(&self, wide: bool) -> Style {
        self.style_of(&io::stdout(), wide)
    }

    fn style_of(&self, stream: &impl RawStream, wide: bool) -> Style {
        let terminal = stream.is_terminal();
        let stated = env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
        let screen =
            || terminal.then(terminal_size::terminal_size).flatten().map(|(w, _)| usize::from(w.0));
        let width = stated.or_else(screen).unwrap_or(Style::PLAIN.width).max(60);
        let line_limit = (terminal && !wide).then_some(width);
        Style { width, line_limit, color: self.has_colors(stream), wide }
    }

    fn has_colors(&self, stream: &impl RawStream) -> bool {
        match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => AutoStream::choice(stream) != anstream::ColorChoice::Never,
        }
    }

    fn to_stderr(message: &str) {
        let mut err = AutoStream::always(io::stderr());
        let _ = writeln!(err, "{}", on_terminal(&called::as_typed(message)));
    }

    /// Asks a question on stderr, and leaves the cursor behind it.
    ///
    /// # Errors
    /// If it cannot be printed.
    pub fn ask(question: &str) -> io::Result<()> {
        let mut err = io::stderr().lock();
        write!(err, "{} ", on_terminal(question)).and_then(|()| err.flush())
    }

    /// Prints what clap reports about the arguments, which may contain any character.
    pub fn usage(error: &clap::Error) {
        let plain = error.render().to_string();
        // A closed stream cannot be handled in any way.
        let _ = match on_terminal(&plain) {
            Cow::Borrowed(_) => error.print(),
            Cow::Owned(shown) if error.use_stderr() => write!(io::stderr(), "{shown}"),
            Cow::Owned(shown) => write!(io::stdout(), "{shown}"),
        };
    }

    /// Makes panics print their messages without characters that a terminal interprets.
    pub fn guard_panics() {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| match on_terminal(&panic.to_string()) {
            Cow::Borrowed(_) => usual(panic),
            Cow::Owned(shown) => drop(writeln!(io::stderr(), "{shown}")),
        }));
    }
}

/// Returns a message with every line after the first indented by at least two spaces.
fn indented(message: &str) -> String {
    let mut lines = message.lines();
    let mut text = lines.next().unwrap_or_default().to_owned();
    for line in lines {
        let indent = if line.starts_with("  ") { "\n" } else { "\n  " };
        text.push_str(indent);
        text.push_str(line);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_indented_stay() {
        for (message, expected) in [
            ("one", "one"),
            ("one\ntwo", "one\n  two"),
            ("one\n  two\n    three\n      four", "one\n  two\n    three\n      four"),
            ("one\n two\n\nerror: three", "one\n   two\n  \n  error: three"),
            ("", ""),
        ] {
            assert_eq!(indented(message), expected, "{message:?}");
        }
    }
}
