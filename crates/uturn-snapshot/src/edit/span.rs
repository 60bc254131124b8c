//! A document with the place of every part of it in its text.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput};

use crate::document::DEPTH;

/// A value and where it stands, in bytes.
#[derive(Clone, Debug)]
pub(super) struct Spanned {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    /// With what it says.
    Scalar {
        text: String,
        style: ScalarStyle,
    },
    Seq {
        flow: bool,
        items: Vec<Spanned>,
    },
    Map {
        flow: bool,
        entries: Vec<Pair>,
    },
    /// Stands elsewhere: an edit here would be one there too.
    Alias,
}

/// A key with its value.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) key: String,
    pub(super) key_start: usize,
    pub(super) key_end: usize,
    pub(super) value: Spanned,
}

impl Spanned {
    /// What a mapping has under `key`.
    pub(super) fn get(&self, key: &str) -> Option<&Spanned> {
        match &self.what {
            What::Map { entries, .. } => {
                entries.iter().find(|one| one.key == key).map(|one| &one.value)
            }
            _ => None,
        }
    }

    /// The text of a scalar.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.what {
            What::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// The items of a list.
    pub(super) fn items(&self) -> &[Spanned] {
        match &self.what {
            What::Seq { items, .. } => items,
            _ => &[],
        }
    }

    /// Nothing is written here, or that it is nothing.
    pub(super) fn is_null(&self) -> bool {
        let What::Scalar { text, style } = &self.what else { return false };
        *style == ScalarStyle::Plain && matches!(text.as_str(), "" | "~" | "null")
    }
}

/// The document that a text is; nothing where it is none, or several.
pub(super) fn parse(text: &str) -> Option<Spanned> {
    let mut reader = Reader { bytes: bytes(text), parser: Parser::new_from_str(text) };
    loop {
        match reader.next()? {
            (Event::StreamEnd, _) => return None,
            (Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd, _) => {}
            (event, span) => return reader.value(&event, span, 0),
        }
    }
}

/// Where each character begins, where that is not its number: texts are mostly ASCII.
fn bytes(text: &str) -> Option<HashMap<usize, usize>> {
    if text.is_ascii() {
        return None;
    }
    let mut at: HashMap<usize, usize> =
        text.char_indices().enumerate().map(|(number, (byte, _))| (number, byte)).collect();
    at.insert(at.len(), text.len());
    Some(at)
}

struct Reader<'a> {
    bytes: Option<HashMap<usize, usize>>,
    parser: Parser<'a, StrInput<'a>>,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<(Event<'a>, (usize, usize))> {
        let (event, span): (Event<'a>, Span) = self.parser.next_event()?.ok()?;
        let byte = |index: usize| match &self.bytes {
            None => Some(index),
            Some(at) => at.get(&index).copied(),
        };
        Some((event, (byte(span.start.index())?, byte(span.end.index())?)))
    }

    fn value(
        &mut self,
        event: &Event<'a>,
        (start, end): (usize, usize),
        depth: usize,
    ) -> Option<Spanned> {
        if depth > DEPTH {
            return None;
        }
        match event {
            Event::Scalar(text, style, _, _) => {
                let what = What::Scalar { text: text.to_string(), style: *style };
                Some(Spanned { start, end, what })
            }
            Event::Alias(_) => Some(Spanned { start, end, what: What::Alias }),
            Event::SequenceStart(..) => {
                let mut items = Vec::new();
                let last = loop {
                    match self.next()? {
                        (Event::SequenceEnd, (at, _)) => break at,
                        (event, span) => items.push(self.value(&event, span, depth + 1)?),
                    }
                };
                let flow = end > start;
                let end = match (flow, items.last()) {
                    (true, _) => last + 1,
                    (false, Some(item)) => item.end,
                    (false, None) => start,
                };
                Some(Spanned { start, end, what: What::Seq { flow, items } })
            }
            Event::MappingStart(..) => {
                let mut entries: Vec<Pair> = Vec::new();
                let last = loop {
                    match self.next()? {
                        (Event::MappingEnd, (at, _)) => break at,
                        (event, span) => {
                            let key = self.value(&event, span, depth + 1)?;
                            let (event, span) = self.next()?;
                            let value = self.value(&event, span, depth + 1)?;
                            entries.push(Pair {
                                key: key.text()?.to_owned(),
                                key_start: key.start,
                                key_end: key.end,
                                value,
                            });
                        }
                    }
                };
                let flow = end > start;
                let end = match (flow, entries.last()) {
                    (true, _) => last + 1,
                    (false, Some(pair)) => pair.value.end.max(pair.key_end),
                    (false, None) => start,
                };
                Some(Spanned { start, end, what: What::Map { flow, entries } })
            }
            _ => None,
        }
    }
}
