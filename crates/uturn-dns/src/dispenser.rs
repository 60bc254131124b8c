//! Hands a directive's words to a plugin, line by line and block by block.
//!
//! The same cursor as Caddy's: what is an argument and what begins a block depends on the
//! lines that words stand in.

use crate::blocks::Files;
use crate::fault::Fault;
use crate::lexer::Token;

/// A cursor over the words of one directive.
pub(crate) struct Dispenser<'t> {
    tokens: &'t [Token],
    files: &'t Files<'t>,
    /// One more than the word that is looked at.
    next: usize,
    nesting: usize,
}

impl<'t> Dispenser<'t> {
    pub(crate) fn new(tokens: &'t [Token], files: &'t Files<'t>) -> Self {
        Self { tokens, files, next: 0, nesting: 0 }
    }

    /// Goes to the next word, wherever it stands.
    pub(crate) fn advance(&mut self) -> bool {
        let there = self.next < self.tokens.len();
        self.next += usize::from(there);
        there
    }

    /// The word that is looked at.
    pub(crate) fn value(&self) -> &'t str {
        self.next.checked_sub(1).map_or("", |at| &self.tokens[at].text)
    }

    /// The word that is looked at, with its place.
    pub(crate) fn token(&self) -> &'t Token {
        &self.tokens[self.next.saturating_sub(1)]
    }

    /// Goes to the next word, if it is on the same line.
    pub(crate) fn next_argument(&mut self) -> bool {
        let Some(now) = self.next.checked_sub(1) else { return self.advance() };
        let same_line = self.tokens.get(now + 1).is_some_and(|next| {
            let now = &self.tokens[now];
            now.file == next.file && now.last_line() == next.line
        });
        self.next += usize::from(same_line);
        same_line
    }

    /// All that is left of the line, up to a `{`.
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

    /// Goes into a block that opens on this line, or to the next thing in it.
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

    /// A fault at the word that is looked at.
    pub(crate) fn fault<T>(&self, message: impl Into<String>) -> Result<T, Fault> {
        Err(self.files.fault(self.token(), message))
    }

    /// The files that words stand in.
    pub(crate) fn files(&self) -> &'t Files<'t> {
        self.files
    }
}
