//! A text with the place that a scanner has reached in it.

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// In bytes.
    pub(crate) at: usize,
    /// From the number that the first line has.
    pub(crate) line: u32,
    /// In characters, from 0.
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

    /// The byte that is so many further on; zero where the text has ended.
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

    /// How many bytes the line break has that is so many bytes further on; none, where there
    /// is none. YAML 1.1 has three more than LF, CR and both.
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

    /// Whether a blank, a line break or the end of the text is so many bytes further on.
    #[inline]
    pub(super) fn is_gap(&self, count: usize) -> bool {
        match self.ahead(count) {
            b' ' | b'\t' => true,
            0 => true,
            b'\n' | b'\r' | 0xc2 | 0xe2 => self.breaks(count) > 0,
            _ => false,
        }
    }

    /// Whether a line begins here that says that a document ends or begins.
    pub(super) fn is_document_mark(&self) -> bool {
        let rest = self.bytes.get(self.mark.at..).unwrap_or_default();
        self.mark.column == 0
            && (rest.starts_with(b"---") || rest.starts_with(b"..."))
            && self.is_gap(3)
    }

    /// Passes a character.
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

    /// Passes blanks.
    pub(super) fn skip_blanks(&mut self) {
        while self.is_blank() {
            self.skip();
        }
    }

    /// Passes what is left of the line, but not its end.
    pub(super) fn skip_to_break(&mut self) {
        while !self.is_end() && !self.is_break() {
            self.skip();
        }
    }

    /// Passes a line break; gives what it reads as. Most read as LF.
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

    /// From a place to here.
    pub(super) fn since(&self, at: usize) -> &'a str {
        &self.all[at..self.mark.at]
    }
}
