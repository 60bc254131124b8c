//! Builds text line by line.

use crate::style::in_a_line;

/// A text to which lines are added.
pub(crate) trait Lines {
    /// Adds a line, whatever its content: a line break in a name is escaped.
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
