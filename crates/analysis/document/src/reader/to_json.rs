//! Converts values to JSON.

use std::ops::ControlFlow;

use serde_json::Value as Json;

use super::scalar::json_number;
use super::{Keep, Node, Value, read, truth};

/// Returns the first document of a text as JSON, whatever it is. Returns `None` if it cannot be
/// read.
pub fn json_value(text: &str) -> Option<Json> {
    let mut found = None;
    read(text, Keep::All, &mut |document| match document {
        Ok(root) => {
            found = Some(root.to_json());
            ControlFlow::Break(())
        }
        Err(_) => ControlFlow::Continue(()),
    });
    found
}

impl Node<'_> {
    /// Converts the value to JSON. It has to be read with [`Keep::All`].
    pub fn to_json(&self) -> Json {
        match &self.value {
            Value::Null => Json::Null,
            Value::Bool(word) => truth(word).into(),
            // A number that JSON cannot write becomes a text.
            Value::Number(text) => json_number(text).map_or_else(|| (&**text).into(), Json::Number),
            Value::String(text) => (&**text).into(),
            Value::Seq(items) => items.iter().map(Self::to_json).collect(),
            Value::Items(_) => unreachable!("all is kept"),
            Value::Map(entries) => {
                entries.iter().map(|entry| (entry.key.to_string(), entry.value.to_json())).collect()
            }
        }
    }
}
