//! Text that is made line by line.

use crate::style::in_a_line;

/// A text that lines are added to.
pub(crate) trait Lines {
    /// Adds a line, whatever is in it: a line break that a name brings along is escaped.
    fn line(&mut self, line: &str);

    /// Adds an empty line, and this line.
    fn paragraph(&mut self, line: &str);
}

impl Lines for String {
    fn line(&mut self, line: &str) {
        self.push_str(&in_a_line(line));
        self.push('\n');
    }

    fn paragraph(&mut self, line: &str) {
        self.push('\n');
        self.line(line);
    }
}
