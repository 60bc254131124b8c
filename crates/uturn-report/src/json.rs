//! A result as JSON.

use serde::Serialize;

/// A result of [`schema`](crate::schema) as a JSON document, indented, with a line end.
pub fn document(result: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(result).expect("results have only text as keys");
    text.push('\n');
    text
}

/// The same on a single line.
pub fn line(result: &impl Serialize) -> String {
    let mut text = serde_json::to_string(result).expect("results have only text as keys");
    text.push('\n');
    text
}
