//! A text with the position that a scanner has reached in it.

/// A position in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The offset, in bytes.
    pub(crate) at: usize,
    /// The line, counted from the number of the first line.
    pub(crate) line: u32,
    /// The column, in characters, from 0.
    pub(crate) column: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Text<'a> {
    pub(super) all: &'a str,
    bytes: &'a [u8],
    pub(super) mark: Mark,
}

impl<'a> Text<'a> {
    pub(super) fn new(all: &'a str, at: usize, line: u32) -> Self {
        Self { all, bytes: all.as_bytes(), mark: Mark { at, line, column: 0 } }
    }

    /// Returns the byte that follows after `count` bytes; zero beyond the end of the text.
    #[inline]
    pub(super) fn ahead(&self, count: usize) -> u8 {
        self.bytes.get(self.mark.at + count).copied().unwrap_or(0)
    }

    #[inline]
    pub(super) fn peek(&self) -> u8 {
        self.ahead(0)
    }

    #[inline]
    pub(super) fn is_end(&self) -> bool {
        self.mark.at >= self.bytes.len()
    }

    #[inline]
    pub(super) fn is_blank(&self) -> bool {
        matches!(self.peek(), b' ' | b'\t')
    }

    #[inline]
    pub(super) fn is_break(&self) -> bool {
        self.breaks(0) > 0
    }

    /// Returns the length in bytes of the line break after `count` bytes, or zero if there is none.
    /// YAML 1.1 has three line breaks besides LF, CR and CR LF.
    #[inline]
    pub(super) fn breaks(&self, count: usize) -> usize {
        match self.ahead(count) {
            b'\n' => 1,
            b'\r' => 1 + usize::from(self.ahead(count + 1) == b'\n'),
            0xc2 if self.ahead(count + 1) == 0x85 => 2,
            0xe2 if self.ahead(count + 1) == 0x80
                && matches!(self.ahead(count + 2), 0xa8 | 0xa9) =>
            {
                3
            }
            _ => 0,
        }
    }

    /// Returns whether a blank, a line break or the end of the text follows after `count` bytes.
    #[inline]
    pub(super) fn is_gap(&self, count: usize) -> bool {
        match self.ahead(count) {
            b' ' | b'\t' => true,
            0 => true,
            b'\n' | b'\r' | 0xc2 | 0xe2 => self.breaks(count) > 0,
            _ => false,
        }
    }

    /// Returns whether a line that ends or begins a document (`...` or `---`) is here.
    pub(super) fn is_document_mark(&self) -> bool {
        let rest = self.bytes.get(self.mark.at..).unwrap_or_default();
        self.mark.column == 0
            && (rest.starts_with(b"---") || rest.starts_with(b"..."))
            && self.is_gap(3)
    }

    /// Skips a character.
    #[inline]
    pub(super) fn skip(&mut self) {
        let width = match self.peek() {
            0..0x80 => 1,
            0x80..0xe0 => 2,
            0xe0..0xf0 => 3,
            _ => 4,
        };
        self.mark.at = (self.mark.at + width).min(self.bytes.len());
        self.mark.column += 1;
    }

    /// Skips the characters of ASCII, other than line breaks, up to one that is not `skipped`.
    #[inline]
    pub(super) fn skip_ascii(&mut self, skipped: impl Fn(u8) -> bool) {
        let rest = self.bytes.get(self.mark.at..).unwrap_or_default();
        let count = rest.iter().position(|byte| !skipped(*byte)).unwrap_or(rest.len());
        self.mark.at += count;
        self.mark.column += count;
    }

    /// Skips blanks.
    pub(super) fn skip_blanks(&mut self) {
        self.skip_ascii(|byte| matches!(byte, b' ' | b'\t'));
    }

    /// Skips the rest of the line, but not the line break.
    pub(super) fn skip_to_break(&mut self) {
        loop {
            self.skip_ascii(|byte| matches!(byte, b' '..=b'~' | b'\t'));
            if self.is_end() || self.is_break() {
                return;
            }
            self.skip();
        }
    }

    /// Skips a line break, and returns the text as which it reads. Most line breaks read as LF.
    pub(super) fn skip_break(&mut self) -> &'a str {
        let length = self.breaks(0);
        if length == 0 {
            return "";
        }
        let found = &self.all[self.mark.at..self.mark.at + length];
        let Mark { at, line, .. } = self.mark;
        self.mark = Mark { at: at + length, line: line.saturating_add(1), column: 0 };
        if length == 3 { found } else { "\n" }
    }

    /// Returns the text from an offset to the current position.
    pub(super) fn since(&self, at: usize) -> &'a str {
        &self.all[at..self.mark.at]
    }
}
