//! Reads a directive's tokens for a plugin, line by line and block by block.
//!
//! Works like Caddy's dispenser: the line of a token decides what is an argument and what starts
//! a block.

use crate::blocks::Files;
use crate::fault::Fault;
use crate::lexer::Token;
use crate::pattern::PatternRoom;

/// A cursor over the tokens of one directive.
pub(crate) struct Dispenser<'t> {
    tokens: &'t [Token],
    files: &'t Files<'t>,
    /// The index after the current token.
    next: usize,
    nesting: usize,
}

impl<'t> Dispenser<'t> {
    pub(crate) fn new(tokens: &'t [Token], files: &'t Files<'t>) -> Self {
        Self { tokens, files, next: 0, nesting: 0 }
    }

    /// Advances to the next token, on any line.
    pub(crate) fn advance(&mut self) -> bool {
        let there = self.next < self.tokens.len();
        self.next += usize::from(there);
        there
    }

    /// Returns the text of the current token.
    pub(crate) fn value(&self) -> &'t str {
        self.next.checked_sub(1).map_or("", |at| &self.tokens[at].text)
    }

    /// Returns the current token.
    pub(crate) fn token(&self) -> &'t Token {
        &self.tokens[self.next.saturating_sub(1)]
    }

    /// Advances to the next token if it is on the same line.
    pub(crate) fn next_argument(&mut self) -> bool {
        let Some(now) = self.next.checked_sub(1) else { return self.advance() };
        let same_line = self.tokens.get(now + 1).is_some_and(|next| {
            let now = &self.tokens[now];
            now.file == next.file && now.last_line() == next.line
        });
        self.next += usize::from(same_line);
        same_line
    }

    /// Reads the remaining arguments of the line, up to a `{`.
    pub(crate) fn arguments(&mut self) -> Vec<String> {
        let mut words = Vec::new();
        while self.next_argument() {
            if self.value() == "{" {
                self.next -= 1;
                break;
            }
            words.push(self.value().to_owned());
        }
        words
    }

    /// Enters a block that opens on this line, or advances to the next entry in it.
    pub(crate) fn next_in_block(&mut self) -> bool {
        if self.nesting > 0 {
            let moved = self.advance();
            if !moved || self.value() == "}" {
                self.nesting -= 1;
                return false;
            }
            return true;
        }
        if !self.next_argument() {
            return false;
        }
        if self.value() != "{" {
            self.next -= 1;
            return false;
        }
        if !self.advance() || self.value() == "}" {
            return false;
        }
        self.nesting += 1;
        true
    }

    /// Returns a fault at the current token.
    pub(crate) fn fault<T>(&self, message: impl Into<String>) -> Result<T, Fault> {
        Err(self.files.fault(self.token(), message))
    }

    /// Returns the remaining budget for regular expressions.
    pub(crate) fn patterns(&self) -> &'t PatternRoom {
        self.files.patterns()
    }

    /// Returns the files of the tokens.
    pub(crate) fn files(&self) -> &'t Files<'t> {
        self.files
    }
}
