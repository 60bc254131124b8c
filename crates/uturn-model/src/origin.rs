//! The place where something was written, so that evidence can be checked by hand.

use std::fmt;

use crate::Text;

/// A place in an input: file, line and column (both from 1).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The path as the user gave it (`-` for standard input), or the source it was derived from.
    pub file: Text,
    /// Counted from 1; 0 for the whole file.
    pub line: u32,
    /// Counted from 1; 0 for the whole line.
    pub column: u32,
}

impl Origin {
    /// A whole line.
    pub fn line(file: impl Into<Text>, line: u32) -> Self {
        Self { file: file.into(), line, column: 0 }
    }

    /// A whole file, or something that was not read from a file.
    pub fn file(file: impl Into<Text>) -> Self {
        Self::line(file, 0)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if self.line > 0 && self.column > 0 {
            write!(f, ":{}", self.column)?;
        }
        Ok(())
    }
}
