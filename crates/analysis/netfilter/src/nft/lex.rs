//! Splits the text of `nft list ruleset` into tokens, with their places.

use uturn_model::{Origin, SourceName};

use crate::ParseError;

/// The maximum nesting of expressions.
pub(super) const MAX_DEPTH: u8 = 24;

/// The maximum number of operands of one operation.
pub(super) const MAX_OPERANDS: usize = 64;

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Word(&'a str),
    /// A quoted string, without its quotes.
    Quoted(&'a str),
    /// One of `{ } ( ) , ;`.
    Mark(u8),
    /// `# …` to the end of the line.
    Remark(&'a str),
    Newline,
    End,
}

/// An error at a place.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) line: u32,
    pub(super) column: u32,
    pub(super) message: String,
}

impl Fault {
    pub(super) fn error(self, source: &SourceName) -> ParseError {
        ParseError::new(source, self.line, self.column, self.message)
    }
}

pub(super) type Parsed<T> = Result<T, Fault>;

/// The text and the current position. A clone remembers a position to return to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    /// The start and end of the current token.
    start: usize,
    end: usize,
    line: u32,
    line_start: usize,
    token: Token<'a>,
    /// The first quote or block that does not end on its line, or other misplaced token, with a
    /// description.
    unclosed: Option<(u32, u32, &'static str)>,
}

const ENDS_WORD: [bool; 256] = {
    let (ends, mut table, mut at) = (b" \t\r\n{}(),;\"", [false; 256], 0);
    while at < ends.len() {
        table[ends[at] as usize] = true;
        at += 1;
    }
    table
};

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut lexer = Self {
            text,
            start: 0,
            end: 0,
            line: 1,
            line_start: 0,
            token: Token::End,
            unclosed: None,
        };
        lexer.advance();
        lexer
    }

    /// The current token.
    pub(super) fn token(&self) -> Token<'a> {
        self.token
    }

    /// The current word; empty if the token is not a word.
    pub(super) fn word(&self) -> &'a str {
        match self.token {
            Token::Word(word) => word,
            _ => "",
        }
    }

    /// The error for the first misplaced token.
    pub(super) fn unclosed(&self) -> Option<Fault> {
        let (line, column, what) = self.unclosed?;
        Some(Fault { line, column, message: what.to_owned() })
    }

    /// Reports the block that starts at `place` on this line as not closed on it.
    pub(super) fn block_unclosed(&mut self, place: usize) {
        let column = self.column(place) as u32;
        self.unclosed = self.unclosed.or(Some((
            self.line,
            column,
            "a block in a rule that is not understood ends with its line, expected `}`",
        )));
    }

    /// Reports text that is not a rule, in a chain without other content.
    pub(super) fn no_rule(&mut self) {
        let column = self.column(self.start) as u32;
        self.unclosed = self.unclosed.or(Some((
            self.line,
            column,
            "a chain without a name has rules only, and this is none",
        )));
    }

    /// The column of a place on this line.
    pub(super) fn column(&self, place: usize) -> usize {
        place.saturating_sub(self.line_start) + 1
    }

    /// The place of the current token.
    pub(super) fn place(&self) -> usize {
        self.start
    }

    /// The text from `place` to the current token, without trailing blanks.
    pub(super) fn since(&self, place: usize) -> &'a str {
        self.text[place..self.start.max(place)].trim_end()
    }

    pub(super) fn origin(&self, source: &SourceName) -> Origin {
        Origin::line_of(source.clone(), self.line)
    }

    pub(super) fn advance(&mut self) {
        if self.token == Token::Newline {
            self.line += 1;
            self.line_start = self.end;
        }
        let bytes = self.text.as_bytes();
        let mut at = self.end;
        while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\r')) {
            at += 1;
        }
        self.start = at;
        let Some(first) = bytes.get(at) else {
            (self.end, self.token) = (at, Token::End);
            return;
        };
        match first {
            b'\n' => (self.end, self.token) = (at + 1, Token::Newline),
            b'{' | b'}' | b'(' | b')' | b',' | b';' => {
                (self.end, self.token) = (at + 1, Token::Mark(*first));
            }
            b'#' => {
                let rest = &self.text[at..];
                let length = rest.find('\n').unwrap_or(rest.len());
                (self.end, self.token) = (at + length, Token::Remark(&rest[..length]));
            }
            b'"' => {
                // A quoted string ends on its line.
                let rest = &self.text[at + 1..];
                let length = rest.bytes().take_while(|byte| !matches!(byte, b'"' | b'\n')).count();
                let closed = rest.as_bytes().get(length) == Some(&b'"');
                if !closed && self.unclosed.is_none() {
                    let column = (at - self.line_start + 1) as u32;
                    self.unclosed =
                        Some((self.line, column, "a text in quotes ends with its line"));
                }
                self.end = at + 1 + length + usize::from(closed);
                self.token = Token::Quoted(&rest[..length]);
            }
            _ => {
                let rest = &bytes[at..];
                let stop = |byte: &u8| ENDS_WORD[usize::from(*byte)];
                let length = rest.iter().position(stop).unwrap_or(rest.len());
                self.end = at + length;
                self.token = Token::Word(&self.text[at..self.end]);
            }
        }
    }

    /// Consumes the start of the current word; the rest becomes the current word.
    pub(super) fn take_beginning(&mut self, beginning: &str) {
        if let Token::Word(word) = self.token
            && let Some(rest) = word.strip_prefix(beginning)
        {
            self.start += beginning.len();
            self.token = Token::Word(rest);
            if rest.is_empty() {
                self.advance();
            }
        }
    }

    /// Consumes the word if it is the current token.
    pub(super) fn take(&mut self, word: &str) -> bool {
        let here = self.word() == word;
        if here {
            self.advance();
        }
        here
    }

    pub(super) fn take_mark(&mut self, mark: u8) -> bool {
        let here = self.token == Token::Mark(mark);
        if here {
            self.advance();
        }
        here
    }

    pub(super) fn at_mark(&self, mark: u8) -> bool {
        self.token == Token::Mark(mark)
    }

    /// Whether a statement must end here.
    pub(super) fn at_stop(&self) -> bool {
        matches!(
            self.token,
            Token::Newline | Token::End | Token::Remark(_) | Token::Mark(b';' | b'}')
        )
    }

    pub(super) fn skip_blank(&mut self) {
        while matches!(self.token, Token::Newline | Token::Remark(_) | Token::Mark(b';')) {
            self.advance();
        }
    }

    pub(super) fn skip_line(&mut self) {
        while !matches!(self.token, Token::Newline | Token::End) {
            self.advance();
        }
    }

    /// Skips past the `}` of a block whose `{` has been consumed.
    pub(super) fn skip_block(&mut self) {
        let mut depth = 1usize;
        loop {
            match self.token {
                Token::Mark(b'{') => depth += 1,
                Token::Mark(b'}') => depth -= 1,
                Token::End => return,
                _ => {}
            }
            self.advance();
            if depth == 0 {
                return;
            }
        }
    }

    /// Consumes any word or string.
    pub(super) fn name(&mut self, what: &str) -> Parsed<&'a str> {
        match self.token {
            Token::Word(word) | Token::Quoted(word) => {
                self.advance();
                Ok(word)
            }
            _ => Err(self.wanted(what)),
        }
    }

    /// A name that nft takes without quotes only, as those of tables, chains and sets.
    pub(super) fn identifier(&mut self, what: &str) -> Parsed<&'a str> {
        let Token::Word(word) = self.token else { return Err(self.wanted(what)) };
        self.advance();
        Ok(word)
    }

    pub(super) fn number(&mut self, what: &str) -> Parsed<u64> {
        let number = self.word().parse().map_err(|_| self.wanted(what))?;
        self.advance();
        Ok(number)
    }

    pub(super) fn expect(&mut self, mark: u8, what: &str) -> Parsed<()> {
        if self.take_mark(mark) { Ok(()) } else { Err(self.wanted(what)) }
    }

    /// The error for a token other than the expected one.
    pub(super) fn wanted(&self, what: &str) -> Fault {
        let found = match self.token {
            Token::Word(word) | Token::Remark(word) => format!("{word:?}"),
            Token::Quoted(text) => format!("the text {text:?}"),
            Token::Mark(mark) => format!("`{}`", mark as char),
            Token::Newline => "the end of the line".to_owned(),
            Token::End => "the end of the text".to_owned(),
        };
        self.fault(format!("found {found}, expected {what}"))
    }

    pub(super) fn fault(&self, message: String) -> Fault {
        let column = (self.start.saturating_sub(self.line_start) + 1) as u32;
        Fault { line: self.line, column, message }
    }
}
