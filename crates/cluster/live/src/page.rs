//! A page of a list.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::form::{Form, Kept, keep};
use crate::server::said;

/// The contents of a page.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) objects: Vec<Kept>,
    /// The token for the next page. Empty if this is the last.
    pub(crate) next: String,
    pub(crate) resource_version: Option<String>,
    /// The number of objects on the following pages, if the server reports it.
    pub(crate) left: Option<usize>,
}

#[derive(Deserialize)]
struct Page {
    kind: String,
    #[serde(default)]
    metadata: OfMap<PageMeta>,
    /// Items may be null, but not left out: an answer without them is no list.
    #[serde(deserialize_with = "Option::deserialize")]
    items: Option<Vec<Value>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PageMeta {
    r#continue: String,
    resource_version: Option<String>,
    remaining_item_count: Option<usize>,
}

/// A value that is written as a map. serde would read a structure from a list of its fields too, so
/// that `[]` would be a page without objects.
#[derive(Default)]
struct OfMap<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OfMap<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(MapVisitor(PhantomData))
    }
}

struct MapVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for MapVisitor<T> {
    type Value = OfMap<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(fields)).map(OfMap)
    }
}

/// Reads a page.
///
/// # Errors
/// If the text is no list.
pub(crate) fn read(text: &str, api_version: &str, kind: &str, form: Form) -> Result<Read, String> {
    let no_list =
        |why: &str| format!("the server answered with {}, which is not a list{why}", said(text));
    let page = serde_json::from_str::<OfMap<Page>>(text);
    let OfMap(page) = page.map_err(|error| no_list(&format!(": {error}")))?;
    if !page.kind.ends_with("List") {
        return Err(no_list(""));
    }
    let items = page.items.unwrap_or_default().into_iter();
    let objects = items.map(|item| keep(item, api_version, kind, form)).collect();
    let PageMeta { r#continue: next, resource_version, remaining_item_count: left } =
        page.metadata.0;
    Ok(Read { objects, next, resource_version, left })
}

/// Returns the token for the next page, if it comes before the items. Returns `None` if nothing
/// about it does: it is then known once the page is read.
pub(crate) fn next(text: &str) -> Option<String> {
    let mut found = None;
    // This ends with an error at the first item, so that the items are not read.
    let _ = serde_json::Deserializer::from_str(text).deserialize_map(BeforeItems(&mut found));
    found
}

struct BeforeItems<'f>(&'f mut Option<String>);

impl<'de> Visitor<'de> for BeforeItems<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(field) = fields.next_key::<String>()? {
            match &*field {
                "metadata" => {
                    let OfMap(found) = fields.next_value::<OfMap<PageMeta>>()?;
                    *self.0 = Some(found.r#continue);
                }
                "items" => break,
                _ => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_known_before_the_items_are_read() {
        let first = r#"{"kind":"PodList","metadata":{"continue":"t","resourceVersion":"7"},"items":[broken"#;
        assert_eq!(next(first).as_deref(), Some("t"));
        let last = r#"{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[]}"#;
        assert_eq!(next(last).as_deref(), Some(""));
        // For kinds that the API server does not know itself, fields are sorted by name.
        let custom =
            r#"{"items":[{"metadata":{"name":"a"}}],"kind":"PodList","metadata":{"continue":"t"}}"#;
        assert_eq!(next(custom), None);
        let read = read(custom, "v1", "Pod", Form::Compact).unwrap();
        assert_eq!((read.objects.len(), &*read.next), (1, "t"));
        assert_eq!(next("no list"), None);
        assert_eq!(next(r#"{"metadata":[]}"#), None);
    }

    #[test]
    fn what_is_no_list_of_objects_is_not_an_empty_one() {
        for text in [
            "[]",
            "{}",
            r#"{"kind":"PodList","metadata":[],"items":[]}"#,
            r#"{"kind":"PodList","items":{}}"#,
            r#"{"kind":"PodList","metadata":{}}"#,
            r#"{"metadata":{},"items":[]}"#,
            r#"{"kind":"Pod","items":[]}"#,
            "no list",
        ] {
            assert!(read(text, "v1", "Pod", Form::Compact).is_err(), "{text}");
        }
        let status = r#"{"kind":"Status","message":"sign in first","code":200}"#;
        let why = read(status, "v1", "Pod", Form::Compact).unwrap_err();
        assert!(why.starts_with("the server answered with Status (sign in first), which"), "{why}");
        let empty = r#"{"kind":"PodList","metadata":{},"items":null}"#;
        let empty = read(empty, "v1", "Pod", Form::Compact).unwrap();
        assert_eq!((empty.objects.len(), &*empty.next), (0, ""));
    }
}
