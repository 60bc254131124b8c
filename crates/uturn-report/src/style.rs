//! Width and colour.

/// How text may look where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns that a line may take.
    pub width: usize,
    /// Whether colours are wanted.
    pub color: bool,
    /// Whether everything is wanted, however wide.
    pub wide: bool,
}

impl Style {
    /// Plain text of the usual width.
    pub const PLAIN: Self = Self { width: 100, color: false, wide: false };

    /// Bad news.
    pub fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    /// Worth a look.
    pub fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    /// Good news.
    pub fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// What stands out.
    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// What stands back.
    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.color && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}
