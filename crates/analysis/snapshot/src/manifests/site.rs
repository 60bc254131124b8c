//! Finds an object in the texts: its file, the document in the file, and the path in the document.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem::Finder;
use uturn_document::edit::At;
use uturn_document::{self as document, Keep, Value};
use uturn_model::{ObjectKind, ObjectRef};

use super::Manifests;
use super::places::Document;

/// The place of an object: source, document, and the path in the document. An item of a List is a
/// document of its own.
#[derive(Clone)]
pub(super) struct Site {
    pub(super) source: usize,
    pub(super) document: Range<usize>,
    /// Whether the document begins with the dash of a list item.
    pub(super) is_dashed: bool,
    pub(super) path: Vec<At>,
}

impl Site {
    /// Returns whether a part of a source is within the document.
    pub(super) fn has(&self, source: usize, range: &Range<usize>) -> bool {
        self.source == source
            && self.document.start <= range.start
            && range.end <= self.document.end
    }
}

/// The object or Scenario that is sought.
pub(super) enum Wanted<'w> {
    Object(&'w ObjectRef),
    Scenario(&'w str),
}

impl Manifests {
    /// Returns the document at a site. A list item has a blank in place of its dash.
    pub(super) fn document(&self, site: &Site) -> Cow<'_, str> {
        let text = &self.sources[site.source].text[site.document.clone()];
        if site.is_dashed { without_dash(text) } else { Cow::Borrowed(text) }
    }

    /// Replaces the document at a site.
    pub(super) fn replace(&mut self, site: Site, document: &str) {
        let text = self.text_mut(site.source);
        match document.strip_prefix(' ').filter(|_| site.is_dashed) {
            Some(rest) => text.replace_range(site.document, &["-", rest].concat()),
            None => text.replace_range(site.document, document),
        }
    }

    /// Finds an object in the texts.
    pub(super) fn site(&self, object: &ObjectRef) -> Option<Site> {
        self.site_of(&Wanted::Object(object))
    }

    /// Finds the Scenario whose case the cluster is.
    pub(super) fn scenario_site(&self) -> Option<Site> {
        let (name, _) = self.case.as_ref()?;
        self.site_of(&Wanted::Scenario(name))
    }

    pub(super) fn site_of(&self, what: &Wanted<'_>) -> Option<Site> {
        let wanted: &str = match what {
            Wanted::Object(object) if object.kind == ObjectKind::Facts => "acts",
            Wanted::Object(object) => &object.name,
            Wanted::Scenario(name) => name,
        };
        let wanted = Finder::new(wanted);
        for (source, file) in self.sources.iter().enumerate() {
            if wanted.find(file.text.as_bytes()).is_none() {
                continue;
            }
            for document in self.known.places.of(&self.sources, source) {
                let found = self.site_within(document, (source, &file.text), &wanted, what);
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }

    fn site_within(
        &self,
        document: &Document,
        (source, text): (usize, &str),
        wanted: &Finder<'_>,
        what: &Wanted<'_>,
    ) -> Option<Site> {
        let whole = &text[document.range.clone()];
        let hits = wanted.find_iter(whole.as_bytes());
        let mut hits = hits.map(|at| document.range.start + at).fuse().peekable();
        hits.peek()?;
        let mut reads_whole = document.items.is_none() || document.has_references;
        for item in document.items.iter().flatten() {
            while hits.next_if(|hit| *hit < item.start).is_some() {}
            match hits.peek() {
                Some(hit) if item.contains(hit) => {}
                Some(_) => continue,
                None => break,
            }
            let own = &text[item.clone()];
            let is_dashed = own.starts_with('-');
            let own = if is_dashed { without_dash(own) } else { Cow::Borrowed(own) };
            let (path, is_readable) = self.way_in(&own, what);
            if let Some(path) = path {
                return Some(Site { source, document: item.clone(), is_dashed, path });
            }
            reads_whole |= !is_readable;
        }
        let path = if reads_whole { self.way_in(whole, what).0 } else { None };
        path.map(|path| Site { source, document: document.range.clone(), is_dashed: false, path })
    }

    /// Returns the path of an object in the text of a document.
    pub(super) fn way_in_object(&self, text: &str, object: &ObjectRef) -> Option<Vec<At>> {
        self.way_in(text, &Wanted::Object(object)).0
    }

    /// Returns the path of an object in a text, and whether all of the text could be read.
    fn way_in(&self, text: &str, what: &Wanted<'_>) -> (Option<Vec<At>>, bool) {
        let (mut path, mut is_readable) = (None, true);
        document::read(text, Keep::All, &mut |root| {
            match root {
                Ok(root) => path = path.take().or_else(|| self.within(&root, what, Vec::new())),
                Err(_) => is_readable = false,
            }
            std::ops::ControlFlow::Continue(())
        });
        (path, is_readable)
    }

    /// Returns the path of an object within a document.
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

/// Returns a YAML list item as a document: the rest stays in its columns.
fn without_dash(text: &str) -> Cow<'_, str> {
    Cow::Owned([" ", &text[1..]].concat())
}

pub(super) fn joined(first: &[At], then: &[At]) -> Vec<At> {
    first.iter().chain(then).cloned().collect()
}

#[cfg(test)]
mod tests {
    use uturn_model::NamespacedName;

    use uturn_document::Source;
    use uturn_document::edit::{self, Change, Tree};

    use super::*;
    use crate::manifests::Edit;

    const YAML: &str = "apiVersion: v1
items:
- apiVersion: v1
  kind: Service
  metadata:
    name: web
    namespace: a
    annotations: {}
  spec:
    ports:
    - port: 80
- apiVersion: v1
  kind: Service
  metadata:
    name: web
    namespace: b
    # says something
  spec:
    ports:
    - {port: 80}
  status:
kind: List
metadata:
  resourceVersion: \"\"
";
    const PRETTY: &str = r#"{
    "apiVersion": "v1",
    "items": [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": "web",
                "namespace": "a",
                "annotations": {}
            },
            "spec": {
                "ports": [
                    {
                        "port": 80
                    }
                ]
            }
        },
        {
            "kind": "Service",
            "metadata": {
                "name": "web",
                "namespace": "b"
            },
            "spec": {"ports": []},
            "status": null
        }
    ],
    "kind": "List"
}
"#;

    /// Editing an item as a document of its own has the same result as editing it within its List.
    #[test]
    fn an_item_of_a_list_is_edited_in_its_place() {
        let compact: String = PRETTY.split_whitespace().collect();
        let set = |word: &str| Change::Set(Tree::text(word));
        let edits: [(&[&str], Change); 7] = [
            (&["metadata", "annotations", "x/y"], set("1")),
            (&["metadata", "name"], set("new")),
            (&["spec", "ports"], Change::Append(Tree::map([("port", Tree::bare("81"))]))),
            (&["spec", "ports"], Change::Prepend(Tree::map([("port", Tree::bare("81"))]))),
            (&["spec", "policy"], set("Local")),
            (&["status", "deep", "er"], set("x")),
            (&["other"], set("at the end")),
        ];
        for text in [YAML, PRETTY, &compact, YAML.trim_end()] {
            let manifests =
                Manifests::of(vec![Source { name: "all".into(), text: text.to_owned() }]);
            for (item, namespace) in ["a", "b"].into_iter().enumerate() {
                let name = NamespacedName::new(namespace, "web").unwrap();
                let object = ObjectRef::namespaced(ObjectKind::Service, &name);
                let tree = manifests.object(&object).unwrap().document();
                assert!(tree.contains(&format!("namespace: {namespace}")), "{tree}");
                for (path, change) in &edits {
                    let path: Vec<At> = path.iter().map(|key| At::from(*key)).collect();
                    let within = joined(&["items".into(), item.into()], &path);
                    let whole = edit::apply(text, &within, change).unwrap();
                    let edit = Edit { object: object.clone(), path, change: change.clone() };
                    let alone = manifests.edited(&[edit]).unwrap();
                    assert_eq!(alone.sources()[0].text, whole);
                }
            }
            let gone = NamespacedName::new("c", "web").unwrap();
            assert!(!manifests.has(&ObjectRef::namespaced(ObjectKind::Service, &gone)));
        }
    }

    #[test]
    fn an_item_that_refers_to_another_one_is_found() {
        let text = "kind: List\nitems:\n- kind: ConfigMap\n  metadata: &same {name: web}\n- kind: Service\n  metadata: *same\n";
        let manifests = Manifests::of(vec![Source { name: "all".into(), text: text.to_owned() }]);
        let name = NamespacedName::new("default", "web").unwrap();
        assert!(manifests.has(&ObjectRef::namespaced(ObjectKind::Service, &name)));
    }
}
