//! The output of `ip -j`: lists of objects, each with its place in the text.
//!
//! Written by hand over `serde_json::value::RawValue`, because serde alone reports no line and
//! column for a field that is missing or wrong in an otherwise valid object.

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use uturn_model::{Origin, SourceName};

use crate::ParseError;

/// Whether a text is JSON rather than the tool's human-readable output.
pub(crate) fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('[')
}

/// An object and its place.
pub(crate) struct Item {
    pub(crate) origin: Origin,
    fields: Map<String, Value>,
}

/// Reads one or more JSON lists of objects, one after the other.
pub(crate) fn items(file: &SourceName, text: &str) -> Result<Vec<Item>, Vec<ParseError>> {
    let (mut items, mut errors) = (Vec::new(), Vec::new());
    let mut counter = LineCounter { file, text, at: 0, line: 1, start: 0 };
    for list in serde_json::Deserializer::from_str(text).into_iter::<Vec<&RawValue>>() {
        let list = match list {
            Ok(list) => list,
            Err(why) => {
                let (line, column) = (why.line() as u32, why.column() as u32);
                errors.push(ParseError::new(file, line, column, format!("not valid JSON: {why}")));
                break;
            }
        };
        for raw in list {
            let origin = counter.of(raw.get());
            match serde_json::from_str(raw.get()) {
                Ok(Value::Object(fields)) if fields.is_empty() => {}
                Ok(Value::Object(fields)) => items.push(Item { origin, fields }),
                _ => errors.push(ParseError::at(origin, "found a value, expected an object")),
            }
        }
    }
    if errors.is_empty() { Ok(items) } else { Err(errors) }
}

/// Counts lines up to the start of an object. Objects must be visited in order.
struct LineCounter<'a> {
    file: &'a SourceName,
    text: &'a str,
    at: usize,
    line: u32,
    start: usize,
}

impl LineCounter<'_> {
    fn of(&mut self, part: &str) -> Origin {
        let at = part.as_ptr() as usize - self.text.as_ptr() as usize;
        for (offset, _) in self.text[self.at..at].match_indices('\n') {
            (self.line, self.start) = (self.line + 1, self.at + offset + 1);
        }
        self.at = at;
        let column = (at - self.start) as u32 + 1;
        Origin::at(self.file.clone(), self.line, column)
    }
}

impl Item {
    /// An object nested in this one; errors are reported at this one's place.
    pub(crate) fn inner(&self, fields: &Map<String, Value>) -> Self {
        Self { origin: self.origin.clone(), fields: fields.clone() }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.keys().map(String::as_str)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// A string field, or a number as text.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        match self.fields.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// The objects of a list field.
    pub(crate) fn objects(&self, name: &str) -> impl Iterator<Item = Item> {
        let list = self.fields.get(name).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_object).map(|fields| self.inner(fields))
    }

    pub(crate) fn object(&self, name: &str) -> Option<Item> {
        Some(self.inner(self.fields.get(name)?.as_object()?))
    }

    /// The strings of a list field.
    pub(crate) fn words(&self, name: &str) -> impl Iterator<Item = &str> {
        let list = self.fields.get(name).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str)
    }

    /// A required field, parsed from its text.
    pub(crate) fn need<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ParseError> {
        self.maybe(name, expected, read)?
            .ok_or_else(|| self.fault(format!("found no {name:?}, expected {expected}")))
    }

    /// An optional field, parsed from its text.
    pub(crate) fn maybe<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ParseError> {
        let Some(value) = self.fields.get(name) else { return Ok(None) };
        let text = self.text(name);
        match text.as_deref().and_then(read) {
            Some(read) => Ok(Some(read)),
            None => Err(self.fault(format!("{name:?}: found {value}, expected {expected}"))),
        }
    }

    pub(crate) fn fault(&self, message: String) -> ParseError {
        ParseError::at(self.origin.clone(), message)
    }
}
