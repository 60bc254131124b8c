//! The JSON tree, written as YAML.

use serde_json::Value;
use uturn_snapshot::yaml::{self, Style};

/// A value as a YAML document.
pub fn document(value: &Value) -> String {
    yaml::document(value, Style::REPORT)
}
