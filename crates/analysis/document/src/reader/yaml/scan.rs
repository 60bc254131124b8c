//! Scans YAML: turns characters into tokens. The parser of `super::parse` reads the tokens.
//!
//! Tokens and block indentation follow YAML 1.1 and kubectl's parser, which is more lenient than
//! YAML 1.2: text in brackets or quotes may continue at any column.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::text::{Mark, Text};
use super::token::{Style, Token, TokenKind, column, tab, too_deep, trouble};
use crate::reader::{DEPTH, Trouble};

/// A token that turns out to be a key if a colon follows it.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    number: usize,
    mark: Mark,
    /// Whether only a key is allowed at this place.
    required: bool,
}

/// The maximum distance of a colon from the beginning of its key, unless `?` announced the key.
const KEY: usize = 1024;

/// A scalar's text and style, and where it begins and ends.
pub(super) type PlacedScalar<'a> = (Cow<'a, str>, Style, Mark, Mark);

pub(super) struct Scanner<'a> {
    pub(super) text: Text<'a>,
    tokens: VecDeque<Token<'a>>,
    /// Whether it is clear what the first of the tokens is.
    is_clear: bool,
    /// The number of tokens that were taken.
    taken: usize,
    /// The column of the innermost block; -1 outside of all blocks.
    pub(super) indent: isize,
    indents: Vec<isize>,
    /// The candidates: one for each open bracket, and one for the text outside of brackets.
    candidates: Vec<Option<Candidate>>,
    /// Whether a key without `?` may begin at this place.
    pub(super) may_be_key: bool,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: Text<'a>) -> Self {
        Self {
            text,
            tokens: VecDeque::new(),
            is_clear: false,
            taken: 0,
            indent: -1,
            indents: Vec::new(),
            candidates: vec![None],
            may_be_key: true,
        }
    }

    /// Returns the next token without taking it.
    #[inline]
    pub(super) fn peek(&mut self) -> Result<&Token<'a>, Trouble> {
        if !self.is_clear {
            self.fill()?;
        }
        Ok(&self.tokens[0])
    }

    /// Takes the next token.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Token<'a>, Trouble> {
        if !self.is_clear {
            self.fill()?;
        }
        self.is_clear = false;
        self.taken += 1;
        Ok(self.tokens.pop_front().expect("filled"))
    }

    /// Takes the next token if it is a scalar: its text and style, and where it begins and ends.
    pub(super) fn next_scalar(&mut self) -> Result<Option<PlacedScalar<'a>>, Trouble> {
        if !matches!(self.peek()?.kind, TokenKind::Scalar(..)) {
            return Ok(None);
        }
        let Token { kind, start, end } = self.next()?;
        Ok(match kind {
            TokenKind::Scalar(text, style) => Some((text, style, start, end)),
            _ => None,
        })
    }

    /// Returns whether brackets are open.
    pub(super) fn is_flow(&self) -> bool {
        self.candidates.len() > 1
    }

    /// Reads until it is clear what the next token is: a token may turn out to be a key.
    fn fill(&mut self) -> Result<(), Trouble> {
        while self.tokens.is_empty() || self.is_first_candidate()? {
            self.fetch()?;
        }
        self.is_clear = true;
        Ok(())
    }

    /// Returns whether the first token may still become a key.
    fn is_first_candidate(&mut self) -> Result<bool, Trouble> {
        let first = self.taken;
        let is_first = |key: &Option<Candidate>| key.is_some_and(|key| key.number == first);
        self.candidates.iter().position(is_first).map_or(Ok(false), |at| self.is_valid(at))
    }

    /// Returns whether a candidate may still become a key.
    fn is_valid(&mut self, at: usize) -> Result<bool, Trouble> {
        let Some(Some(key)) = self.candidates.get(at).copied() else { return Ok(false) };
        let here = self.text.mark;
        if key.mark.line == here.line && here.column <= key.mark.column + KEY {
            return Ok(true);
        }
        if key.required {
            return Err(self.no_colon(&key));
        }
        self.candidates[at] = None;
        Ok(false)
    }

    fn no_colon(&self, key: &Candidate) -> Trouble {
        let trouble = trouble(key.mark, "expected KEY: VALUE");
        let rest = &self.text.all[key.mark.at..];
        if rest.trim_end().contains('\n') {
            trouble
        } else {
            trouble.with_hint("the file ends here: is it complete?")
        }
    }

    /// Makes the token that begins here a candidate for a key.
    pub(super) fn add_candidate(&mut self) -> Result<(), Trouble> {
        if !self.may_be_key {
            return Ok(());
        }
        let mark = self.text.mark;
        let required = !self.is_flow() && self.indent == column(mark);
        let number = self.taken + self.tokens.len();
        self.drop_candidate()?;
        if let Some(last) = self.candidates.last_mut() {
            *last = Some(Candidate { number, mark, required });
        }
        Ok(())
    }

    /// Removes the current candidate. Fails if only a key was allowed there.
    fn drop_candidate(&mut self) -> Result<(), Trouble> {
        match self.candidates.last_mut().and_then(Option::take) {
            Some(key) if key.required => Err(self.no_colon(&key)),
            _ => Ok(()),
        }
    }

    /// Begins a block if `mark` is indented further than the current block. The block's token is
    /// inserted before token number `before`.
    fn indent_to(&mut self, mark: Mark, before: Option<usize>, kind: TokenKind<'a>) {
        if self.is_flow() || self.indent >= column(mark) {
            return;
        }
        self.indents.push(self.indent);
        self.indent = column(mark);
        let token = Token { kind, start: mark, end: mark };
        match before {
            Some(number) => self.tokens.insert(number - self.taken, token),
            None => self.tokens.push_back(token),
        }
    }

    /// Ends the blocks that are indented further than this column.
    fn outdent_to(&mut self, column: isize) {
        if self.is_flow() {
            return;
        }
        while self.indent > column {
            self.add(TokenKind::BlockEnd, self.text.mark);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    /// Adds a token that extends from `start` to the current place.
    pub(super) fn add(&mut self, kind: TokenKind<'a>, start: Mark) {
        self.tokens.push_back(Token { kind, start, end: self.text.mark });
    }

    /// Adds a token of this many characters.
    fn add_mark(&mut self, kind: TokenKind<'a>, characters: usize) {
        let start = self.text.mark;
        (0..characters).for_each(|_| self.text.skip());
        self.add(kind, start);
    }

    fn fetch(&mut self) -> Result<(), Trouble> {
        self.skip_to_token();
        self.outdent_to(column(self.text.mark));
        if self.text.is_end() {
            return self.end();
        }
        let mark = self.text.mark;
        if mark.column == 0 && self.text.peek() == b'%' {
            self.outdent_to(-1);
            self.drop_candidate()?;
            self.may_be_key = false;
            // The parser refuses a directive at the beginning.
            let is_first = self.taken + self.tokens.len() == 0;
            if !self.is_directive() && !is_first {
                let message = "expected a directive such as %YAML 1.1 after %";
                let hint = "is it text? then it needs quotes, or the indentation of the text above";
                return Err(trouble(mark, message).with_hint(hint));
            }
            self.text.skip_to_break();
            self.add(TokenKind::Directive, mark);
            return Ok(());
        }
        if self.text.is_document_mark() {
            self.outdent_to(-1);
            self.drop_candidate()?;
            self.may_be_key = false;
            self.add_mark(TokenKind::DocumentEnd, 3);
            return Ok(());
        }
        let flow = self.is_flow();
        let gap = self.text.is_gap(1);
        match self.text.peek() {
            b'[' => self.open(TokenKind::FlowSeq),
            b'{' => self.open(TokenKind::FlowMap),
            b']' => self.close(TokenKind::FlowSeqEnd),
            b'}' => self.close(TokenKind::FlowMapEnd),
            b',' => {
                self.drop_candidate()?;
                self.may_be_key = true;
                self.add_mark(TokenKind::Comma, 1);
                Ok(())
            }
            b'-' if gap => self.item(),
            b'?' if flow || gap => self.key(),
            b':' if flow || gap => self.value(),
            b'*' => self.named(TokenKind::Alias),
            b'&' => self.named(TokenKind::Anchor),
            b'!' => {
                self.add_candidate()?;
                self.may_be_key = false;
                let tag = self.tag()?;
                self.add(TokenKind::Tag(tag), mark);
                Ok(())
            }
            b'|' if !flow => self.block_scalar(true),
            b'>' if !flow => self.block_scalar(false),
            quote @ (b'\'' | b'"') => {
                self.add_candidate()?;
                self.may_be_key = false;
                let text = self.quoted(quote)?;
                self.add(TokenKind::Scalar(text, Style::Quoted), mark);
                Ok(())
            }
            b'\t' => Err(tab(mark)),
            found @ (b'#' | b'%' | b'@' | b'`' | b'|' | b'>') => {
                let found = char::from(found);
                let message = format!("a value that begins with {found:?} needs quotes");
                Err(trouble(mark, message))
            }
            _ => self.plain_scalar(),
        }
    }

    /// Skips blanks, comments and line breaks. A tab is a blank only where it cannot be
    /// indentation.
    fn skip_to_token(&mut self) {
        loop {
            let tabs = self.is_flow() || !self.may_be_key;
            self.text.skip_ascii(|byte| byte == b' ' || tabs && byte == b'\t');
            if self.text.peek() == b'#' {
                self.text.skip_to_break();
            }
            if !self.text.is_break() {
                return;
            }
            self.text.skip_break();
            if !self.is_flow() {
                self.may_be_key = true;
            }
        }
    }

    fn end(&mut self) -> Result<(), Trouble> {
        if self.text.mark.column != 0 {
            self.text.mark.column = 0;
            self.text.mark.line = self.text.mark.line.saturating_add(1);
        }
        self.outdent_to(-1);
        self.drop_candidate()?;
        self.may_be_key = false;
        self.add(TokenKind::End, self.text.mark);
        Ok(())
    }

    fn open(&mut self, kind: TokenKind<'a>) -> Result<(), Trouble> {
        self.add_candidate()?;
        if self.candidates.len() > DEPTH {
            return Err(too_deep(self.text.mark));
        }
        self.candidates.push(None);
        self.may_be_key = true;
        self.add_mark(kind, 1);
        Ok(())
    }

    fn close(&mut self, kind: TokenKind<'a>) -> Result<(), Trouble> {
        self.drop_candidate()?;
        if self.is_flow() {
            self.candidates.pop();
        }
        self.may_be_key = false;
        self.add_mark(kind, 1);
        Ok(())
    }

    /// Reads `-`, which begins an item of a list.
    fn item(&mut self) -> Result<(), Trouble> {
        let mark = self.text.mark;
        if !self.is_flow() {
            if !self.may_be_key {
                let message = "an item of a list begins on a line of its own";
                return Err(trouble(mark, message)
                    .with_hint("if this is not a list, the text that begins with - needs quotes"));
            }
            self.indent_to(mark, None, TokenKind::BlockSeq);
        }
        self.drop_candidate()?;
        self.may_be_key = true;
        self.add_mark(TokenKind::Item, 1);
        Ok(())
    }

    /// Reads `?`, which announces a key.
    fn key(&mut self) -> Result<(), Trouble> {
        let mark = self.text.mark;
        if !self.is_flow() {
            if !self.may_be_key {
                return Err(trouble(mark, "a '?' where no key can begin"));
            }
            self.indent_to(mark, None, TokenKind::BlockMap);
        }
        self.drop_candidate()?;
        self.may_be_key = !self.is_flow();
        self.add_mark(TokenKind::Key, 1);
        Ok(())
    }

    /// Reads `:`, which ends a key.
    fn value(&mut self) -> Result<(), Trouble> {
        let mark = self.text.mark;
        let innermost = self.candidates.len() - 1;
        if self.is_valid(innermost)?
            && let Some(key) = self.candidates[innermost].take()
        {
            let token = Token { kind: TokenKind::Key, start: key.mark, end: key.mark };
            self.tokens.insert(key.number - self.taken, token);
            self.indent_to(key.mark, Some(key.number), TokenKind::BlockMap);
            self.may_be_key = false;
        } else {
            if !self.is_flow() {
                if !self.may_be_key {
                    return Err(trouble(mark, "a ':' where no value can begin")
                        .with_hint("is the line indented too far, or does its text need quotes?"));
                }
                self.indent_to(mark, None, TokenKind::BlockMap);
            }
            self.may_be_key = !self.is_flow();
        }
        self.add_mark(TokenKind::Value, 1);
        Ok(())
    }

    fn block_scalar(&mut self, literal: bool) -> Result<(), Trouble> {
        self.drop_candidate()?;
        self.may_be_key = true;
        let (text, start) = self.block(literal)?;
        let style = if literal { Style::Literal } else { Style::Folded };
        self.add(TokenKind::Scalar(text, style), start);
        Ok(())
    }

    fn plain_scalar(&mut self) -> Result<(), Trouble> {
        self.add_candidate()?;
        self.may_be_key = false;
        let start = self.text.mark;
        let (text, end) = self.plain()?;
        self.tokens.push_back(Token { kind: TokenKind::Scalar(text, Style::Plain), start, end });
        Ok(())
    }
}
