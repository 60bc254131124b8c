//! Formats a result as JSON. Characters that control a terminal or are invisible are escaped, which
//! does not change the values.

use std::borrow::Cow;

use serde::Serialize;
use uturn_model::visible;

/// Formats a result of [`schema`](crate::schema) as a JSON document, indented, with a line end.
pub fn document(result: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(result).expect("results have only text as keys");
    ended(text)
}

/// Formats a result on a single line.
pub fn line(result: &impl Serialize) -> String {
    let text = serde_json::to_string(result).expect("results have only text as keys");
    ended(text)
}

/// Escapes hidden characters, which does not change the value, and adds a line end.
fn ended(mut text: String) -> String {
    if let Cow::Owned(escaped) = visible::json(&text) {
        text = escaped;
    }
    text.push('\n');
    text
}
