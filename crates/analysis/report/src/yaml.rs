//! Formats a result as YAML, with the same content as [`json`](crate::json).

use serde::Serialize;
use uturn_document::yaml::{self, Style};

/// Formats a result of [`schema`](crate::schema), or any other value, as a YAML document.
pub fn document(result: &impl Serialize) -> String {
    let value = serde_json::to_value(result).expect("results have only text as keys");
    yaml::document(&value, Style::REPORT)
}
