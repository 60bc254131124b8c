//! The width and colours of text.

use std::borrow::Cow;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::OnceLock;

use anstyle::{AnsiColor, Effects};
use uturn_model::visible;

/// A colour or an effect.
pub type Paint = anstyle::Style;

/// The permitted appearance of text at its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns in which sentences are wrapped.
    pub width: usize,
    /// Columns that no line of a table may exceed; `None` if the rows of a table must not be
    /// folded, because a program reads them.
    pub line_limit: Option<usize>,
    /// Whether colours are wanted.
    pub color: bool,
    /// Whether everything is wanted, however wide it is.
    pub wide: bool,
}

impl Style {
    /// Plain text of the usual width.
    pub const PLAIN: Self = Self { width: 100, line_limit: None, color: false, wide: false };

    /// The colour of failures.
    pub const RED: Paint = AnsiColor::Red.on_default();
    /// The colour of what needs attention.
    pub const YELLOW: Paint = AnsiColor::Yellow.on_default();
    /// The colour of what works.
    pub const GREEN: Paint = AnsiColor::Green.on_default();
    /// The effect of headings.
    pub const BOLD: Paint = Paint::new().effects(Effects::BOLD);
    /// The effect of less important text.
    pub const DIMMED: Paint = Paint::new().effects(Effects::DIMMED);

    /// Paints a failure.
    pub fn red(self, text: &str) -> String {
        self.paint(Self::RED, text)
    }

    /// Paints text that needs attention.
    pub fn yellow(self, text: &str) -> String {
        self.paint(Self::YELLOW, text)
    }

    /// Paints text about what works.
    pub fn green(self, text: &str) -> String {
        self.paint(Self::GREEN, text)
    }

    /// Paints a heading.
    pub fn bold(self, text: &str) -> String {
        self.paint(Self::BOLD, text)
    }

    /// Paints less important text.
    pub fn dim(self, text: &str) -> String {
        self.paint(Self::DIMMED, text)
    }

    /// Paints a text if colours are wanted. [`on_terminal`] turns the marks into colours.
    pub fn paint(self, paint: Paint, text: &str) -> String {
        if self.color && !text.is_empty() && paint != Paint::new() {
            format!("{}{text}{}", mark(&paint.to_string()), mark("\x1b[0m"))
        } else {
            text.to_owned()
        }
    }
}

/// Returns the beginning of this process's marks. It contains a number that is drawn anew in each
/// process, so that no text from outside can contain a mark. A terminal reads it as any colour
/// sequence.
fn opening() -> &'static str {
    static OPENING: OnceLock<String> = OnceLock::new();
    OPENING.get_or_init(|| format!("{CSI}{};", RandomState::new().build_hasher().finish()))
}

/// The beginning and end of colour sequences.
const CSI: &str = "\x1b[";
const END: char = 'm';

/// Returns the mark for these sequences.
fn mark(sequences: &str) -> String {
    let sequences = sequences.split(END).filter_map(|sequence| sequence.strip_prefix(CSI));
    sequences.map(|numbers| format!("{}{numbers}{END}", opening())).collect()
}

/// Makes a text safe for a terminal: text that [`Style`] painted gets its colours, and every other
/// character that controls a terminal or is invisible is escaped, except for line breaks.
pub fn on_terminal(text: &str) -> Cow<'_, str> {
    by_marks(text, visible::lines, CSI)
}

/// Keeps a text on one line: hidden characters and line breaks are escaped. Marks stay.
pub fn in_a_line(text: &str) -> Cow<'_, str> {
    by_marks(text, visible::line, opening())
}

/// Changes the text between marks, and gives marks another beginning.
fn by_marks<'t>(
    text: &'t str,
    between: impl for<'s> Fn(&'s str) -> Cow<'s, str>,
    begin: &str,
) -> Cow<'t, str> {
    if !text.contains(opening()) {
        return between(text);
    }
    let mut parts = text.split(opening());
    let mut out = between(parts.next().unwrap_or_default()).into_owned();
    for part in parts {
        let (numbers, rest) = part.split_once(END).unwrap_or((part, ""));
        out.push_str(begin);
        out.push_str(numbers);
        out.push(END);
        out.push_str(&between(rest));
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_painted_has_colours() {
        let style = Style { color: true, ..Style::PLAIN };
        let red = style.red("a\x1b[31mb\u{202e}");
        let text = format!("\x1b[32mok\x1b[0m {red}\nend\r");
        assert_eq!(
            on_terminal(&text),
            "\\x1b[32mok\\x1b[0m \x1b[31ma\\x1b[31mb\\u{202e}\x1b[0m\nend\\r"
        );
        assert_eq!(on_terminal(&in_a_line(&red)), on_terminal(&red));
        assert_eq!(in_a_line("a\nb"), "a\\nb");
        let bold = style.paint(Style::RED.bold(), "x");
        assert_eq!(on_terminal(&bold), format!("{}x\x1b[0m", Style::RED.bold()));
    }
}
