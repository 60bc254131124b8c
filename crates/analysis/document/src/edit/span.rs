//! Parses a document with the position of each of its parts in the text.

use crate::reader::yaml::{self, Event, Placed, Style};

/// A value and its range in the text, in bytes.
#[derive(Clone, Debug)]
pub(super) struct Spanned {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    /// A scalar with its value.
    Scalar {
        text: String,
        style: Style,
    },
    Seq {
        flow: bool,
        items: Vec<Spanned>,
    },
    Map {
        flow: bool,
        entries: Vec<Pair>,
    },
    /// An alias, which cannot be edited: an edit would also change the anchored value.
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
    /// Returns the value of `key` in a mapping.
    pub(super) fn get(&self, key: &str) -> Option<&Spanned> {
        match &self.what {
            What::Map { entries, .. } => {
                // If a key is repeated, the last one counts.
                entries.iter().rev().find(|entry| entry.key == key).map(|entry| &entry.value)
            }
            _ => None,
        }
    }

    /// Returns the text of a scalar.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.what {
            What::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Returns the items of a list.
    pub(super) fn items(&self) -> &[Spanned] {
        match &self.what {
            What::Seq { items, .. } => items,
            _ => &[],
        }
    }

    /// Returns whether the value is missing or null.
    pub(super) fn is_null(&self) -> bool {
        let What::Scalar { text, style } = &self.what else { return false };
        *style == Style::Plain && matches!(text.as_str(), "" | "~" | "null")
    }
}

/// Parses the document in a text. Returns `None` if the text is not a document or has content after
/// it.
pub(super) fn parse(text: &str) -> Option<Spanned> {
    let mut building = Building::default();
    let rest = yaml::parse(text, 1, &mut |part| {
        building.add(part);
        Ok(())
    });
    let whole = matches!(rest, Ok(None)) && building.is_sound;
    building.done.filter(|_| whole)
}

/// A document under construction.
struct Building {
    open: Vec<(usize, Open)>,
    done: Option<Spanned>,
    /// Whether all keys are scalars.
    is_sound: bool,
}

impl Default for Building {
    fn default() -> Self {
        Self { open: Vec::new(), done: None, is_sound: true }
    }
}

enum Open {
    Seq { flow: bool, items: Vec<Spanned> },
    Map { flow: bool, entries: Vec<Pair>, key: Option<Spanned> },
}

impl Building {
    fn add(&mut self, Placed { event, start, end, .. }: Placed<'_>) {
        let (start, end) = (start.at, end.at);
        match event {
            Event::Scalar { text, style, .. } => {
                let what = What::Scalar { text: text.into_owned(), style };
                self.put(Spanned { start, end, what });
            }
            Event::Alias(_) => self.put(Spanned { start, end, what: What::Alias }),
            Event::Seq { flow } => self.open.push((start, Open::Seq { flow, items: Vec::new() })),
            Event::Map { flow } => {
                self.open.push((start, Open::Map { flow, entries: Vec::new(), key: None }));
            }
            Event::SeqEnd | Event::MapEnd => self.close(end),
        }
    }

    fn close(&mut self, end: usize) {
        let Some((start, open)) = self.open.pop() else { return };
        let node = match open {
            Open::Seq { flow, items } => {
                let last = items.last().map_or(start, |item| item.end);
                let end = if flow { end } else { last };
                Spanned { start, end, what: What::Seq { flow, items } }
            }
            Open::Map { flow, entries, .. } => {
                let last = entries.last().map_or(start, |pair| pair.value.end.max(pair.key_end));
                let end = if flow { end } else { last };
                Spanned { start, end, what: What::Map { flow, entries } }
            }
        };
        self.put(node);
    }

    fn put(&mut self, node: Spanned) {
        match self.open.last_mut().map(|(_, open)| open) {
            None => self.done = Some(node),
            Some(Open::Seq { items, .. }) => items.push(node),
            Some(Open::Map { entries, key, .. }) => match key.take() {
                None => {
                    self.is_sound &= node.text().is_some();
                    *key = Some(node);
                }
                Some(key) => entries.push(Pair {
                    key: key.text().unwrap_or_default().to_owned(),
                    key_start: key.start,
                    key_end: key.end,
                    value: node,
                }),
            },
        }
    }
}
