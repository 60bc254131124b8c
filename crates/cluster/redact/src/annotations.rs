//! Annotations. The values of annotations that a cloud's controllers read are described by the
//! cloud itself ([`uturn_clouds::cloud::annotation`]); for others the whole keys or their prefixes
//! are known.

use serde_json::{Map, Value};
use uturn_clouds::cloud::{ValueKind, annotation};

use crate::controllers;
use crate::names::Names;
use crate::settings;
use crate::text::{HOSTS, NAMES, redact};
use crate::words::KNOWN;

/// The size from which a number in a document may identify something: an account, a project.
const LARGE: f64 = 100_000.0;

/// Redacts annotations. Those with unknown keys are removed. The value is kept, redacted, if the
/// whole key is known.
pub(crate) fn redact_all(entries: Map<String, Value>, names: &mut Names) -> Map<String, Value> {
    let entry = |(key, value): (String, Value)| {
        if let Some((read, [before, own, after])) = annotation(&key) {
            let own = redact(own, names, NAMES);
            let value = match value {
                Value::String(text) => of_controller(&text, &read.holds, names).into(),
                other => other,
            };
            return Some((format!("{before}{own}{after}"), value));
        }
        let known = KNOWN.name_at(&key)?;
        if known.len() == key.len() {
            let value = of_program(&key, value, names);
            return Some((key, value));
        }
        // A program is recognised by the prefix of its keys.
        let is_beginning = !known.ends_with(char::is_alphanumeric);
        is_beginning.then(|| (redact(&key, names, NAMES), Value::from("")))
    };
    entries.into_iter().filter_map(entry).collect()
}

/// Redacts the value of a field that corresponds to an annotation which a cloud's controllers read,
/// or a list of such values.
pub(crate) fn standing_for(key: &str, value: Value, names: &mut Names) -> Value {
    match value {
        Value::String(text) => match annotation(key) {
            Some((read, _)) => of_controller(&text, &read.holds, names).into(),
            None => redact(&text, names, NAMES).into(),
        },
        Value::Array(items) => {
            items.into_iter().map(|item| standing_for(key, item, names)).collect()
        }
        plain => plain,
    }
}

/// Redacts a value that a cloud's controllers read.
fn of_controller(text: &str, holds: &ValueKind, names: &mut Names) -> String {
    let is_document = text.trim_start().starts_with(['[', '{']);
    match serde_json::from_str(text) {
        Ok(read) if is_document => document("", read, holds, names).to_string(),
        _ => words(text, holds.words(), names),
    }
}

/// Redacts a document. Members that are not read are renamed.
fn document(field: &str, of: Value, holds: &ValueKind, names: &mut Names) -> Value {
    let is_host = matches!(field, "host" | "hosts");
    match of {
        Value::Object(entries) => {
            let entry = |(key, value): (String, Value)| {
                let is_read = holds.fields().iter().any(|read| read.eq_ignore_ascii_case(&key));
                let value = document(&key, value, holds, names);
                let key = if is_read {
                    key
                } else {
                    redact(&key, names, if is_host { HOSTS } else { NAMES })
                };
                (key, value)
            };
            Value::Object(entries.into_iter().map(entry).collect())
        }
        Value::Array(items) => {
            items.into_iter().map(|item| document(field, item, holds, names)).collect()
        }
        Value::String(text) if is_host && !text.contains('#') => redact(&text, names, HOSTS).into(),
        Value::String(text) => words(&text, holds.words(), names).into(),
        Value::Number(number) if number.as_f64().is_none_or(|own| own.abs() >= LARGE) => 0.into(),
        plain => plain,
    }
}

/// Redacts a text in which these words are kept if they stand alone, in any case: they belong to
/// the controller's language.
fn words(text: &str, known: &[&str], names: &mut Names) -> String {
    let is_part = |letter: char| letter.is_alphanumeric() || "_-./@".contains(letter);
    let mut new = String::with_capacity(text.len());
    // Unknown text is redacted in one piece: an address may consist of several words.
    let mut other = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let end = at + rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        let word = &text[at..end];
        if known.iter().any(|own| own.eq_ignore_ascii_case(word)) {
            new.push_str(&redact(&text[other..at], names, NAMES));
            new.push_str(word);
            other = end;
        }
        let separator = text[end..].chars().next().map_or(0, char::len_utf8);
        at = end + separator;
    }
    new.push_str(&redact(&text[other..], names, NAMES));
    new
}

/// Redacts a value that another program reads.
fn of_program(key: &str, value: Value, names: &mut Names) -> Value {
    let Value::String(text) = value else { return value };
    let is_document = text.trim_start().starts_with(['[', '{']);
    match serde_json::from_str::<Value>(&text) {
        // The arguments with which a program of a node was started.
        Ok(Value::Array(words)) if words.iter().any(is_argument) => {
            Value::Array(settings::arguments(&words, names)).to_string().into()
        }
        Ok(document) if is_document => settings::document(document, names).to_string().into(),
        // Settings of a controller, and codes of findings to ignore.
        _ => controllers::setting(key, &text, names).into(),
    }
}

fn is_argument(word: &Value) -> bool {
    word.as_str().is_some_and(|text| text.starts_with("--"))
}
