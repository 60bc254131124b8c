//! Shared parts of the decoders, which turn documents into the model's types.
//!
//! A decoder reports every fault of an object before it gives up on it, so that one run reports
//! all faults of a document. The path of a value is only computed for a fault.

pub(crate) mod announcement;
pub(crate) mod api_server;
pub(crate) mod calico;
pub(crate) mod called_names;
pub(crate) mod class_parameters;
pub(crate) mod client_traffic;
pub(crate) mod cni;
pub(crate) mod config_map;
pub(crate) mod config_source;
pub(crate) mod custom;
pub(crate) mod endpoints;
pub(crate) mod facts;
pub(crate) mod fields;
pub(crate) mod gateway;
pub(crate) mod gateway_route;
pub(crate) mod ingress;
pub(crate) mod istio;
pub(crate) mod lease;
mod lenient;
pub(crate) mod listener_overrides;
pub(crate) mod meta;
pub(crate) mod network_policy;
pub(crate) mod nginx_proxy;
pub(crate) mod node;
pub(crate) mod objects;
pub(crate) mod pod;
pub(crate) mod proxy_config;
mod replaced;
pub(crate) mod scheduling;
pub(crate) mod selector;
pub(crate) mod service;
pub(crate) mod value;
pub(crate) mod volume;
pub(crate) mod workload;

use std::cell::RefCell;

use uturn_document::{Entry, Fault, Faults, Node, Twice, Value};
use uturn_model::{Origin, Text, misspelt};

pub(crate) use value::FromNode;

/// A document being decoded.
pub(crate) struct Doc<'d> {
    pub(crate) file: &'d Text,
    pub(crate) root: &'d Node<'d>,
    /// The path of `root`, with which the path of every field begins, if `root` is a part of a
    /// document.
    pub(crate) prefix: &'d str,
    pub(crate) faults: &'d RefCell<Faults>,
    /// The `resourceVersion` of the object if an API server returned it.
    pub(crate) live: Option<&'d str>,
}

impl<'d> Doc<'d> {
    pub(crate) fn new(file: &'d Text, root: &'d Node<'d>, faults: &'d RefCell<Faults>) -> Self {
        Self { file, root, prefix: "", faults, live: None }
    }

    /// Returns whether the object is still to be applied: no API server returned it.
    pub(crate) fn is_written(&self) -> bool {
        self.live.is_none() && resource_version(self.root).is_empty()
    }

    /// Returns the place of a value. All values of an object that an API server returned have the
    /// same place.
    pub(crate) fn origin(&self, node: &Node<'_>) -> Origin {
        match self.live {
            Some(version) => Origin::Live { resource_version: version.into() },
            None => Origin::at(self.file.clone(), node.line, node.column),
        }
    }

    /// Returns a part of the document, such as an item of a List, as a document.
    pub(crate) fn item<'p>(&self, item: &'p Node<'p>, prefix: &'p str) -> Doc<'p>
    where
        'd: 'p,
    {
        let live = self.live.map(|_| resource_version(item));
        Doc { file: self.file, root: item, prefix, faults: self.faults, live }
    }

    /// Reports a fault of a value.
    pub(crate) fn fault(&self, node: &Node<'_>, message: impl Into<String>) {
        self.report(node, None, message.into(), None);
    }

    /// Reports a fault of a value, with a hint.
    pub(crate) fn fault_with_hint(&self, node: &Node<'_>, message: String, hint: String) {
        self.report(node, None, message, Some(hint));
    }

    /// Reports that the document's object was defined before.
    pub(crate) fn twice(&self, called: &str, first: &Origin) {
        let message = format!("{called} is defined more than once, first at {first}");
        let field = Some(self.prefix.to_owned()).filter(|prefix| !prefix.is_empty());
        let origin = self.origin(self.root);
        self.faults.borrow_mut().push_twice(Twice {
            first: first.clone(),
            fault: Fault { field, ..Fault::new(origin, message) },
        });
    }

    /// Reports that a mapping lacks a field.
    pub(crate) fn missing(&self, map: &Node<'_>, key: &str, expected: &str) {
        let message = match expected {
            "" => "missing".to_owned(),
            _ => format!("missing: expected {expected}"),
        };
        self.report(map, Some(key), message, None);
    }

    fn report(&self, node: &Node<'_>, key: Option<&str>, message: String, hint: Option<String>) {
        let (mut object, mut field) = (None, None);
        if !self.faults.borrow().is_full() {
            object = self.object();
            field = self.path_of(node, key);
        }
        let origin = self.origin(node);
        self.faults.borrow_mut().push(Fault { origin, object, field, message, hint });
    }

    /// Returns the kind and name of the document's object: `Service shop/web`.
    fn object(&self) -> Option<Box<str>> {
        let text = |node: &Node<'_>, key: &str| node.get(key)?.as_str().map(str::to_owned);
        let kind = text(self.root, "kind")?;
        let meta = self.root.get("metadata")?;
        let name = text(meta, "name")?;
        Some(match text(meta, "namespace") {
            Some(namespace) => format!("{kind} {namespace}/{name}").into(),
            None => format!("{kind} {name}").into(),
        })
    }

    /// Returns the path of a value, or of a field of it. Returns `None` for the document itself,
    /// and for a value that is not in the document.
    pub(crate) fn path_of(&self, node: &Node<'_>, key: Option<&str>) -> Option<String> {
        let mut path = self.prefix.to_owned();
        if !path_to(self.root, node, &mut path) {
            return None;
        }
        if let Some(key) = key {
            step(&mut path, key);
        }
        Some(path).filter(|path| !path.is_empty())
    }

    /// Returns the mapping under `key`. Reports a fault and returns `None` if the value is not a
    /// mapping.
    pub(crate) fn map(&self, parent: &'d Node<'d>, key: &str) -> Option<&'d Node<'d>> {
        let node = parent.get(key)?;
        self.is_map(node).then_some(node)
    }

    /// Returns the mapping under `key`. Reports a fault if it is missing.
    pub(crate) fn need_map(&self, parent: &'d Node<'d>, key: &str) -> Option<&'d Node<'d>> {
        if parent.get(key).is_none() {
            self.missing(parent, key, "a mapping");
        }
        self.map(parent, key)
    }

    /// Returns whether the value is a mapping, and reports a fault if it is not.
    pub(crate) fn is_map(&self, node: &Node<'_>) -> bool {
        let is = matches!(node.value, Value::Map(_));
        if !is {
            self.fault(node, format!("expected a mapping, found {}", node.describe()));
        }
        is
    }

    /// Returns the entries of the mapping under `key`.
    pub(crate) fn entries(&self, parent: &'d Node<'d>, key: &str) -> &'d [Entry<'d>] {
        match self.map(parent, key).map(|node| &node.value) {
            Some(Value::Map(entries)) => entries,
            _ => &[],
        }
    }

    /// Returns the items of the list under `key`.
    pub(crate) fn items(&self, parent: &'d Node<'d>, key: &str) -> &'d [Node<'d>] {
        match parent.get(key) {
            None => &[],
            Some(Node { value: Value::Seq(items), .. }) => items,
            Some(other) => {
                self.fault(other, format!("expected a list, found {}", other.describe()));
                &[]
            }
        }
    }

    /// Returns the mappings of the list under `key`.
    pub(crate) fn maps(
        &self,
        parent: &'d Node<'d>,
        key: &str,
    ) -> impl Iterator<Item = &'d Node<'d>> {
        self.items(parent, key).iter().filter(|item| self.is_map(item))
    }

    /// Reads the value under `key`, which may be missing.
    pub(crate) fn read<T: FromNode>(&self, parent: &'d Node<'d>, key: &str) -> Option<T> {
        self.value(parent.get(key)?)
    }

    /// Reads the value under `key`. Reports a fault if it is missing.
    pub(crate) fn need<T: FromNode>(&self, parent: &'d Node<'d>, key: &str) -> Option<T> {
        if parent.get(key).is_none() {
            self.missing(parent, key, T::EXPECTED);
            return None;
        }
        self.read(parent, key)
    }

    /// Reads the list of values under `key`. A missing list is empty.
    pub(crate) fn list<T: FromNode>(&self, parent: &'d Node<'d>, key: &str) -> Vec<T> {
        self.items(parent, key).iter().filter_map(|item| self.value(item)).collect()
    }

    /// Reads a value. Reports a fault if it has another type.
    pub(crate) fn value<T: FromNode>(&self, node: &Node<'_>) -> Option<T> {
        match T::from_node(node) {
            Ok(value) => Some(value),
            Err(what) => {
                let expected = if what.is_empty() { T::EXPECTED } else { &what };
                let message = format!("expected {expected}, found {}", node.describe());
                let hint = value::quote_hint::<T>(node);
                self.report(node, None, message, hint);
                None
            }
        }
    }

    /// Reports a fault for each key that is not in `known`: uturn's own documents have no other
    /// fields.
    pub(crate) fn only(&self, map: &Node<'_>, known: &[&str]) {
        let Value::Map(entries) = &map.value else { return };
        for entry in entries.iter().filter(|entry| !known.contains(&&*entry.key)) {
            self.unknown_field(map, entry, || {
                match misspelt::closest(&entry.key, known.iter().copied()) {
                    Some(close) => did_you_mean(close),
                    None => format!("known here: {}", known.join(", ")),
                }
            });
        }
    }

    /// Reports a fault for each key that is a misspelling of a `known` one that is missing: an API
    /// server refuses such an object, or drops the field. Other fields may be newer than uturn, and
    /// custom resources have fields of their own.
    pub(crate) fn spelled(&self, map: &Node<'_>, known: &[&str]) {
        let Value::Map(entries) = &map.value else { return };
        if !self.is_written() || !is_of_kubernetes(self.root) {
            return;
        }
        for entry in entries.iter().filter(|entry| !known.contains(&&*entry.key)) {
            let is_meant =
                |word: &&&str| map.get(word).is_none() && misspelt::is_misspelt(&entry.key, word);
            if let Some(meant) = known.iter().find(is_meant) {
                self.unknown_field(map, entry, || did_you_mean(meant));
            }
        }
    }

    fn unknown_field(&self, map: &Node<'_>, entry: &Entry<'_>, hint: impl FnOnce() -> String) {
        let key = Node { line: entry.line, column: entry.column, value: Value::Null };
        let mut fault = Fault::new(self.origin(&key), "unknown field");
        // Once the faults are full, this one is only counted.
        if !self.faults.borrow().is_full() {
            let mut path = self.prefix.to_owned();
            path_to(self.root, map, &mut path);
            step(&mut path, &uturn_document::shorten(&entry.key));
            fault.field = Some(path);
            fault.hint = Some(hint());
        }
        self.faults.borrow_mut().push(fault);
    }
}

pub(crate) fn did_you_mean(word: &str) -> String {
    format!("did you mean {word}?")
}

/// Returns whether the API group of an object is one of Kubernetes' own.
fn is_of_kubernetes(object: &Node<'_>) -> bool {
    let version = object.get("apiVersion").and_then(Node::as_str).unwrap_or_default();
    let group = version.split_once('/').map_or("", |(group, _)| group);
    !group.contains('.') || group.ends_with(".k8s.io")
}

/// Returns the `resourceVersion` of an object. Empty if it has none.
pub(crate) fn resource_version<'n>(object: &'n Node<'_>) -> &'n str {
    let version = object.get("metadata").and_then(|meta| meta.get("resourceVersion"));
    version.and_then(Node::as_str).unwrap_or_default()
}

/// Appends the path that leads from `from` to `to` to `path`, and returns whether there is one.
///
/// Values are in the order of the text, except for aliases, so the part that begins last before
/// `to` is tried first.
fn path_to(from: &Node<'_>, to: &Node<'_>, path: &mut String) -> bool {
    if std::ptr::eq(std::ptr::from_ref(from).cast::<()>(), std::ptr::from_ref(to).cast()) {
        return true;
    }
    let before = path.len();
    let begins = |node: &Node<'_>| (node.line, node.column) <= (to.line, to.column);
    match &from.value {
        Value::Seq(items) => {
            let likely = items.partition_point(begins).saturating_sub(1);
            for at in likely_first(likely, items.len()) {
                path.push_str(&format!("[{at}]"));
                if path_to(&items[at], to, path) {
                    return true;
                }
                path.truncate(before);
            }
        }
        Value::Map(entries) => {
            let likely = entries.partition_point(|entry| begins(&entry.value)).saturating_sub(1);
            for at in likely_first(likely, entries.len()) {
                step(path, &entries[at].key);
                if path_to(&entries[at].value, to, path) {
                    return true;
                }
                path.truncate(before);
            }
        }
        _ => {}
    }
    false
}

/// Iterates over the numbers below `count`, with `likely` first.
fn likely_first(likely: usize, count: usize) -> impl Iterator<Item = usize> {
    let rest = (0..count).filter(move |at| *at != likely);
    (likely..count).take(1).chain(rest)
}

fn step(path: &mut String, key: &str) {
    if key.contains(['.', '/', '[', ' ']) {
        path.push_str(&format!("[{key:?}]"));
        return;
    }
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(key);
}
