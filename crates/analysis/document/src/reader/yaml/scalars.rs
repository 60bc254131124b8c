//! Scans scalars: plain ones, quoted ones, and blocks of lines.

use std::borrow::Cow;

use super::scan::Scanner;
use super::text::Mark;
use super::token::{column, tab, trouble};
use crate::reader::Trouble;

impl<'a> Scanner<'a> {
    /// Scans a text without quotes. Returns the text and the position of its end.
    pub(super) fn plain(&mut self) -> Result<(Cow<'a, str>, Mark), Trouble> {
        let mut built = String::new();
        let (mut from, mut end) = (self.text.mark.at, self.text.mark);
        let mut fold: Option<Cow<'a, str>> = None;
        loop {
            if self.text.is_document_mark() || self.text.peek() == b'#' {
                break;
            }
            let run = self.text.mark.at;
            self.plain_run();
            if self.text.mark.at > run {
                if let Some(fold) = fold.take() {
                    built.push_str(&self.text.all[from..end.at]);
                    built.push_str(&fold);
                    from = run;
                }
                end = self.text.mark;
            }
            if !self.text.is_blank() && !self.text.is_break() {
                break;
            }
            fold = self.gap(false, Some(self.indent + 1))?;
            if !self.is_flow() && column(self.text.mark) <= self.indent {
                break;
            }
        }
        if fold.is_some() {
            self.may_be_key = true;
        }
        let last = &self.text.all[from..end.at];
        let text = if built.is_empty() { last.into() } else { (built + last).into() };
        Ok((text, end))
    }

    /// Skips the part of a plain text up to the next blank.
    fn plain_run(&mut self) {
        let flow = self.is_flow();
        let is_special = |byte| matches!(byte, b':' | b',' | b'?' | b'[' | b']' | b'{' | b'}');
        loop {
            self.text.skip_ascii(|byte| byte.is_ascii_graphic() && !is_special(byte));
            if self.text.is_gap(0) {
                return;
            }
            match self.text.peek() {
                b':' if self.text.is_gap(1) => return,
                b',' | b'?' | b'[' | b']' | b'{' | b'}' if flow => return,
                _ => self.text.skip(),
            }
        }
    }

    /// Skips blanks and line breaks within a text. Returns the text as which they read if there is
    /// a line break; without one, they read as they are written. `escaped`: a backslash hides the
    /// first line break. `indent`: the column before which no tab may be.
    fn gap(
        &mut self,
        escaped: bool,
        indent: Option<isize>,
    ) -> Result<Option<Cow<'a, str>>, Trouble> {
        let mut first = escaped.then_some("");
        let mut more = String::new();
        loop {
            self.text.skip_ascii(|byte| byte == b' ');
            if self.text.peek() == b'\t' {
                let early = indent.is_some_and(|indent| column(self.text.mark) < indent);
                if first.is_some() && early {
                    return Err(tab(self.text.mark));
                }
                self.text.skip();
            } else if self.text.is_break() {
                let found = self.text.skip_break();
                match first {
                    None => first = Some(found),
                    Some(_) => more.push_str(found),
                }
            } else {
                break;
            }
        }
        Ok(first.map(|first| match first {
            "\n" if more.is_empty() => " ".into(),
            "\n" => more.into(),
            other if more.is_empty() => other.into(),
            other => (other.to_owned() + &more).into(),
        }))
    }

    /// Scans a text in quotes.
    pub(super) fn quoted(&mut self, quote: u8) -> Result<Cow<'a, str>, Trouble> {
        let start = self.text.mark;
        self.text.skip();
        let mut built = String::new();
        let mut from = self.text.mark.at;
        loop {
            if self.text.is_end() {
                return Err(trouble(start, "the file ends within a quoted text")
                    .with_hint("is the file complete?"));
            }
            if self.text.is_document_mark() {
                return Err(trouble(start, "the document ends within a quoted text")
                    .with_hint("is the quote at its end missing?"));
            }
            let mut escaped = false;
            loop {
                let is_special = |byte| matches!(byte, b'\'' | b'"' | b'\\');
                self.text.skip_ascii(|byte| byte.is_ascii_graphic() && !is_special(byte));
                if self.text.is_gap(0) {
                    break;
                }
                match self.text.peek() {
                    b'\'' if quote == b'\'' && self.text.ahead(1) == b'\'' => {
                        self.text.skip();
                        built.push_str(self.text.since(from));
                        self.text.skip();
                        from = self.text.mark.at;
                    }
                    byte if byte == quote => break,
                    b'\\' if quote == b'"' => {
                        built.push_str(self.text.since(from));
                        escaped = self.text.breaks(1) > 0;
                        if escaped {
                            self.text.skip();
                            self.text.skip_break();
                        } else {
                            built.push(self.escape()?);
                        }
                        from = self.text.mark.at;
                        if escaped {
                            break;
                        }
                    }
                    _ => self.text.skip(),
                }
            }
            if self.text.peek() == quote {
                break;
            }
            let before = self.text.since(from);
            if let Some(fold) = self.gap(escaped, None)? {
                built.push_str(before);
                built.push_str(&fold);
                from = self.text.mark.at;
            }
        }
        let last = self.text.since(from);
        self.text.skip();
        Ok(if built.is_empty() { last.into() } else { (built + last).into() })
    }

    /// Scans an escape. Returns the character that it means.
    fn escape(&mut self) -> Result<char, Trouble> {
        let start = self.text.mark;
        let simple = match self.text.ahead(1) {
            b'0' => '\0',
            b'a' => '\u{7}',
            b'b' => '\u{8}',
            b't' | b'\t' => '\t',
            b'n' => '\n',
            b'v' => '\u{b}',
            b'f' => '\u{c}',
            b'r' => '\r',
            b'e' => '\u{1b}',
            b' ' => ' ',
            b'"' => '"',
            b'\'' => '\'',
            b'\\' => '\\',
            b'N' => '\u{85}',
            b'_' => '\u{a0}',
            b'L' => '\u{2028}',
            b'P' => '\u{2029}',
            b'x' => return self.numbered(2),
            b'u' => return self.numbered(4),
            b'U' => return self.numbered(8),
            _ => {
                return Err(trouble(start, "YAML does not know this escape").with_hint(
                    "in single quotes a backslash is a backslash; in double quotes, \\\\ is",
                ));
            }
        };
        self.text.skip();
        self.text.skip();
        Ok(simple)
    }

    fn numbered(&mut self, digits: usize) -> Result<char, Trouble> {
        let start = self.text.mark;
        let from = start.at + 2;
        let number = self.text.all.get(from..from + digits);
        let number = number.filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let found = number.and_then(|text| char::from_u32(u32::from_str_radix(text, 16).ok()?));
        let message = || format!("expected the {digits} digits of a character's number");
        let found = found.ok_or_else(|| trouble(start, message()))?;
        (0..digits + 2).for_each(|_| self.text.skip());
        Ok(found)
    }

    /// Scans a block of lines after `|` or `>`. Returns the text and the position where its first
    /// line begins.
    pub(super) fn block(&mut self, literal: bool) -> Result<(Cow<'a, str>, Mark), Trouble> {
        self.text.skip();
        let (keep, further) = self.header()?;
        let mut indent = further.map_or(0, |further| self.indent.max(0) + further);
        let start = self.text.mark;
        let mut breaks = self.empty_lines(&mut indent)?;
        let mut mark = Mark { line: start.line, ..self.text.mark };
        if breaks.is_empty() && column(mark) < indent {
            mark = start;
        }
        let mut built = String::new();
        let (mut last_break, mut was_blank) = ("", false);
        while column(self.text.mark) == indent && !self.text.is_end() {
            let is_blank = self.text.is_blank();
            if !literal && last_break == "\n" && !was_blank && !is_blank {
                if breaks.is_empty() {
                    built.push(' ');
                }
            } else {
                built.push_str(last_break);
            }
            built.push_str(&breaks);
            was_blank = is_blank;
            let from = self.text.mark.at;
            self.text.skip_to_break();
            built.push_str(self.text.since(from));
            // The last line of a file may lack its line break.
            last_break = if self.text.is_end() { "\n" } else { self.text.skip_break() };
            breaks = self.empty_lines(&mut indent)?;
        }
        if keep != Keep::Nothing {
            built.push_str(last_break);
        }
        if keep == Keep::All {
            built.push_str(&breaks);
        }
        Ok((built.into(), mark))
    }

    /// Scans the rest of the line after `|` or `>`. Returns which line breaks at the end are kept,
    /// and how far the lines are indented.
    fn header(&mut self) -> Result<(Keep, Option<isize>), Trouble> {
        let (mut keep, mut further) = (None, None);
        for _ in 0..2 {
            match self.text.peek() {
                b'+' if keep.is_none() => keep = Some(Keep::All),
                b'-' if keep.is_none() => keep = Some(Keep::Nothing),
                digit @ b'1'..=b'9' if further.is_none() => {
                    further = Some(isize::from((digit - b'0') as i8));
                }
                _ => break,
            }
            self.text.skip();
        }
        self.text.skip_blanks();
        if self.text.peek() == b'#' {
            self.text.skip_to_break();
        }
        if !self.text.is_end() && !self.text.is_break() {
            let message = "expected the end of the line after | or >";
            return Err(trouble(self.text.mark, message).with_hint("does the text need quotes?"));
        }
        self.text.skip_break();
        Ok((keep.unwrap_or(Keep::One), further))
    }

    /// Skips empty lines and the indentation of the next line. Returns the line breaks. An
    /// indentation of zero is not known yet: the first line that is not empty decides it.
    fn empty_lines(&mut self, indent: &mut isize) -> Result<String, Trouble> {
        let (mut breaks, mut most) = (String::new(), 0);
        let mut is_new_line = self.text.mark.column == 0;
        loop {
            let within = |mark| *indent == 0 || column(mark) < *indent;
            while within(self.text.mark) && self.text.peek() == b' ' {
                self.text.skip();
            }
            most = most.max(column(self.text.mark));
            if within(self.text.mark) && self.text.peek() == b'\t' {
                return Err(tab(self.text.mark));
            }
            if !self.text.is_break() {
                // The last line of a file may lack its line break.
                if self.text.is_end() && is_new_line && self.text.mark.column > 0 {
                    breaks.push('\n');
                }
                break;
            }
            breaks.push_str(self.text.skip_break());
            is_new_line = true;
        }
        if *indent == 0 {
            *indent = most.max(self.indent + 1).max(1);
        }
        Ok(breaks)
    }
}

/// The line breaks at the end of a block that are part of its text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Nothing,
    One,
    All,
}
