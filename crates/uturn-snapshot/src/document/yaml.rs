//! YAML: events of the parser become a tree, with anchors expanded and bounds kept.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};

use super::{DEPTH, Entry, ITEMS, KEYS, Node, Trouble, Value, scalar, without_repeated};

/// How many nodes the aliases of a document may add up to.
const EXPANSION: usize = 1_000_000;

/// Reads the documents of a text whose first line is number `line`.
pub(super) fn read<'a>(text: &'a str, line: u32, each: &mut dyn FnMut(Result<Node<'a>, Trouble>)) {
    let mut builder = Builder { line, ..Builder::default() };
    let mut parser = Parser::<StrInput<'a>>::new_from_str(text);
    while let Some(next) = parser.next_event() {
        let result = match next {
            Ok((Event::DocumentStart(_), _)) => {
                builder.stack.clear();
                builder.anchors.clear();
                builder.done = None;
                Ok(())
            }
            Ok((Event::DocumentEnd, _)) => {
                if let Some(node) = builder.done.take() {
                    for trouble in builder.troubles.drain(..) {
                        each(Err(trouble));
                    }
                    // `key: ` alone is a mapping; a document of nothing is none.
                    if node.value != Value::Null {
                        each(Ok(node));
                    }
                }
                Ok(())
            }
            Ok((Event::StreamEnd, _)) => return,
            Ok((event, span)) => builder.take(event, span),
            Err(error) => Err(explain(&error, text, line)),
        };
        if let Err(trouble) = result {
            for trouble in builder.troubles.drain(..) {
                each(Err(trouble));
            }
            each(Err(trouble));
            return;
        }
    }
}

/// The documents of a text, if nothing is wrong with any of them.
pub(super) fn read_whole(text: &str, line: u32) -> Option<Vec<Node<'_>>> {
    let mut nodes = Some(Vec::new());
    read(text, line, &mut |one| match one {
        Ok(node) => nodes.iter_mut().for_each(|nodes| nodes.push(node.clone())),
        Err(_) => nodes = None,
    });
    nodes
}

#[derive(Default)]
struct Builder<'a> {
    line: u32,
    stack: Vec<Frame<'a>>,
    /// Finished nodes that have an anchor; nothing while one is not finished.
    anchors: HashMap<usize, Option<Node<'a>>>,
    expanded: usize,
    done: Option<Node<'a>>,
    troubles: Vec<Trouble>,
}

struct Frame<'a> {
    at: (u32, u32),
    anchor: usize,
    open: Open<'a>,
}

enum Open<'a> {
    Seq(Vec<Node<'a>>),
    Map { entries: Vec<Entry<'a>>, key: Option<Key<'a>>, merged: Vec<Node<'a>> },
}

struct Key<'a> {
    text: Cow<'a, str>,
    at: (u32, u32),
    merge: bool,
}

impl<'a> Builder<'a> {
    fn position(&self, mark: Marker) -> (u32, u32) {
        position(mark, self.line)
    }

    fn take(&mut self, event: Event<'a>, span: Span) -> Result<(), Trouble> {
        let at = self.position(span.start);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain;
                let merge = plain && text == "<<";
                let is_key = self.wants_key();
                let block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                // The parser names the first line that is not blank.
                let blank = text.bytes().take_while(|byte| *byte == b'\n').count();
                let first = at.0.saturating_sub(u32::try_from(blank).unwrap_or(u32::MAX)).max(1);
                let value = match tag.as_deref() {
                    Some(tag) if is_core(tag, "str") => Value::String(text),
                    _ if plain && !is_key => scalar::plain(text),
                    _ => Value::String(text),
                };
                let (line, column) = if block { (first, 0) } else { at };
                let node = Node { line, column, value };
                self.keep(anchor, &node)?;
                self.put(node, merge)
            }
            Event::SequenceStart(anchor, _) => self.open(at, anchor, Open::Seq(Vec::new())),
            Event::MappingStart(anchor, _) => {
                let merged = Vec::new();
                self.open(at, anchor, Open::Map { entries: Vec::new(), key: None, merged })
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(id) => match self.anchors.get(&id) {
                Some(Some(node)) => {
                    let mut node = node.clone();
                    self.spend(&node, at)?;
                    (node.line, node.column) = at;
                    self.put(node, false)
                }
                _ => Err(Trouble::new(at.0, at.1, "an alias refers to what it stands in")),
            },
            _ => Ok(()),
        }
    }

    fn wants_key(&self) -> bool {
        matches!(self.stack.last(), Some(Frame { open: Open::Map { key: None, .. }, .. }))
    }

    fn open(&mut self, at: (u32, u32), anchor: usize, open: Open<'a>) -> Result<(), Trouble> {
        if self.stack.len() >= DEPTH {
            let message = format!("nested more than {DEPTH} levels deep");
            return Err(Trouble::new(at.0, at.1, message));
        }
        if self.wants_key() {
            return Err(Trouble::new(
                at.0,
                at.1,
                "expected a text as key, found a list or mapping",
            )
            .with_hint("a template that was not filled in? {{ … }} reads as a mapping"));
        }
        if anchor > 0 {
            self.anchors.insert(anchor, None);
        }
        self.stack.push(Frame { at, anchor, open });
        Ok(())
    }

    fn close(&mut self) -> Result<(), Trouble> {
        let Some(Frame { at, anchor, open }) = self.stack.pop() else { return Ok(()) };
        let value = match open {
            Open::Seq(items) => Value::Seq(items),
            Open::Map { entries, merged, .. } => {
                let mut entries =
                    without_repeated(entries, &mut |trouble| self.troubles.push(trouble));
                merge(&mut entries, merged);
                Value::Map(entries)
            }
        };
        let node = Node { line: at.0, column: at.1, value };
        self.keep(anchor, &node)?;
        self.put(node, false)
    }

    /// Remembers a node that has an anchor.
    fn keep(&mut self, anchor: usize, node: &Node<'a>) -> Result<(), Trouble> {
        if anchor > 0 {
            self.spend(node, (node.line, node.column))?;
            self.anchors.insert(anchor, Some(node.clone()));
        }
        Ok(())
    }

    fn spend(&mut self, node: &Node<'_>, at: (u32, u32)) -> Result<(), Trouble> {
        self.expanded += size(node);
        if self.expanded <= EXPANSION {
            return Ok(());
        }
        let message = format!("anchors and aliases add up to more than {EXPANSION} values");
        Err(Trouble::new(at.0, at.1, message))
    }

    fn put(&mut self, node: Node<'a>, is_merge: bool) -> Result<(), Trouble> {
        match self.stack.last_mut().map(|frame| &mut frame.open) {
            None => self.done = Some(node),
            Some(Open::Seq(items)) if items.len() >= ITEMS => {
                return Err(Trouble::endless(node.line, node.column, "items", ITEMS));
            }
            Some(Open::Map { entries, .. }) if entries.len() >= KEYS => {
                return Err(Trouble::endless(node.line, node.column, "keys", KEYS));
            }
            Some(Open::Seq(items)) => items.push(node),
            Some(Open::Map { entries, key, merged }) => match key.take() {
                None => {
                    let at = (node.line, node.column);
                    let (Value::String(text) | Value::Number(text)) = node.value else {
                        let message = format!("expected a text as key, found {}", node.describe());
                        return Err(Trouble::new(at.0, at.1, message));
                    };
                    *key = Some(Key { text, at, merge: is_merge });
                }
                Some(key) if key.merge => match node.value {
                    Value::Map(_) => merged.push(node),
                    Value::Seq(items)
                        if items.iter().all(|one| matches!(one.value, Value::Map(_))) =>
                    {
                        merged.extend(items);
                    }
                    _ => {
                        let message = format!(
                            "expected a mapping to merge after <<, found {}",
                            node.describe()
                        );
                        return Err(Trouble::new(node.line, node.column, message));
                    }
                },
                Some(Key { text, at, .. }) => {
                    entries.push(Entry { key: text, line: at.0, column: at.1, value: node });
                }
            },
        }
        Ok(())
    }
}

/// Adds what `<<` names and the mapping does not say itself; the first that names a key wins.
fn merge<'a>(entries: &mut Vec<Entry<'a>>, merged: Vec<Node<'a>>) {
    if merged.is_empty() {
        return;
    }
    let mut known: HashSet<String> = entries.iter().map(|entry| entry.key.to_string()).collect();
    for node in merged {
        let Value::Map(more) = node.value else { continue };
        entries.extend(more.into_iter().filter(|entry| known.insert(entry.key.to_string())));
    }
}

fn size(node: &Node<'_>) -> usize {
    1 + match &node.value {
        Value::Seq(items) => items.iter().map(size).sum(),
        Value::Map(entries) => entries.iter().map(|entry| size(&entry.value)).sum(),
        _ => 0,
    }
}

fn is_core(tag: &Tag, suffix: &str) -> bool {
    tag.is_yaml_core_schema() && tag.suffix == suffix
}

fn position(mark: Marker, first: u32) -> (u32, u32) {
    let line = u32::try_from(mark.line()).unwrap_or(u32::MAX);
    let column = u32::try_from(mark.col()).unwrap_or(u32::MAX);
    (line.saturating_add(first).saturating_sub(1), column.saturating_add(1))
}

/// Says in plain words what the parser did not like.
fn explain(error: &ScanError, text: &str, first: u32) -> Trouble {
    let (line, column) = position(*error.marker(), first);
    if let Some((line, column)) = blamed_tab(error, text, first) {
        return Trouble::new(line, column, "tab used for indentation: YAML wants spaces");
    }
    let cut = error.marker().line() > text.lines().count()
        || text.lines().nth(error.marker().line().saturating_sub(1)).is_some_and(|last| {
            text.trim_end().ends_with(last.trim_end())
                && error.marker().line() >= text.trim_end().lines().count()
        });
    let info = error.info();
    let (message, hint): (String, Option<&str>) = if info.contains("unexpected end of stream") {
        ("the file ends within a quoted text".into(), Some("is the file complete?"))
    } else if info.contains("indentation in quoted scalar") {
        let message = "a quoted text goes on in the next line, which is not indented";
        (message.into(), Some("is the quote at its end missing?"))
    } else if info.contains("mapping values are not allowed") {
        let message = "a ':' where no value can begin";
        (message.into(), Some("is the line indented too far, or does its text need quotes?"))
    } else if info.contains("simple key expect") || info.contains("expected ':'") {
        ("expected KEY: VALUE".into(), cut.then_some("the file ends here: is it complete?"))
    } else if info.contains("unknown anchor") {
        ("an alias names an anchor that is not there".into(), None)
    } else if info.contains("recursion limit") {
        (format!("nested more than {DEPTH} levels deep"), None)
    } else if info.contains("flow sequence") || info.contains("flow mapping") {
        let what = if info.contains("sequence") { "',' or ']'" } else { "',' or '}'" };
        (format!("expected {what}"), cut.then_some("the file ends here: is it complete?"))
    } else if info.contains("did not find expected key") || info.contains("'-' indicator") {
        ("this line does not fit the indentation of what stands above it".into(), None)
    } else {
        (format!("not YAML: {info}"), cut.then_some("the file ends here: is it complete?"))
    };
    Trouble { line, column, message, hint: hint.map(Into::into) }
}

/// The tab in the indentation of the line where the parser stopped, or of one beside it.
fn blamed_tab(error: &ScanError, text: &str, first: u32) -> Option<(u32, u32)> {
    let stopped = error.marker().line();
    let from = stopped.saturating_sub(1).max(1);
    // Within a text that goes on, the line after is the one with the tab.
    let to = stopped + usize::from(error.info().contains("tab"));
    text.lines().enumerate().skip(from - 1).take(to - from + 1).find_map(|(at, line)| {
        let indentation = &line[..line.len() - line.trim_start().len()];
        let tab = indentation.find('\t')?;
        Some((first + u32::try_from(at).ok()?, u32::try_from(tab).ok()? + 1))
    })
}
