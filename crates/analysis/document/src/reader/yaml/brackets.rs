//! Parses lists and mappings in brackets.

use super::parse::{Event, Parser};
use super::text::Mark;
use super::token::{Token, TokenKind, trouble};
use crate::reader::Trouble;

impl Parser<'_, '_> {
    /// Parses the items of a list in brackets.
    pub(super) fn flow_items(&mut self) -> Result<(), Trouble> {
        const ENDS: [TokenKind<'_>; 2] = [TokenKind::Comma, TokenKind::FlowSeqEnd];
        let opened = self.scanner.next()?.start;
        let mut first = true;
        loop {
            if !first && !self.is_next(&[TokenKind::FlowSeqEnd])? {
                self.comma(']', opened)?;
            }
            first = false;
            let Token { kind, start, end } = self.scanner.peek()?.clone();
            match kind {
                TokenKind::FlowSeqEnd => {
                    self.scanner.next()?;
                    return self.emit(Event::SeqEnd, None, start, end);
                }
                // `[a: b]` is a list with a mapping.
                TokenKind::Key => {
                    self.scanner.next()?;
                    self.emit(Event::Map { flow: true }, None, start, end)?;
                    if self.is_next(&[TokenKind::Value, TokenKind::Comma, TokenKind::FlowSeqEnd])? {
                        let end = self.scanner.next()?.end;
                        self.nothing(end)?;
                    } else {
                        self.node(false, false)?;
                    }
                    self.flow_value(&ENDS)?;
                    let at = self.scanner.peek()?.start;
                    self.emit(Event::MapEnd, None, at, at)?;
                }
                _ => self.flow_node(']', opened)?,
            }
        }
    }

    /// Parses the entries of a mapping in brackets.
    pub(super) fn flow_entries(&mut self) -> Result<(), Trouble> {
        const ENDS: [TokenKind<'_>; 2] = [TokenKind::Comma, TokenKind::FlowMapEnd];
        let opened = self.scanner.next()?.start;
        let mut first = true;
        loop {
            if !first && !self.is_next(&[TokenKind::FlowMapEnd])? {
                self.comma('}', opened)?;
            }
            first = false;
            let Token { kind, start, end } = self.scanner.peek()?.clone();
            match kind {
                TokenKind::FlowMapEnd => {
                    self.scanner.next()?;
                    return self.emit(Event::MapEnd, None, start, end);
                }
                TokenKind::Key => {
                    self.scanner.next()?;
                    if self.is_next(&[TokenKind::Value, TokenKind::Comma, TokenKind::FlowMapEnd])? {
                        self.nothing(end)?;
                    } else {
                        self.node(false, false)?;
                    }
                    self.flow_value(&ENDS)?;
                }
                _ => {
                    self.flow_node('}', opened)?;
                    let at = self.scanner.peek()?.start;
                    self.nothing(at)?;
                }
            }
        }
    }

    fn flow_value(&mut self, ends: &[TokenKind<'_>]) -> Result<(), Trouble> {
        let mut place = self.scanner.peek()?.start;
        if self.is_next(&[TokenKind::Value])? {
            place = self.scanner.next()?.end;
            if !self.is_next(ends)? {
                return self.node(false, false);
            }
        }
        self.nothing(place)
    }

    fn flow_node(&mut self, close: char, opened: Mark) -> Result<(), Trouble> {
        if self.is_next(&[TokenKind::End, TokenKind::DocumentEnd])? {
            Err(self.unclosed("a value", close, opened))
        } else {
            self.node(false, false)
        }
    }

    fn comma(&mut self, close: char, opened: Mark) -> Result<(), Trouble> {
        if !self.is_next(&[TokenKind::Comma])? {
            return Err(self.unclosed(&format!("',' or '{close}'"), close, opened));
        }
        self.scanner.next()?;
        Ok(())
    }

    /// Returns the fault that states what is expected within brackets or, at the end of the
    /// document, which brackets are open.
    fn unclosed(&mut self, expected: &str, close: char, opened: Mark) -> Trouble {
        let token = match self.scanner.peek() {
            Ok(token) => token,
            Err(trouble) => return trouble,
        };
        let trouble = trouble(token.start, format!("expected {expected}"));
        if !matches!(token.kind, TokenKind::End | TokenKind::DocumentEnd) {
            return trouble;
        }
        let open = if close == ']' { '[' } else { '{' };
        let (line, column) = (opened.line, opened.column + 1);
        trouble.with_hint(format!(
            "is the file complete? the {open} at line {line}, column {column} is never closed"
        ))
    }
}
