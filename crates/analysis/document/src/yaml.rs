//! Writes values as YAML: the project's only emitter.
//!
//! It writes the [`Tree`](crate::edit::Tree)s of edited manifests and the JSON values that
//! reports print with `-o yaml`. Text is quoted unless every reader takes it for text, so what
//! is written reads back as the same value under YAML 1.1 and 1.2. Values that are to be read as
//! JSON as well (load balancer documents, generated clusters) are written by `serde_json`.

use std::borrow::Cow;

use uturn_model::visible::is_hidden;

/// A value that can be written.
pub trait YamlValue: Sized {
    /// Returns the kind of the value, and its parts.
    fn shape(&self) -> Shape<'_, Self>;
}

/// The parts of a value.
#[derive(Debug)]
pub enum Shape<'v, V> {
    /// A text.
    Text(&'v str),
    /// A number, a truth value or null, written as it is.
    Bare(Cow<'v, str>),
    /// The items of a list.
    List(&'v [V]),
    /// The entries of a mapping, in order.
    Map(Vec<(&'v str, &'v V)>),
}

/// The layout of block lists and texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// The number of columns by which the items of a list are indented from their key.
    list_indent: usize,
    /// Whether text of several lines is written as a literal block.
    literal_blocks: bool,
}

impl Style {
    /// The layout in which `kubectl` prints manifests.
    pub const MANIFEST: Self = Self { list_indent: 0, literal_blocks: true };
    /// The layout of uturn's reports: each text on one line, lists indented from their keys.
    pub const REPORT: Self = Self { list_indent: 2, literal_blocks: false };
}

/// Writes a value as a whole document.
pub fn document(value: &impl YamlValue, style: Style) -> String {
    let mut out = String::new();
    after_dash(&mut out, value, 0, style);
    out
}

/// Returns `key: value` as an entry of a block mapping at this indent, with the line break.
pub(crate) fn entry(key: &str, value: &impl YamlValue, indent: usize, style: Style) -> String {
    let mut out = " ".repeat(indent);
    after_key(&mut out, key, value, indent, style);
    out
}

/// Returns `- value` as an item of a block list at this indent, with the line break.
pub(crate) fn item(value: &impl YamlValue, indent: usize, style: Style) -> String {
    let mut out = " ".repeat(indent);
    out.push_str("- ");
    after_dash(&mut out, value, indent + 2, style);
    out
}

/// Returns a value on one line. With `json`, every text is quoted, so that the line is also JSON.
pub(crate) fn flow(value: &impl YamlValue, json: bool) -> String {
    let mut out = String::new();
    put_flow(&mut out, value, json);
    out
}

/// Returns a text on one line, quoted if it could be read as another value, or with `json`.
pub(crate) fn word(text: &str, json: bool) -> String {
    let mut out = String::new();
    put_word(&mut out, text, json);
    out
}

/// Returns whether a text can be written as a literal block (`|`).
pub(crate) fn is_lines(text: &str) -> bool {
    text.ends_with('\n')
        && !text.ends_with("\n\n")
        && text.trim() != ""
        && !text.starts_with([' ', '\n', '\t'])
        && text.chars().all(|c| c == '\n' || !needs_escape(c))
}

/// Returns the lines of a literal block, each indented unless it is empty.
pub(crate) fn lines(text: &str, indent: usize) -> String {
    let mut out = String::new();
    put_lines(&mut out, text, indent);
    out
}

fn put_lines(out: &mut String, text: &str, indent: usize) {
    for line in text.lines() {
        if !line.is_empty() {
            pad(out, indent);
            out.push_str(line);
        }
        out.push('\n');
    }
}

/// Writes a value where a block at `indent` may begin: at the start of a document, or after a dash.
fn after_dash<V: YamlValue>(out: &mut String, value: &V, indent: usize, style: Style) {
    match value.shape() {
        Shape::Map(entries) if !entries.is_empty() => map(out, &entries, indent, style),
        Shape::List(items) if !items.is_empty() => list(out, items, indent, style),
        _ => {
            put_flow(out, value, false);
            out.push('\n');
        }
    }
}

/// Writes `key:` and its value, with the line break.
fn after_key<V: YamlValue>(out: &mut String, key: &str, value: &V, indent: usize, style: Style) {
    put_word(out, key, false);
    out.push(':');
    match value.shape() {
        Shape::Map(entries) if !entries.is_empty() => {
            out.push('\n');
            pad(out, indent + 2);
            map(out, &entries, indent + 2, style);
        }
        Shape::List(items) if !items.is_empty() => {
            out.push('\n');
            pad(out, indent + style.list_indent);
            list(out, items, indent + style.list_indent, style);
        }
        Shape::Text(text) if style.literal_blocks && is_lines(text) => {
            out.push_str(" |\n");
            put_lines(out, text, indent + 2);
        }
        _ => {
            out.push(' ');
            put_flow(out, value, false);
            out.push('\n');
        }
    }
}

fn map<V: YamlValue>(out: &mut String, entries: &[(&str, &V)], indent: usize, style: Style) {
    for (at, (key, value)) in entries.iter().enumerate() {
        if at > 0 {
            pad(out, indent);
        }
        after_key(out, key, *value, indent, style);
    }
}

fn list<V: YamlValue>(out: &mut String, items: &[V], indent: usize, style: Style) {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            pad(out, indent);
        }
        out.push_str("- ");
        after_dash(out, item, indent + 2, style);
    }
}

fn put_flow<V: YamlValue>(out: &mut String, value: &V, json: bool) {
    match value.shape() {
        Shape::Text(text) => put_word(out, text, json),
        Shape::Bare(text) => out.push_str(&text),
        Shape::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                put_flow(out, item, json);
            }
            out.push(']');
        }
        Shape::Map(entries) => {
            out.push('{');
            for (at, (key, value)) in entries.into_iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                put_word(out, key, json);
                out.push_str(": ");
                put_flow(out, value, json);
            }
            out.push('}');
        }
    }
}

fn put_word(out: &mut String, text: &str, json: bool) {
    if !json && is_plain(text) {
        out.push_str(text);
        return;
    }
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if needs_escape(c) && json => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c if needs_escape(c) => out.push_str(&match u32::from(c) {
                number @ 0x1_0000.. => format!("\\U{number:08x}"),
                number => format!("\\u{number:04x}"),
            }),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Returns whether every reader takes a text without quotes for text.
fn is_plain(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'/' | b'.');
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic())
        && text.bytes().all(plain)
        && !words.iter().any(|word| word.eq_ignore_ascii_case(text))
}

/// Returns whether a character must be escaped: YAML does not allow it or takes it for a line
/// break, a terminal obeys it, or a reader cannot see it.
fn needs_escape(c: char) -> bool {
    is_hidden(c)
}

fn pad(out: &mut String, columns: usize) {
    out.extend(std::iter::repeat_n(' ', columns));
}

impl YamlValue for serde_json::Value {
    fn shape(&self) -> Shape<'_, Self> {
        match self {
            Self::Null => Shape::Bare("null".into()),
            Self::Bool(yes) => Shape::Bare(if *yes { "true" } else { "false" }.into()),
            Self::Number(number) => Shape::Bare(number.to_string().into()),
            Self::String(text) => Shape::Text(text),
            Self::Array(items) => Shape::List(items),
            Self::Object(fields) => {
                Shape::Map(fields.iter().map(|(key, value)| (key.as_str(), value)).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::reader::{self as reader, Keep, Node};

    #[test]
    fn the_styles_differ_in_lists_and_lines() {
        let value = json!({
            "a": [{"b": 1, "c": []}, "x: y", [2, [3]]],
            "d": {"e": null},
            "f": "no",
            "g": {},
            "h": "one\ntwo\n",
        });
        assert_eq!(
            document(&value, Style::REPORT),
            "a:\n  - b: 1\n    c: []\n  - \"x: y\"\n  - - 2\n    - - 3\nd:\n  e: null\nf: \"no\"\n\
             g: {}\nh: \"one\\ntwo\\n\"\n"
        );
        assert_eq!(
            document(&value, Style::MANIFEST),
            "a:\n- b: 1\n  c: []\n- \"x: y\"\n- - 2\n  - - 3\nd:\n  e: null\nf: \"no\"\ng: {}\n\
             h: |\n  one\n  two\n"
        );
        assert_eq!(document(&json!("on"), Style::REPORT), "\"on\"\n");
        assert_eq!(flow(&value["a"], true), "[{\"b\": 1, \"c\": []}, \"x: y\", [2, [3]]]");
    }

    fn read_back(node: &Node<'_>) -> Value {
        match &node.value {
            reader::Value::Null => Value::Null,
            reader::Value::Bool(word) => reader::truth(word).into(),
            reader::Value::Number(text) => text.parse::<i64>().unwrap().into(),
            reader::Value::String(text) => (&**text).into(),
            reader::Value::Seq(items) => items.iter().map(read_back).collect(),
            reader::Value::Items(_) => unreachable!("all is kept"),
            reader::Value::Map(entries) => entries
                .iter()
                .map(|entry| (entry.key.to_string(), read_back(&entry.value)))
                .collect(),
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
            any::<String>(),
            "[ \n\ta-z:#'\"\\\\-]{0,12}",
            prop::sample::select(vec!["yes", "0x1f", "1e3", "~", "2001-01-01", "- a", "v1", ""])
                .prop_map(str::to_owned),
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            text.clone().prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 24, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((text.clone(), inner), 0..4)
                    .prop_map(|entries| entries.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_the_same(value in any_value()) {
            // A document that is null does not count as a document.
            let value = json!({"value": value});
            for style in [Style::MANIFEST, Style::REPORT] {
                let text = document(&value, style);
                let mut read = Vec::new();
                reader::read(&text, Keep::All, &mut |document| {
                    read.push(document.map(|node| read_back(&node)));
                    ControlFlow::Continue(())
                });
                prop_assert!(read.len() == 1, "{} documents in {}", read.len(), text);
                let read = read.remove(0).ok();
                prop_assert_eq!(read.as_ref(), Some(&value), "{}", text);
            }
        }
    }
}
