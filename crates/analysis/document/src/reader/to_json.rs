//! Converts values to JSON.

use std::ops::ControlFlow;

use serde_json::{Number, Value as Json};

use super::{Keep, Node, Value, integer, read, truth};

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
            Value::Number(text) => number(text),
            Value::String(text) => (&**text).into(),
            Value::Seq(items) => items.iter().map(Self::to_json).collect(),
            Value::Items(_) => unreachable!("all is kept"),
            Value::Map(entries) => {
                entries.iter().map(|entry| (entry.key.to_string(), entry.value.to_json())).collect()
            }
        }
    }
}

/// Converts a number. A number that JSON cannot write becomes a text.
fn number(text: &str) -> Json {
    let whole = integer(text).map(Json::from);
    let real = || text.parse().ok().and_then(Number::from_f64).map(Json::Number);
    whole.or_else(real).unwrap_or_else(|| text.into())
}
