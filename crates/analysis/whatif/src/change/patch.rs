//! Files of objects and patches: `-p FILE`.
//!
//! An object that has all that its kind requires takes the place of the object of its name, as
//! `kubectl apply` does it: what the API server assigned (`status`, cluster IPs, node ports) stays. An
//! object that lacks required parts, or has `$patch`, is a strategic merge patch. A list of
//! `target` and `patch`, or `patches` of a kustomization, are patches of the objects that they name.

use std::ops::ControlFlow;

use uturn_document::edit::Tree;
use uturn_document::{self as document, Keep, Source};
use uturn_model::{Name, NamespacedName, ObjectKind, ObjectRef, Text};

use super::{Change, What, kind};

/// An object of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// The file.
    pub file: Text,
    /// The line at which the object begins.
    pub line: u32,
    /// The identity of the object.
    pub object: ObjectRef,
    /// The object as it is written.
    pub tree: Tree,
    /// The required part that the object lacks, so that it is a patch; `None` if it is whole.
    pub lacks: Option<&'static str>,
}

/// The objects that a patch names.
#[derive(Clone, Debug, PartialEq)]
pub struct PatchTarget {
    /// The kind.
    pub kind: ObjectKind,
    /// The namespace; `None` stands for any.
    pub namespace: Option<Name>,
    /// The name.
    pub name: Text,
}

/// An operation of a JSON patch (RFC 6902).
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Adds a value to a mapping or inserts it into a list.
    Add(Vec<String>, Tree),
    /// Removes a value.
    Remove(Vec<String>),
    /// Replaces a value that is there.
    Replace(Vec<String>, Tree),
    /// Requires a value.
    Test(Vec<String>, Tree),
    /// Takes a value from one place to another.
    Move(Vec<String>, Vec<String>),
    /// Copies a value from one place to another.
    Copy(Vec<String>, Vec<String>),
}

/// The changes of a file, and notes about what in it changes nothing.
#[derive(Debug, Default)]
pub struct OfFile {
    /// The changes, in the order of the file.
    pub changes: Vec<Change>,
    /// Notes about objects that uturn does not read.
    pub notes: Vec<String>,
}

/// Reads a file of objects and patches. Objects without a namespace are in the given one, or else in
/// `default`.
///
/// # Errors
/// Returns each fault of the file, with its place.
pub fn file(source: &Source, namespace: Option<&str>) -> Result<OfFile, Vec<String>> {
    let mut reader = Reader {
        file: &source.name,
        namespace: namespace.unwrap_or("default"),
        found: OfFile::default(),
        faults: Vec::new(),
    };
    document::read(&source.text, Keep::All, &mut |root| {
        match root {
            Ok(root) => reader.document(&Tree::from(&root), root.line),
            // What kubectl accepts, such as a key that is repeated.
            Err(trouble) if trouble.note.is_some() => {}
            Err(trouble) => {
                let hint = trouble.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
                let message = format!("{}{hint}", trouble.message);
                reader.faults.push(format!(
                    "{}:{}:{}: {message}",
                    source.name, trouble.line, trouble.column
                ));
            }
        }
        ControlFlow::Continue(())
    });
    let Reader { found, mut faults, .. } = reader;
    if found.changes.is_empty() && found.notes.is_empty() && faults.is_empty() {
        faults.push(format!("{}: the file has no object and no patch", source.name));
    }
    if faults.is_empty() { Ok(found) } else { Err(faults) }
}

struct Reader<'s> {
    file: &'s Text,
    namespace: &'s str,
    found: OfFile,
    faults: Vec<String>,
}

impl Reader<'_> {
    fn document(&mut self, tree: &Tree, line: u32) {
        let is_null = *tree == Tree::bare("null");
        let patches = tree.get("patches").or(tree.get("patchesJson6902"));
        match (tree, patches) {
            _ if is_null => {}
            (Tree::List(entries), _) => entries.iter().for_each(|entry| self.targeted(entry, line)),
            (Tree::Map(_), Some(Tree::List(entries))) => {
                entries.iter().for_each(|entry| self.targeted(entry, line));
            }
            (Tree::Map(_), _) if text(tree, "kind").is_some_and(|kind| kind.ends_with("List")) => {
                for item in tree.items_below(&["items"]) {
                    self.document(item, line);
                }
            }
            (Tree::Map(_), _) => self.object(tree, line, false),
            _ => self.fault(line, "expected an object or a patch"),
        }
    }

    fn fault(&mut self, line: u32, what: impl AsRef<str>) {
        self.faults.push(format!("{}:{line}: {}", self.file, what.as_ref()));
    }

    /// Reads an object, or a patch of the object with its name.
    fn object(&mut self, tree: &Tree, line: u32, is_patch: bool) {
        let Some(kind) = text(tree, "kind") else {
            return self.fault(line, "not an object: kind is missing");
        };
        let Some(name) = tree.get("metadata").and_then(|meta| text(meta, "name")) else {
            if kind == "Facts" {
                return self.facts(tree, line);
            }
            return self.fault(line, format!("a {kind} without metadata.name"));
        };
        if kind == "Facts" {
            return self.facts(tree, line);
        }
        let Some(known) = kind::of_manifest(kind) else {
            let note = format!(
                "{}:{line}: uturn does not read {kind}: {name} changes nothing here",
                self.file
            );
            return self.found.notes.push(note);
        };
        let namespace = tree.get("metadata").and_then(|meta| text(meta, "namespace"));
        let namespace = namespace.unwrap_or(self.namespace);
        let object = if kind::is_global(known) {
            Ok(ObjectRef::global(known, name))
        } else {
            NamespacedName::new(namespace, name)
                .map(|name| ObjectRef::namespaced(known, &name))
                .map_err(|_| format!("{namespace}/{name} is not the name of a Kubernetes object"))
        };
        match object {
            Ok(object) => {
                let lacks = if is_patch { Some("all but the change") } else { lacks(known, tree) };
                self.put(object, tree, line, lacks);
            }
            Err(why) => self.fault(line, why),
        }
    }

    fn facts(&mut self, tree: &Tree, line: u32) {
        let object = ObjectRef::global(ObjectKind::Facts, "Facts");
        match tree.get("spec") {
            Some(spec @ Tree::Map(_)) => self.put(object, spec, line, Some("the other Facts")),
            _ => self.fault(line, "Facts without spec"),
        }
    }

    fn put(&mut self, object: ObjectRef, tree: &Tree, line: u32, lacks: Option<&'static str>) {
        let what = if lacks.is_some() { "patch of " } else { "" };
        let typed = format!("{}:{line} ({what}{})", self.file, object.short());
        let file = self.file.clone();
        let written = Written { file, line, object, tree: tree.clone(), lacks };
        self.found.changes.push(Change::new("-p", &typed, What::Put(Box::new(written))));
    }

    /// Reads a patch that names its target: `target: {kind, name}` and `patch`.
    fn targeted(&mut self, entry: &Tree, line: u32) {
        let is_operation = text(entry, "op").is_some();
        if !is_operation && text(entry, "path").is_some() && entry.get("patch").is_none() {
            return self.fault(line, "a patch in another file: give that file with -p");
        }
        let (Some(target), Some(patch)) = (entry.get("target"), entry.get("patch")) else {
            let what = if is_operation {
                "a JSON patch needs its target: write `- target: {kind: …, name: …}` and `patch:` \
                 with the operations"
            } else {
                "expected `target` and `patch`"
            };
            return self.fault(line, what);
        };
        let target = match self.target(target) {
            Ok(target) => target,
            Err(why) => return self.fault(line, why),
        };
        let patch = match patch {
            Tree::Text(text) => match single(text) {
                Some(tree) => tree,
                None => return self.fault(line, "the text of `patch` cannot be read"),
            },
            other => other.clone(),
        };
        match &patch {
            Tree::List(all) => {
                let operations: Result<Vec<Operation>, String> =
                    all.iter().map(operation).collect();
                match operations {
                    Ok(operations) => {
                        let typed = format!(
                            "{}:{line} (patch of {} {})",
                            self.file, target.kind, target.name
                        );
                        let what = What::Operate { target, operations };
                        self.found.changes.push(Change::new("-p", &typed, what));
                    }
                    Err(why) => self.fault(line, why),
                }
            }
            Tree::Map(_) => self.object(&addressed(&patch, &target), line, true),
            _ => self.fault(line, "`patch` is neither operations nor a part of an object"),
        }
    }

    fn target(&self, target: &Tree) -> Result<PatchTarget, String> {
        let (Some(kind), Some(name)) = (text(target, "kind"), text(target, "name")) else {
            return Err("`target` needs kind and name".to_owned());
        };
        let namespace = text(target, "namespace");
        let namespace = namespace.map(Name::new).transpose();
        Ok(PatchTarget {
            kind: kind::of_word(kind)?,
            namespace: namespace.map_err(|_| "`target` has no valid namespace".to_owned())?,
            name: name.into(),
        })
    }
}

/// Returns a patch with the kind and the name of its target.
fn addressed(patch: &Tree, target: &PatchTarget) -> Tree {
    let Tree::Map(entries) = patch else { return patch.clone() };
    let mut entries: Vec<(String, Tree)> =
        entries.iter().filter(|(key, _)| key != "kind" && key != "metadata").cloned().collect();
    let mut meta = match patch.get("metadata") {
        Some(Tree::Map(meta)) => meta.clone(),
        _ => Vec::new(),
    };
    meta.retain(|(key, _)| key != "name" && (key != "namespace" || target.namespace.is_none()));
    meta.push(("name".to_owned(), Tree::text(&*target.name)));
    if let Some(namespace) = &target.namespace {
        meta.push(("namespace".to_owned(), Tree::text(namespace.as_str())));
    }
    entries.push(("kind".to_owned(), Tree::text(target.kind.as_str())));
    entries.push(("metadata".to_owned(), Tree::Map(meta)));
    Tree::Map(entries)
}

/// Reads an operation of a JSON patch.
fn operation(tree: &Tree) -> Result<Operation, String> {
    let op = text(tree, "op").ok_or("an operation without `op`")?;
    let at = |key: &str| {
        let pointer = text(tree, key).ok_or_else(|| format!("operation {op} without `{key}`"))?;
        let Some(rest) = pointer.strip_prefix('/') else {
            return Err(format!("{pointer:?} is no JSON pointer: it has to begin with /"));
        };
        Ok(rest.split('/').map(|part| part.replace("~1", "/").replace("~0", "~")).collect())
    };
    let value =
        || tree.get("value").cloned().ok_or_else(|| format!("operation {op} without `value`"));
    Ok(match op {
        "add" => Operation::Add(at("path")?, value()?),
        "remove" => Operation::Remove(at("path")?),
        "replace" => Operation::Replace(at("path")?, value()?),
        "test" => Operation::Test(at("path")?, value()?),
        "move" => Operation::Move(at("from")?, at("path")?),
        "copy" => Operation::Copy(at("from")?, at("path")?),
        other => {
            return Err(format!(
                "{other:?} is no operation: expected add, remove, replace, test, move or copy"
            ));
        }
    })
}

/// Reads a text that is one document.
fn single(text: &str) -> Option<Tree> {
    let mut found = Vec::new();
    document::read(text, Keep::All, &mut |root| {
        found.push(root.ok().map(|root| Tree::from(&root)));
        ControlFlow::Continue(())
    });
    match found.as_slice() {
        [Some(tree)] => Some(tree.clone()),
        _ => None,
    }
}

/// Returns the required part of a kind that an object lacks, or the directive that makes it a patch.
/// A kind without required parts is merged: keys that the file does not name stay.
fn lacks(kind: ObjectKind, tree: &Tree) -> Option<&'static str> {
    if has_directive(tree) {
        return Some("nothing, but has $patch");
    }
    let has = |path: &[&str]| tree.below(path).is_some_and(|value| *value != Tree::bare("null"));
    let first_missing = |paths: &[&'static str]| {
        let parts = |path: &&'static str| path.split('.').collect::<Vec<&str>>();
        paths.iter().copied().find(|path| !has(&parts(path)))
    };
    match kind {
        ObjectKind::Service => {
            let is = |key: &str, value: &str| {
                tree.below(&["spec", key]).and_then(Tree::as_str) == Some(value)
            };
            let needs_none = is("clusterIP", "None") || is("type", "ExternalName");
            if needs_none { None } else { first_missing(&["spec.ports"]) }
        }
        ObjectKind::Workload(_) if kind.as_str() == "CronJob" => {
            first_missing(&["spec.jobTemplate"])
        }
        ObjectKind::Workload(_) => {
            first_missing(&["spec.template.spec.containers"]).or_else(|| {
                let containers = tree.items_below(&["spec", "template", "spec", "containers"]);
                let is_part = containers.iter().any(|container| container.get("image").is_none());
                is_part.then_some("the image of a container")
            })
        }
        ObjectKind::Pod => first_missing(&["spec.containers"]),
        ObjectKind::Ingress => {
            let is_whole = has(&["spec", "rules"]) || has(&["spec", "defaultBackend"]);
            (!is_whole).then_some("spec.rules")
        }
        ObjectKind::EndpointSlice => first_missing(&["addressType", "endpoints"]),
        ObjectKind::Endpoints => first_missing(&["subsets"]),
        ObjectKind::NetworkPolicy => first_missing(&["spec.podSelector"]),
        ObjectKind::Gateway => {
            let is_of_mesh = has(&["spec", "servers"]);
            if is_of_mesh {
                None
            } else {
                first_missing(&["spec.gatewayClassName", "spec.listeners"])
            }
        }
        kind if kind.is_route() => first_missing(&["spec.parentRefs", "spec.rules"]),
        ObjectKind::IngressClass => first_missing(&["spec.controller"]),
        ObjectKind::Node => first_missing(&["status.addresses"]),
        ObjectKind::ConfigMap => Some("keys that it may have beside"),
        _ => None,
    }
}

/// Returns whether there is a directive of a strategic merge patch anywhere.
fn has_directive(tree: &Tree) -> bool {
    match tree {
        Tree::Map(entries) => {
            entries.iter().any(|(key, value)| key.starts_with('$') || has_directive(value))
        }
        Tree::List(items) => items.iter().any(has_directive),
        Tree::Text(_) | Tree::Bare(_) => false,
    }
}

fn text<'t>(tree: &'t Tree, key: &str) -> Option<&'t str> {
    tree.get(key).and_then(Tree::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<OfFile, Vec<String>> {
        file(&Source { name: "p.yaml".into(), text: text.to_owned() }, None)
    }

    fn typed(text: &str) -> Vec<String> {
        read(text).unwrap().changes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_object_is_whole_or_a_patch() {
        let whole =
            "kind: Service\nmetadata: {name: a, namespace: shop}\nspec: {ports: [{port: 80}]}\n";
        assert_eq!(typed(whole), ["-p p.yaml:1 (svc/shop/a)"]);
        let part = "kind: Service\nmetadata: {name: a}\nspec: {externalTrafficPolicy: Local}\n";
        assert_eq!(typed(part), ["-p p.yaml:1 (patch of svc/default/a)"]);
        let two = format!("{whole}---\n{part}");
        assert_eq!(typed(&two).len(), 2);
        assert!(typed(&two)[1].starts_with("-p p.yaml:5 "), "{:?}", typed(&two));
    }

    #[test]
    fn patches_with_targets_are_those_of_kustomize() {
        let operations = "
- target: {kind: Service, name: front}
  patch: |-
    - op: replace
      path: /spec/type
      value: NodePort
- target: {kind: Service, name: front, namespace: shop}
  patch: {spec: {type: NodePort}}
";
        assert_eq!(
            typed(operations),
            ["-p p.yaml:2 (patch of Service front)", "-p p.yaml:2 (patch of svc/shop/front)"]
        );
        let kustomization = "kind: Kustomization\npatches:\n- target: {kind: Service, name: front}\n  \
                             patch: [{op: remove, path: /spec/type}]\n";
        assert_eq!(typed(kustomization).len(), 1);
    }

    #[test]
    fn faults_have_places() {
        let faults = |text: &str| read(text).unwrap_err().join("; ");
        assert!(faults("").contains("p.yaml: the file has no object"));
        assert!(faults("kind: Service\nspec: {}\n").contains("p.yaml:1: a Service without"));
        assert!(faults("- {op: remove, path: /a}\n").contains("needs its target"));
        let faulty = "- target: {kind: Service, name: a}\n  patch: [{op: delete, path: /a}]\n";
        assert!(faults(faulty).contains("\"delete\" is no operation"));
        let other = "kind: Secret\nmetadata: {name: a}\n";
        assert!(read(other).unwrap().notes[0].contains("does not read Secret"));
    }
}
