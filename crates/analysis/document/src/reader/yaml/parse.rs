//! Parses YAML: turns the tokens of `super::scan` into events.

use std::borrow::Cow;
use std::mem::discriminant;

use super::scan::Scanner;
use super::text::{Mark, Text};
use super::token::{Style, Tag, Token, TokenKind, too_deep, trouble};
use crate::reader::scalar::Tagged;
use crate::reader::{DEPTH, Trouble};

/// A part of a document, in the order in which it is written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event<'a> {
    Scalar {
        text: Cow<'a, str>,
        style: Style,
        tag: Tagged<'a>,
    },
    /// A reference to the value with this anchor.
    Alias(&'a str),
    /// The beginning of a list, in brackets (`flow`) or not.
    Seq {
        flow: bool,
    },
    SeqEnd,
    Map {
        flow: bool,
    },
    MapEnd,
}

/// An event with its anchor and its position.
#[derive(Clone, Debug)]
pub(crate) struct Placed<'a> {
    pub(crate) event: Event<'a>,
    pub(crate) anchor: Option<&'a str>,
    pub(crate) start: Mark,
    pub(crate) end: Mark,
}

type Each<'e, 'a> = &'e mut dyn FnMut(Placed<'a>) -> Result<(), Trouble>;

/// Parses the single document of a text whose first line has number `line`. Returns the position of
/// content after its end.
pub(crate) fn parse<'a>(
    text: &'a str,
    line: u32,
    each: Each<'_, 'a>,
) -> Result<Option<Mark>, Trouble> {
    let mut text = after_separator(text, line)?;
    if text.all[text.mark.at..].starts_with('\u{feff}') {
        text.mark.at += '\u{feff}'.len_utf8();
    }
    check_characters(&text)?;
    let mut parser = Parser { scanner: Scanner::new(text), depth: 0, each };
    parser.document()?;
    // This only checks whether anything follows.
    if parser.scanner.peek()?.kind == TokenKind::DocumentEnd {
        parser.scanner.next()?;
        return Ok(match parser.scanner.peek() {
            Ok(token) if token.kind == TokenKind::End => None,
            Ok(token) => Some(token.start),
            Err(_) => Some(parser.scanner.text.mark),
        });
    }
    let rest = parser.scanner.peek()?;
    Ok((rest.kind != TokenKind::End).then_some(rest.start))
}

/// Skips a line of `---`, which may have no other content than a comment.
fn after_separator(text: &str, line: u32) -> Result<Text<'_>, Trouble> {
    let Some(rest) = text.strip_prefix("---") else { return Ok(Text::new(text, 0, line)) };
    let (first, after) = rest.split_once('\n').unwrap_or((rest, ""));
    let blank = first.len() - first.trim_start().len();
    if !matches!(first.trim().chars().next(), None | Some('#')) {
        let place = Mark { at: 0, line, column: 3 + first[..blank].chars().count() };
        return Err(trouble(place, "kubectl accepts only a comment after ---")
            .with_hint("put it on a line of its own"));
    }
    Ok(Text::new(text, text.len() - after.len(), line.saturating_add(1)))
}

/// Rejects characters that YAML does not allow.
fn check_characters(text: &Text<'_>) -> Result<(), Trouble> {
    let mut text = text.clone();
    let rest = &text.all[text.mark.at..];
    // Few texts have a byte that needs a closer look.
    let suspect = |byte: u8| {
        byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r') || matches!(byte, 0x7f | 0xc2 | 0xef)
    };
    if !rest.bytes().any(suspect) {
        return Ok(());
    }
    let wrong = |found: &char| match found {
        '\t' | '\n' | '\r' | '\u{85}' => false,
        '\u{fffe}' | '\u{ffff}' => true,
        other => other.is_control(),
    };
    let Some((at, found)) = rest.char_indices().find(|(_, found)| wrong(found)) else {
        return Ok(());
    };
    let end = text.mark.at + at;
    while text.mark.at < end {
        if text.is_break() {
            text.skip_break();
        } else {
            text.skip();
        }
    }
    let message = format!("a character that YAML does not allow: U+{:04X}", u32::from(found));
    Err(trouble(text.mark, message))
}

pub(super) struct Parser<'e, 'a> {
    pub(super) scanner: Scanner<'a>,
    depth: usize,
    each: Each<'e, 'a>,
}

/// A collection that was begun.
enum Opened {
    /// A list whose dashes are at the column of its key.
    LevelItems,
    FlowItems,
    FlowEntries,
    Items,
    Entries,
}

/// The anchor and tag before a value.
struct Before<'a> {
    anchor: Option<&'a str>,
    tag: Tagged<'a>,
    start: Mark,
    any: bool,
}

impl<'a> Parser<'_, 'a> {
    /// Parses the value of the document, if there is one.
    fn document(&mut self) -> Result<(), Trouble> {
        let Token { kind, start, .. } = self.scanner.peek()?;
        let (is_end, start) = (*kind == TokenKind::DocumentEnd, *start);
        // A line of --- after a line that ends in CR alone does not divide the text.
        let is_begun = is_end && self.scanner.text.all[start.at..].starts_with('-');
        if is_begun {
            self.scanner.next()?;
        }
        match self.scanner.peek()?.kind {
            TokenKind::End if !is_begun => Ok(()),
            TokenKind::End | TokenKind::DocumentEnd | TokenKind::Directive if is_begun => {
                self.nothing(start)
            }
            _ => self.node(true, false),
        }
    }

    /// Returns whether the next token is of one of these kinds, none of which has a content.
    pub(super) fn is_next(&mut self, kinds: &[TokenKind<'_>]) -> Result<bool, Trouble> {
        let next = discriminant(&self.scanner.peek()?.kind);
        Ok(kinds.iter().any(|kind| discriminant(kind) == next))
    }

    pub(super) fn emit(
        &mut self,
        event: Event<'a>,
        anchor: Option<&'a str>,
        start: Mark,
        end: Mark,
    ) -> Result<(), Trouble> {
        (self.each)(Placed { event, anchor, start, end })
    }

    /// Emits the value that is left out at this place.
    pub(super) fn nothing(&mut self, at: Mark) -> Result<(), Trouble> {
        let event = Event::Scalar { text: "".into(), style: Style::Plain, tag: Tagged::Not };
        self.emit(event, None, at, at)
    }

    /// Parses a value. `block`: the value may be a block. `level`: dashes at the column of its key
    /// begin a list.
    ///
    /// This function and its callees call each other once for each level, so it keeps no token and
    /// no event in its frame.
    pub(super) fn node(&mut self, block: bool, level: bool) -> Result<(), Trouble> {
        let Some(opened) = self.open(block, level)? else { return Ok(()) };
        self.depth += 1;
        match opened {
            Opened::LevelItems => self.level_items()?,
            Opened::FlowItems => self.flow_items()?,
            Opened::FlowEntries => self.flow_entries()?,
            Opened::Items => self.items()?,
            Opened::Entries => self.entries()?,
        }
        self.depth -= 1;
        Ok(())
    }

    /// Parses a scalar or an alias, or the beginning of a collection. Returns the kind of the
    /// collection.
    fn open(&mut self, block: bool, level: bool) -> Result<Option<Opened>, Trouble> {
        let first = self.scanner.peek()?;
        if let Token { kind: TokenKind::Alias(name), start, end } = *first {
            self.scanner.next()?;
            self.emit(Event::Alias(name), None, start, end)?;
            return Ok(None);
        }
        let Before { anchor, tag, start: begins, any } = self.before()?;
        if let Some((text, style, start, end)) = self.scanner.next_scalar()? {
            self.emit(Event::Scalar { text, style, tag }, anchor, start, end)?;
            return Ok(None);
        }
        let Token { kind, start, end } = self.scanner.peek()?;
        let (start, end) = (*start, *end);
        if self.depth >= DEPTH {
            return Err(too_deep(start));
        }
        let (event, end, opened) = match kind {
            TokenKind::Item if level => (Event::Seq { flow: false }, start, Opened::LevelItems),
            TokenKind::FlowSeq => (Event::Seq { flow: true }, end, Opened::FlowItems),
            TokenKind::FlowMap => (Event::Map { flow: true }, end, Opened::FlowEntries),
            TokenKind::BlockSeq if block => (Event::Seq { flow: false }, end, Opened::Items),
            TokenKind::BlockMap if block => (Event::Map { flow: false }, end, Opened::Entries),
            _ if any => {
                let event = Event::Scalar { text: "".into(), style: Style::Plain, tag };
                self.emit(event, anchor, begins, begins)?;
                return Ok(None);
            }
            other => return Err(unexpected(other, start)),
        };
        self.emit(event, anchor, start, end)?;
        Ok(Some(opened))
    }

    fn before(&mut self) -> Result<Before<'a>, Trouble> {
        let start = self.scanner.peek()?.start;
        let mut before = Before { anchor: None, tag: Tagged::Not, start, any: false };
        for _ in 0..2 {
            let token = self.scanner.peek()?;
            match &token.kind {
                TokenKind::Anchor(name) if before.anchor.is_none() => before.anchor = Some(name),
                TokenKind::Tag(_) if before.tag != Tagged::Not => break,
                TokenKind::Tag(Tag::Undeclared) => {
                    return Err(trouble(token.start, "a tag whose handle is not declared"));
                }
                TokenKind::Tag(Tag::Core(suffix)) => before.tag = Tagged::Core(suffix.clone()),
                TokenKind::Tag(Tag::Other) => before.tag = Tagged::Other,
                _ => break,
            }
            before.any = true;
            self.scanner.next()?;
        }
        Ok(before)
    }

    /// Parses the items of a list that is indented.
    fn items(&mut self) -> Result<(), Trouble> {
        self.scanner.next()?;
        loop {
            let Token { kind, start, end } = self.scanner.next()?;
            match kind {
                TokenKind::Item => {
                    if self.is_next(&[TokenKind::Item, TokenKind::BlockEnd])? {
                        self.nothing(end)?;
                    } else {
                        self.node(true, false)?;
                    }
                }
                TokenKind::BlockEnd => return self.emit(Event::SeqEnd, None, start, start),
                _ => return Err(misplaced(start)),
            }
        }
    }

    /// Parses the items of a list that is not indented from its key.
    fn level_items(&mut self) -> Result<(), Trouble> {
        while self.is_next(&[TokenKind::Item])? {
            let end = self.scanner.next()?.end;
            if self.is_next(&[
                TokenKind::Item,
                TokenKind::Key,
                TokenKind::Value,
                TokenKind::BlockEnd,
            ])? {
                self.nothing(end)?;
            } else {
                self.node(true, false)?;
            }
        }
        let start = self.scanner.peek()?.start;
        self.emit(Event::SeqEnd, None, start, start)
    }

    /// Parses the entries of a mapping.
    fn entries(&mut self) -> Result<(), Trouble> {
        const ENDS: [TokenKind<'_>; 3] = [TokenKind::Key, TokenKind::Value, TokenKind::BlockEnd];
        self.scanner.next()?;
        loop {
            let Token { kind, start, end } = self.scanner.next()?;
            match kind {
                TokenKind::Key => {
                    if self.is_next(&ENDS)? {
                        self.nothing(end)?;
                    } else {
                        self.node(true, true)?;
                    }
                    let mut place = self.scanner.peek()?.start;
                    let mut empty = true;
                    if self.is_next(&[TokenKind::Value])? {
                        place = self.scanner.next()?.end;
                        empty = self.is_next(&ENDS)?;
                    }
                    if empty { self.nothing(place)? } else { self.node(true, true)? }
                }
                TokenKind::BlockEnd => return self.emit(Event::MapEnd, None, start, start),
                _ => return Err(misplaced(start)),
            }
        }
    }
}

fn misplaced(at: Mark) -> Trouble {
    trouble(at, "the indentation of this line does not match the lines above it")
}

fn unexpected(kind: &TokenKind<'_>, at: Mark) -> Trouble {
    let what = match kind {
        TokenKind::Item => "'-', which begins a list only on a line of its own",
        TokenKind::Comma => "','",
        TokenKind::FlowSeqEnd => "']'",
        TokenKind::FlowMapEnd => "'}'",
        TokenKind::Value => "':'",
        TokenKind::Key => "'?' or a key",
        TokenKind::Alias(_) => "an alias, which can have neither anchor nor tag",
        TokenKind::Anchor(_) => "a second anchor",
        TokenKind::Tag(_) => "a second tag",
        TokenKind::End | TokenKind::DocumentEnd => "the end of the document",
        TokenKind::BlockSeq | TokenKind::BlockMap | TokenKind::BlockEnd => return misplaced(at),
        TokenKind::Directive => {
            let message = "expected a value, found a directive, which kubectl does not read";
            return trouble(at, message).with_hint("leave the line out");
        }
        TokenKind::FlowSeq | TokenKind::FlowMap | TokenKind::Scalar(..) => "a value",
    };
    trouble(at, format!("expected a value, found {what}"))
}
