//! Scans directives, which are only checked: kubectl reads one document from a text, and a directive
//! is about the document after it.

use super::scan::Scanner;

impl Scanner<'_> {
    /// Scans a line that begins with `%`. Returns whether it is a directive: `%YAML 1.1`, or
    /// `%TAG !e! tag:example.com,2026:`.
    pub(super) fn is_directive(&mut self) -> bool {
        self.text.skip();
        let from = self.text.mark.at;
        self.skip_word();
        let whole = match self.text.since(from) {
            "YAML" => self.skip_version(),
            "TAG" => self.skip_handle() && self.skip_prefix(),
            _ => false,
        };
        if !whole || !self.text.is_gap(0) {
            return false;
        }
        self.text.skip_blanks();
        self.text.is_end() || self.text.is_break() || self.text.peek() == b'#'
    }

    fn skip_version(&mut self) -> bool {
        self.text.skip_blanks();
        self.skip_number() && self.skip_if(b'.') && self.skip_number()
    }

    /// Skips a number, which has at most nine digits.
    fn skip_number(&mut self) -> bool {
        let from = self.text.mark.at;
        while self.text.peek().is_ascii_digit() {
            self.text.skip();
        }
        (1..10).contains(&(self.text.mark.at - from))
    }

    /// Skips `!`, `!!` or `!name!`.
    fn skip_handle(&mut self) -> bool {
        self.text.skip_blanks();
        if !self.skip_if(b'!') {
            return false;
        }
        let from = self.text.mark.at;
        self.skip_word();
        let is_named = self.text.mark.at > from;
        let is_closed = self.skip_if(b'!');
        (is_closed || !is_named) && self.text.is_blank()
    }

    fn skip_prefix(&mut self) -> bool {
        self.text.skip_blanks();
        let from = self.text.mark.at;
        self.skip_uri() && self.text.mark.at > from
    }

    fn skip_if(&mut self, byte: u8) -> bool {
        let is_there = self.text.peek() == byte;
        if is_there {
            self.text.skip();
        }
        is_there
    }
}
