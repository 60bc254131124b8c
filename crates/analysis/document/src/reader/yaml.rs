//! Reads YAML: builds a tree from the events of the parser, expands anchors, and enforces limits.
//!
//! The parser is our own, because it has to accept what kubectl accepts, with the same meaning, and
//! to refuse what kubectl refuses. kubectl reads YAML 1.1 as libyaml does (`yes` is true, `0644` is
//! octal, `<<` merges). It reads one document from each text up to a line of `---`, and uses the
//! last of several entries with the same key.

mod brackets;
mod directive;
#[cfg(test)]
mod libyaml;
mod names;
mod parse;
mod scalars;
mod scan;
mod text;
mod token;

use std::borrow::Cow;
use std::collections::HashMap;

pub(crate) use parse::{Event, Placed, parse};
use text::Mark;
pub(crate) use token::Style;
use token::{too_deep, trouble};

use super::scalar::{self, Tagged, key_of_number, truth};
use super::{DEPTH, Entry, ITEMS, KEYS, Node, Trouble, Value, with_last_of_repeated};

/// The maximum number of nodes to which the aliases of a document may add up.
const EXPANSION: usize = 1_000_000;

/// The maximum number of bytes of text to which the aliases of a document may add up.
const EXPANDED_TEXT: usize = 64 << 20;

/// Reads the single document of a text whose first line has number `line`.
pub(super) fn read<'a>(text: &'a str, line: u32, each: &mut dyn FnMut(Result<Node<'a>, Trouble>)) {
    let mut builder = Builder::default();
    let read = parse(text, line, &mut |placed| builder.take(placed));
    for trouble in builder.troubles {
        each(Err(trouble));
    }
    match read {
        Err(trouble) => each(Err(trouble)),
        Ok(rest) => {
            // `key: ` alone is a mapping; an empty document does not count as a document.
            if let Some(node) = builder.done.filter(|node| node.value != Value::Null) {
                each(Ok(node));
            }
            if let Some(mark) = rest {
                let message = "unexpected content after the end of the document";
                let hint = "put a line of --- before it, or remove it";
                each(Err(trouble(mark, message).with_hint(hint).into_note(
                    "not there",
                    "kubectl reads one document between two lines of ---",
                )));
            }
        }
    }
}

/// Returns what [`read`] yields for a text, or `None` if it has an error for which kubectl would
/// refuse it.
pub(super) fn read_whole(text: &str, line: u32) -> Option<Vec<Result<Node<'_>, Trouble>>> {
    let mut found = Vec::new();
    read(text, line, &mut |document| found.push(document));
    let is_wrong =
        |document: &Result<_, Trouble>| matches!(document, Err(trouble) if trouble.note.is_none());
    (!found.iter().any(is_wrong)).then_some(found)
}

#[derive(Default)]
struct Builder<'a> {
    stack: Vec<Frame<'a>>,
    /// The entries and items of all open mappings and lists, innermost last: each mapping and list
    /// is allocated once, when its size is known.
    entries: Vec<Entry<'a>>,
    items: Vec<Node<'a>>,
    /// The nodes that have an anchor; `None` while a node is not finished.
    anchors: HashMap<&'a str, Option<Node<'a>>>,
    expanded: usize,
    expanded_text: usize,
    done: Option<Node<'a>>,
    troubles: Vec<Trouble>,
}

struct Frame<'a> {
    at: (u32, u32),
    anchor: Option<&'a str>,
    open: Open<'a>,
}

/// A mapping or list whose own part of the builder's entries or items begins at `first`.
enum Open<'a> {
    Seq { first: usize },
    Map { first: usize, key: Option<Key<'a>>, merges: bool, merged: Vec<Merged<'a>> },
}

/// The entries of another mapping, which `<<` merges.
struct Merged<'a> {
    /// The number of entries that are written before `<<`.
    place: usize,
    entries: Vec<Entry<'a>>,
}

struct Key<'a> {
    text: Cow<'a, str>,
    at: (u32, u32),
    merge: bool,
}

impl<'a> Builder<'a> {
    fn take(&mut self, Placed { event, anchor, start, .. }: Placed<'a>) -> Result<(), Trouble> {
        let at = place(start);
        match event {
            Event::Scalar { text, style, tag } => {
                let plain = style == Style::Plain;
                let merge = text == "<<"
                    && match &tag {
                        Tagged::Not => plain,
                        Tagged::Core(tag) => tag == "merge",
                        Tagged::Other => false,
                    };
                let value = scalar::read(text, plain, &tag).map_err(|why| trouble(start, why))?;
                let block = matches!(style, Style::Literal | Style::Folded);
                let (line, column) = if block { (at.0, 0) } else { at };
                let node = Node { line, column, value };
                self.keep(anchor, &node)?;
                self.put(node, merge)
            }
            Event::Seq { .. } => self.open(start, anchor, Open::Seq { first: self.items.len() }),
            Event::Map { .. } => {
                let (first, merged) = (self.entries.len(), Vec::new());
                self.open(start, anchor, Open::Map { first, key: None, merges: false, merged })
            }
            Event::SeqEnd | Event::MapEnd => self.close(),
            Event::Alias(name) => match self.anchors.get(name) {
                Some(Some(node)) if self.merges() && !matches!(node.value, Value::Map(_)) => {
                    Err(trouble(start, "expected a mapping to merge after <<"))
                }
                Some(Some(node)) => {
                    let mut node = node.clone();
                    self.spend(&node, at)?;
                    (node.line, node.column) = at;
                    self.put(node, false)
                }
                Some(None) => Err(trouble(start, "an alias refers to the value that contains it")),
                None => Err(trouble(start, "an alias names an unknown anchor")),
            },
        }
    }

    fn wants_key(&self) -> bool {
        matches!(self.stack.last(), Some(Frame { open: Open::Map { key: None, .. }, .. }))
    }

    /// Returns whether the next node follows `<<`.
    fn merges(&self) -> bool {
        let Some(Frame { open: Open::Map { key: Some(key), .. }, .. }) = self.stack.last() else {
            return false;
        };
        key.merge
    }

    fn open(
        &mut self,
        start: Mark,
        anchor: Option<&'a str>,
        open: Open<'a>,
    ) -> Result<(), Trouble> {
        if self.stack.len() >= DEPTH {
            return Err(too_deep(start));
        }
        if self.wants_key() {
            return Err(trouble(start, "expected a text as key, found a list or mapping")
                .with_hint("a template that was not filled in? {{ … }} reads as a mapping"));
        }
        if let Some(name) = anchor {
            self.anchors.insert(name, None);
        }
        self.stack.push(Frame { at: place(start), anchor, open });
        Ok(())
    }

    fn close(&mut self) -> Result<(), Trouble> {
        let Some(Frame { at, anchor, open }) = self.stack.pop() else { return Ok(()) };
        let value = match open {
            Open::Seq { first } => Value::Seq(self.items.drain(first..).collect()),
            Open::Map { first, merges, merged, .. } => {
                let own = self.entries.drain(first..).collect();
                let mut report = |trouble| self.troubles.push(trouble);
                Value::Map(if merges {
                    with_merged(own, merged, &mut report)
                } else {
                    with_last_of_repeated(own, &mut report)
                })
            }
        };
        let node = Node { line: at.0, column: at.1, value };
        self.keep(anchor, &node)?;
        self.put(node, false)
    }

    /// Stores a node that has an anchor.
    fn keep(&mut self, anchor: Option<&'a str>, node: &Node<'a>) -> Result<(), Trouble> {
        if let Some(name) = anchor {
            self.spend(node, (node.line, node.column))?;
            self.anchors.insert(name, Some(node.clone()));
        }
        Ok(())
    }

    fn spend(&mut self, node: &Node<'_>, at: (u32, u32)) -> Result<(), Trouble> {
        self.expanded += size(node);
        self.expanded_text += text_of(node);
        let message = if self.expanded > EXPANSION {
            format!("anchors and aliases add up to more than {EXPANSION} values")
        } else if self.expanded_text > EXPANDED_TEXT {
            let most = EXPANDED_TEXT >> 20;
            format!("anchors and aliases add up to more than {most} MiB of text")
        } else {
            return Ok(());
        };
        Err(Trouble::new(at.0, at.1, message))
    }

    fn put(&mut self, node: Node<'a>, is_merge: bool) -> Result<(), Trouble> {
        match self.stack.last_mut().map(|frame| &mut frame.open) {
            None => self.done = Some(node),
            Some(Open::Seq { first }) if self.items.len() - *first >= ITEMS => {
                return Err(Trouble::endless(node.line, node.column, "items", ITEMS));
            }
            Some(Open::Map { first, merged, .. })
                if self.entries.len() - *first + merged.len() >= KEYS =>
            {
                return Err(Trouble::endless(node.line, node.column, "keys", KEYS));
            }
            Some(Open::Seq { .. }) => self.items.push(node),
            Some(Open::Map { first, key, merges, merged }) => match key.take() {
                None => {
                    let at = (node.line, node.column);
                    *key = Some(Key { text: as_key(node)?, at, merge: is_merge });
                }
                Some(key) if key.merge => {
                    *merges = true;
                    let place = self.entries.len() - *first;
                    let others = to_merge(node)?.into_iter();
                    merged.extend(others.map(|entries| Merged { place, entries }));
                }
                Some(Key { text, at, .. }) => {
                    let entry = Entry { key: text, line: at.0, column: at.1, value: node };
                    self.entries.push(entry);
                }
            },
        }
        Ok(())
    }
}

/// Returns the number of bytes of text of a value.
fn text_of(node: &Node<'_>) -> usize {
    match &node.value {
        Value::String(text) => text.len(),
        Value::Seq(items) => items.iter().map(text_of).sum(),
        Value::Map(entries) => {
            entries.iter().map(|entry| entry.key.len() + text_of(&entry.value)).sum()
        }
        _ => 0,
    }
}

/// Returns a key as text, since JSON has no other keys.
fn as_key(node: Node<'_>) -> Result<Cow<'_, str>, Trouble> {
    let (line, column) = (node.line, node.column);
    let refused = |found: String| {
        Trouble::new(line, column, format!("expected a text as key, found {found}"))
    };
    match node.value {
        Value::String(text) => Ok(text),
        Value::Bool(word) => Ok(if truth(&word) { "true".into() } else { "false".into() }),
        Value::Number(text) => key_of_number(&text)
            .map(Cow::Owned)
            .ok_or_else(|| refused(format!("the number {text}"))),
        _ => Err(refused(node.describe())),
    }
}

/// Returns the mappings that follow `<<`, the last first: an earlier mapping of a list overrides a
/// later one.
fn to_merge(node: Node<'_>) -> Result<Vec<Vec<Entry<'_>>>, Trouble> {
    let wrong = |node: &Node<'_>| {
        let message = format!("expected a mapping to merge after <<, found {}", node.describe());
        Trouble::new(node.line, node.column, message)
    };
    match node.value {
        Value::Map(entries) => Ok(vec![entries]),
        Value::Seq(items) => {
            let maps = items.into_iter().rev().map(|item| match item.value {
                Value::Map(entries) => Ok(entries),
                _ => Err(wrong(&item)),
            });
            maps.collect()
        }
        _ => Err(wrong(&node)),
    }
}

/// Returns a mapping with the merged entries. kubectl goes through it from the top, and later
/// entries replace earlier ones, be they merged or written.
fn with_merged<'a>(
    own: Vec<Entry<'a>>,
    merged: Vec<Merged<'a>>,
    report: &mut dyn FnMut(Trouble),
) -> Vec<Entry<'a>> {
    let mut entries: Vec<Entry<'a>> = Vec::new();
    let mut places: HashMap<String, (usize, bool)> = HashMap::new();
    let mut add = |entry: Entry<'a>, written: bool| {
        let next = (entries.len(), written);
        match places.get_mut(&*entry.key) {
            None => {
                places.insert(entry.key.to_string(), next);
                entries.push(entry);
            }
            Some((at, before)) => {
                if written && *before {
                    report(Trouble::repeated(&entry, entries[*at].line));
                }
                *before |= written;
                entries[*at] = entry;
            }
        }
    };
    let mut merged = merged.into_iter().peekable();
    for (place, entry) in own.into_iter().enumerate() {
        while let Some(more) = merged.next_if(|more| more.place == place) {
            more.entries.into_iter().for_each(|entry| add(entry, false));
        }
        add(entry, true);
    }
    merged.flat_map(|more| more.entries).for_each(|entry| add(entry, false));
    entries
}

fn size(node: &Node<'_>) -> usize {
    1 + match &node.value {
        Value::Seq(items) => items.iter().map(size).sum(),
        Value::Map(entries) => entries.iter().map(|entry| size(&entry.value)).sum(),
        _ => 0,
    }
}

fn place(mark: Mark) -> (u32, u32) {
    (mark.line, u32::try_from(mark.column).unwrap_or(u32::MAX).saturating_add(1))
}
