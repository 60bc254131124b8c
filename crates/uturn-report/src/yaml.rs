//! A result as YAML: the tree that [`json`](crate::json) writes, written otherwise.

use serde::Serialize;
use serde_json::Value;

/// A result of [`schema`](crate::schema), or any other value, as a YAML document.
pub fn document(result: &impl Serialize) -> String {
    let value = serde_json::to_value(result).expect("results have only text as keys");
    let mut text = String::new();
    match &value {
        Value::Object(_) | Value::Array(_) => block(&mut text, &value, 0),
        scalar => text.push_str(&inline(scalar)),
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

fn block(text: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (i, (key, value)) in fields.iter().enumerate() {
                if i > 0 {
                    indent(text, depth);
                }
                text.push_str(&quoted(key));
                text.push(':');
                below(text, value, depth + 1);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    indent(text, depth);
                }
                text.push_str("- ");
                match item {
                    Value::Object(_) | Value::Array(_) => block(text, item, depth + 1),
                    scalar => {
                        text.push_str(&inline(scalar));
                        text.push('\n');
                    }
                }
            }
        }
        empty => {
            text.push_str(&inline(empty));
            text.push('\n');
        }
    }
}

fn below(text: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            text.push('\n');
            indent(text, depth);
            block(text, value, depth);
        }
        Value::Array(items) if !items.is_empty() => {
            text.push('\n');
            indent(text, depth);
            block(text, value, depth);
        }
        scalar => {
            text.push(' ');
            text.push_str(&inline(scalar));
            text.push('\n');
        }
    }
}

fn indent(text: &mut String, depth: usize) {
    text.push_str(&"  ".repeat(depth));
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        // Numbers, booleans, null, and empty collections are written alike in both.
        other => other.to_string(),
    }
}

/// As JSON writes it, which YAML reads too; bare only where no reader could take it for
/// anything but text.
fn quoted(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'/' | b'.');
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let bare = text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic())
        && text.bytes().all(plain)
        && !words.iter().any(|word| word.eq_ignore_ascii_case(text));
    if bare { text.to_owned() } else { Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nests() {
        let value = json!({"a": [{"b": 1, "c": []}, "x: y"], "d": {"e": null}, "f": "no", "g": {}});
        assert_eq!(
            document(&value),
            "a:\n  - b: 1\n    c: []\n  - \"x: y\"\nd:\n  e: null\nf: \"no\"\ng: {}\n"
        );
    }
}
