//! A result as JSON. Characters that a terminal obeys or a reader cannot see are escaped in it, which does not
//! change its values.

use std::borrow::Cow;

use serde::Serialize;
use uturn_model::visible;

/// A result of [`schema`](crate::schema) as a JSON document, indented, with a line end.
pub fn document(result: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(result).expect("results have only text as keys");
    ended(text)
}

/// The same on a single line.
pub fn line(result: &impl Serialize) -> String {
    let text = serde_json::to_string(result).expect("results have only text as keys");
    ended(text)
}

/// The same value, in which no character is hidden, with a line end.
fn ended(mut text: String) -> String {
    if let Cow::Owned(escaped) = visible::json(&text) {
        text = escaped;
    }
    text.push('\n');
    text
}
