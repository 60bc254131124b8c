//! Width and colour.

use std::borrow::Cow;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::OnceLock;

use anstyle::{AnsiColor, Effects};
use uturn_model::visible;

/// A colour or an effect.
pub type Paint = anstyle::Style;

/// How text may look where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns in which sentences are wrapped.
    pub width: usize,
    /// Columns that no line of a table may exceed; `None` if the rows of a table must not be
    /// folded, because a program reads them.
    pub line_limit: Option<usize>,
    /// Whether colours are wanted.
    pub color: bool,
    /// Whether everything is wanted, however wide.
    pub wide: bool,
}

impl Style {
    /// Plain text of the usual width.
    pub const PLAIN: Self = Self { width: 100, line_limit: None, color: false, wide: false };

    /// What fails.
    pub const RED: Paint = AnsiColor::Red.on_default();
    /// What needs attention.
    pub const YELLOW: Paint = AnsiColor::Yellow.on_default();
    /// What works.
    pub const GREEN: Paint = AnsiColor::Green.on_default();
    /// Headings.
    pub const BOLD: Paint = Paint::new().effects(Effects::BOLD);
    /// What matters less.
    pub const DIMMED: Paint = Paint::new().effects(Effects::DIMMED);

    /// Paints what fails.
    pub fn red(self, text: &str) -> String {
        self.paint(Self::RED, text)
    }

    /// Paints what needs attention.
    pub fn yellow(self, text: &str) -> String {
        self.paint(Self::YELLOW, text)
    }

    /// Paints what works.
    pub fn green(self, text: &str) -> String {
        self.paint(Self::GREEN, text)
    }

    /// Paints a heading.
    pub fn bold(self, text: &str) -> String {
        self.paint(Self::BOLD, text)
    }

    /// Paints what matters less.
    pub fn dim(self, text: &str) -> String {
        self.paint(Self::DIMMED, text)
    }

    /// Paints a text if colours are wanted. [`on_terminal`] makes colours of what is painted.
    pub fn paint(self, paint: Paint, text: &str) -> String {
        match self.color && !text.is_empty() && paint != Paint::new() {
            true => format!("{}{text}{}", mark(&paint.to_string()), mark("\x1b[0m")),
            false => text.to_owned(),
        }
    }
}

/// How a mark of this process begins: with a number that is drawn anew in each, so that no text from outside
/// can hold a mark. To a terminal it is a sequence for colours like any other.
fn opening() -> &'static str {
    static OPENING: OnceLock<String> = OnceLock::new();
    OPENING.get_or_init(|| format!("{CSI}{};", RandomState::new().build_hasher().finish()))
}

/// How sequences for colours begin and end.
const CSI: &str = "\x1b[";
const END: char = 'm';

/// The mark for these sequences.
fn mark(sequences: &str) -> String {
    let sequences = sequences.split(END).filter_map(|sequence| sequence.strip_prefix(CSI));
    sequences.map(|numbers| format!("{}{numbers}{END}", opening())).collect()
}

/// A text as a terminal may get it: what [`Style`] painted has its colours, and every other character that a
/// terminal obeys or a reader cannot see is escaped, but for the line breaks.
pub fn on_terminal(text: &str) -> Cow<'_, str> {
    by_marks(text, visible::lines, CSI)
}

/// A text that has to stay on one line: what is hidden is escaped, and line breaks are. What was painted stays so.
pub fn in_a_line(text: &str) -> Cow<'_, str> {
    by_marks(text, visible::line, opening())
}

/// Changes what is between marks, which get another beginning.
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
