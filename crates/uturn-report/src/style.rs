//! Width and colour.

use anstyle::{AnsiColor, Effects};

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

    /// Paints a text if colours are wanted.
    pub fn paint(self, paint: Paint, text: &str) -> String {
        match self.color && !text.is_empty() {
            true => format!("{paint}{text}{}", paint.render_reset()),
            false => text.to_owned(),
        }
    }
}
