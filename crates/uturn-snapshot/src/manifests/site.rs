//! Where an object is in the texts: the file, the document in it, and the path in the document.

use std::ops::Range;

use uturn_model::{ObjectKind, ObjectRef};

use super::Manifests;
use crate::document::{self, Keep, Value};
use crate::edit::At;

/// Where an object stands: source, document and the way to it.
pub(super) struct Site {
    pub(super) source: usize,
    pub(super) document: Range<usize>,
    pub(super) path: Vec<At>,
}

/// What is looked for.
pub(super) enum Wanted<'w> {
    Object(&'w ObjectRef),
    Scenario(&'w str),
}

impl Manifests {
    pub(super) fn document(&self, site: &Site) -> &str {
        &self.sources[site.source].text[site.document.clone()]
    }

    /// Where an object stands.
    pub(super) fn site(&self, object: &ObjectRef) -> Option<Site> {
        self.site_of(&Wanted::Object(object))
    }

    pub(super) fn site_of(&self, what: &Wanted<'_>) -> Option<Site> {
        let wanted: &str = match what {
            Wanted::Object(object) if object.kind == ObjectKind::Facts => "acts",
            Wanted::Object(object) => &object.name,
            Wanted::Scenario(name) => name,
        };
        for (source, file) in self.sources.iter().enumerate() {
            if !file.text.contains(wanted) {
                continue;
            }
            for document in document::cut(&file.text) {
                let text = &file.text[document.clone()];
                if !text.contains(wanted) {
                    continue;
                }
                let mut path = None;
                document::read(text, Keep::All, &mut |root| {
                    if let Ok(root) = root {
                        path = path.take().or_else(|| self.within(&root, what, Vec::new()));
                    }
                    std::ops::ControlFlow::Continue(())
                });
                if let Some(path) = path {
                    return Some(Site { source, document, path });
                }
            }
        }
        None
    }

    /// The way to an object within a document.
    fn within(
        &self,
        node: &document::Node<'_>,
        wanted: &Wanted<'_>,
        path: Vec<At>,
    ) -> Option<Vec<At>> {
        let kind = node.get("kind").and_then(|kind| kind.as_str()).unwrap_or_default();
        let meta = |key: &str| node.get("metadata")?.get(key)?.as_str();
        let object = match wanted {
            Wanted::Scenario(name) => {
                return (kind == "Scenario" && meta("name") == Some(name)).then_some(path);
            }
            Wanted::Object(object) => *object,
        };
        if kind == "Scenario" {
            if self.case.as_ref().is_some_and(|(name, _)| meta("name") != Some(name)) {
                return None;
            }
            let spec = node.get("spec")?;
            if object.kind == ObjectKind::Facts {
                spec.get("facts")?;
                return Some(joined(&path, &["spec", "facts"].map(At::from)));
            }
            let below = joined(&path, &["spec", "objects"].map(At::from));
            return self.among(spec.get("objects")?, wanted, &below);
        }
        if kind == "List" || kind.ends_with("List") && node.get("items").is_some() {
            return self.among(node.get("items")?, wanted, &joined(&path, &["items".into()]));
        }
        if object.kind == ObjectKind::Facts {
            return (kind == "Facts").then(|| joined(&path, &["spec".into()]));
        }
        let namespace = meta("namespace").unwrap_or("default");
        let same = kind == object.kind.as_str()
            && meta("name") == Some(&*object.name)
            && object.namespace.as_ref().is_none_or(|own| own.as_str() == namespace);
        same.then_some(path)
    }

    fn among(
        &self,
        list: &document::Node<'_>,
        wanted: &Wanted<'_>,
        path: &[At],
    ) -> Option<Vec<At>> {
        let Value::Seq(items) = &list.value else { return None };
        items
            .iter()
            .enumerate()
            .find_map(|(at, item)| self.within(item, wanted, joined(path, &[at.into()])))
    }
}

pub(super) fn joined(first: &[At], then: &[At]) -> Vec<At> {
    first.iter().chain(then).cloned().collect()
}
