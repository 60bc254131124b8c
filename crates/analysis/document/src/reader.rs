//! Reads YAML and JSON documents into trees with positions.
//!
//! YAML and JSON become the same [`Node`]s, so decoders and messages do not depend on the format.
//! A file is split into documents first, so that a fault in one does not hide the others.

mod fields;
mod json;
mod scalar;
mod to_json;
pub(crate) mod yaml;

use std::borrow::Cow;
use std::ops::ControlFlow;

pub use fields::Fields;
pub use json::Items;
pub use scalar::{from_base64, integer, truth};
pub use to_json::json_value;

/// The maximum nesting depth. No manifest nests as deep, and readers may recurse this far.
const DEPTH: usize = 128;

/// The maximum number of keys of a mapping and of items of a list: far more than in any manifest,
/// but few enough to reject other files early.
const KEYS: usize = 100_000;
const ITEMS: usize = 5_000_000;

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node<'a> {
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1; 0 for a block scalar, whose `line` is the first line of its content.
    pub column: u32,
    /// The value itself.
    pub value: Value<'a>,
}

/// A value as it was read. Numbers and truth values are kept as they are written.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// Null, or nothing.
    Null,
    /// The word as written: `true`, or one of the words that YAML reads as a truth value; see
    /// [`truth`].
    Bool(Cow<'a, str>),
    /// The number as written.
    Number(Cow<'a, str>),
    /// A text.
    String(Cow<'a, str>),
    /// The items of a list.
    Seq(Vec<Node<'a>>),
    /// The `items` of a List, which are not in memory but read from the text.
    Items(Box<Items<'a>>),
    /// The entries in the order in which they are written; no key is repeated.
    Map(Vec<Entry<'a>>),
}

/// A key of a mapping with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<'a> {
    /// The key. A number or a truth value is the text that kubectl makes of it.
    pub key: Cow<'a, str>,
    /// The line of the key, from 1.
    pub line: u32,
    /// The column of the key, from 1.
    pub column: u32,
    /// The value.
    pub value: Node<'a>,
}

/// The key of the entry.
impl AsRef<str> for Entry<'_> {
    fn as_ref(&self) -> &str {
        &self.key
    }
}

impl<'a> Node<'a> {
    /// Returns the value of `key` in a mapping. `None` if it is missing or null.
    pub fn get(&self, key: &str) -> Option<&Node<'a>> {
        let Value::Map(entries) = &self.value else { return None };
        let found = entries.iter().find(|entry| entry.key == key)?;
        (found.value.value != Value::Null).then_some(&found.value)
    }

    /// Returns the text of a string. `None` for other values.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// Describes the value for a message.
    pub fn describe(&self) -> String {
        match &self.value {
            Value::Null => "nothing".into(),
            Value::Bool(word) if matches!(&**word, "true" | "false") => word.to_string(),
            Value::Bool(word) => format!("{word}, which YAML reads as {}", truth(word)),
            Value::Number(text) => format!("the number {}", shorten(text)),
            Value::String(text) => format!("{:?}", shorten(text)),
            Value::Seq(_) | Value::Items(_) => "a list".into(),
            Value::Map(_) => "a mapping".into(),
        }
    }
}

/// Returns the beginning of a text that may be long.
pub fn shorten(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(60) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// The reason why a text cannot be read as a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// What was found and what was expected.
    pub message: String,
    /// A suggestion how to cure it.
    pub hint: Option<String>,
    /// If kubectl accepts the text: how kubectl reads it, and why.
    pub note: Option<(&'static str, &'static str)>,
}

impl Trouble {
    fn new(line: u32, column: u32, message: impl Into<String>) -> Self {
        Self { line, column, message: message.into(), hint: None, note: None }
    }

    /// Creates the trouble of a key that is repeated.
    fn repeated(entry: &Entry<'_>, first: u32) -> Self {
        let key = shorten(&entry.key);
        let message = format!("duplicate key {key:?}, first at line {first}");
        Self::new(entry.line, entry.column, message).into_repeated()
    }

    fn into_repeated(self) -> Self {
        self.with_hint("leave one of them out").into_note("the last", "kubectl takes that one")
    }

    /// Turns the fault into a note, which does not prevent the document from being read.
    fn into_note(mut self, taken: &'static str, because: &'static str) -> Self {
        self.note = Some((taken, because));
        self
    }

    /// Creates the trouble of a mapping or a list with too many entries.
    fn endless(line: u32, column: u32, what: &str, most: usize) -> Self {
        let message = format!("more than {most} {what}: this is not a manifest");
        Self::new(line, column, message)
    }

    fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The part of a document that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// All of it.
    All,
    /// At least these fields. The items of Lists may be read later.
    Wanted(&'static Fields),
}

/// Reads each document of a text in order, until `each` breaks.
pub fn read<'a>(
    text: &'a str,
    keep: Keep,
    each: &mut dyn FnMut(Result<Node<'a>, Trouble>) -> ControlFlow<()>,
) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut line = 1;
    let mut rest = text;
    while !rest.is_empty() {
        let end = document_end(rest);
        let (document, after) = rest.split_at(end);
        if read_one(document, line, keep, each).is_break() {
            return;
        }
        rest = after;
        if !rest.is_empty() {
            line += count_lines(document);
        }
    }
}

/// Returns the range of each document in a text.
pub fn cut(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut documents = Vec::new();
    let mut from = 0;
    while from < text.len() {
        let end = from + document_end(&text[from..]);
        documents.push(from..end);
        from = end;
    }
    documents
}

/// Returns the end of the first document: before the next line that begins with `---`, even in a
/// block scalar.
fn document_end(text: &str) -> usize {
    text.find("\n---").map_or(text.len(), |at| at + 1)
}

fn count_lines(text: &str) -> u32 {
    let lines = text.bytes().filter(|byte| *byte == b'\n').count();
    u32::try_from(lines).unwrap_or(u32::MAX)
}

fn read_one<'a>(
    text: &'a str,
    line: u32,
    keep: Keep,
    each: &mut dyn FnMut(Result<Node<'a>, Trouble>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let (content, skipped) = without_start(text);
    match looks_like(content) {
        // The line of dashes has other content.
        _ if skipped == 0 && text.starts_with("---") => read_yaml(text, line, each),
        Look::Json => {
            let checked = json::check(content, line + skipped);
            // `{"a": b}` is YAML and not JSON.
            if checked.troubles.iter().any(|trouble| trouble.note.is_none())
                && content.len() < 1 << 20
                && let Some(flow) = yaml::read_whole(text, line)
            {
                return flow.into_iter().try_for_each(each);
            }
            json::read(content, line + skipped, &checked, keep, &mut |node| each(Ok(node)))?;
            checked.troubles.into_iter().try_for_each(|trouble| each(Err(trouble)))
        }
        Look::Yaml | Look::Nothing => read_yaml(text, line, each),
        Look::Neither => {
            let blank = content.len() - content.trim_start().len();
            let line = line + skipped + count_lines(&content[..blank]);
            each(Err(Trouble::new(
                line,
                1,
                "expected a manifest in YAML or JSON, found plain text",
            )))
        }
    }
}

fn read_yaml<'a>(
    text: &'a str,
    line: u32,
    each: &mut dyn FnMut(Result<Node<'a>, Trouble>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut flow = ControlFlow::Continue(());
    yaml::read(text, line, &mut |document| {
        if flow.is_continue() {
            flow = each(document);
        }
    });
    flow
}

/// Removes a leading `---` line that has no other content than a comment.
fn without_start(text: &str) -> (&str, u32) {
    let Some(rest) = text.strip_prefix("---") else { return (text, 0) };
    let (first, after) = rest.split_once('\n').unwrap_or((rest, ""));
    let first = first.trim();
    if first.is_empty() || first.starts_with('#') { (after, 1) } else { (text, 0) }
}

enum Look {
    Json,
    Yaml,
    Nothing,
    Neither,
}

/// Guesses the format of a document from its first significant line.
fn looks_like(text: &str) -> Look {
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        match rest.as_bytes().first() {
            None => return Look::Nothing,
            Some(b'#') => {}
            Some(b'%') => return Look::Yaml,
            Some(_) => break,
        }
        rest = rest.split_once('\n').map_or("", |(_, after)| after);
    }
    let blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let second = rest.as_bytes().iter().skip(1).find(|byte| !blank(byte)).copied();
    match (rest.as_bytes()[0], second) {
        (b'{', None | Some(b'"' | b'}')) => Look::Json,
        (b'[', None | Some(b'{' | b'[' | b']')) => Look::Json,
        // This check is cheap; reading megabytes as one scalar is not.
        _ => match rest.bytes().take(1 << 16).any(|byte| matches!(byte, b':' | b'\n')) {
            true => Look::Yaml,
            false if rest.len() > 1 << 16 => Look::Neither,
            false => Look::Yaml,
        },
    }
}

/// Returns for each repeated key of a mapping the index of its first occurrence and of the
/// repetition.
fn repeated<K: AsRef<str>>(keys: &[K]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    if keys.len() <= 12 {
        for (later, key) in keys.iter().enumerate().skip(1) {
            let same = |known: &K| known.as_ref() == key.as_ref();
            if let Some(first) = keys[..later].iter().position(same) {
                found.push((first, later));
            }
        }
        return found;
    }
    // Programs write keys in order.
    if keys.is_sorted_by(|one, next| one.as_ref() < next.as_ref()) {
        return found;
    }
    let mut seen = std::collections::HashMap::with_capacity(keys.len());
    for (at, key) in keys.iter().enumerate() {
        match seen.entry(key.as_ref()) {
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(at);
            }
            std::collections::hash_map::Entry::Occupied(place) => found.push((*place.get(), at)),
        }
    }
    found
}

/// Reports repeated keys and keeps the last of each.
fn with_last_of_repeated<'a>(
    mut entries: Vec<Entry<'a>>,
    report: &mut dyn FnMut(Trouble),
) -> Vec<Entry<'a>> {
    let again = repeated(&entries);
    if again.is_empty() {
        return entries;
    }
    for (first, later) in &again {
        report(Trouble::repeated(&entries[*later], entries[*first].line));
    }
    let mut dropped = std::collections::HashSet::new();
    let mut last: std::collections::HashMap<usize, usize> = std::collections::HashMap::new();
    for (first, later) in again {
        dropped.insert(last.insert(first, later).unwrap_or(first));
    }
    let mut at = 0;
    entries.retain(|_| {
        at += 1;
        !dropped.contains(&(at - 1))
    });
    entries
}
