//! Splits sources into documents, and Lists into items.

use std::cell::RefCell;
use std::ops::ControlFlow;

use uturn_document::{self as document, Fault, Faults, Keep, Node, Note, Source, Trouble, Value};
use uturn_model::Origin;

use crate::decode::{Doc, resource_version};
use crate::wanted::{WANTED, is_ours};

/// The `apiVersion` of uturn's own documents.
pub(crate) const OURS: &str = "uturn.dev/v1alpha1";

/// Returns why a document is not an object. Returns `None` if it is one, or is meant to be.
pub(crate) fn what_it_lacks(doc: &Doc<'_>) -> Option<String> {
    let Value::Map(_) = doc.root.value else {
        let found = doc.root.describe();
        return Some(format!("expected a mapping with apiVersion and kind, found {found}"));
    };
    let has = |key| doc.root.get(key).is_some();
    match (has("apiVersion"), has("kind")) {
        (true, true) => None,
        // A values file may have a kind, and a chart has a version of its own.
        _ if has("metadata") => None,
        (false, false) => Some("apiVersion and kind are missing".into()),
        (false, true) => Some("apiVersion is missing".into()),
        (true, false) => Some("kind is missing".into()),
    }
}

/// Reads each document of a source, until the source has too many faults.
///
/// `is_live` states that an API server returned the source. Oddities that kubectl tolerates are
/// faults in a source with uturn's own documents, which no other program reads.
pub(crate) fn each_document(
    source: &Source,
    is_live: bool,
    faults: &RefCell<Faults>,
    each: &mut dyn FnMut(&Doc<'_>),
) {
    let (mut passed, mut ours) = (Vec::new(), false);
    document::read(&source.text, Keep::Wanted(&WANTED), &mut |document| {
        match document {
            Ok(root) => {
                let version = root.get("apiVersion").and_then(Node::as_str);
                ours |= version.is_some_and(is_ours);
                let live = is_live.then(|| resource_version(&root));
                each(&Doc { live, ..Doc::new(&source.name, &root, faults) });
            }
            Err(trouble) if trouble.note.is_some() && passed.len() < MAX_PASSED => {
                passed.push(trouble);
            }
            Err(trouble) => faults.borrow_mut().push(fault(source, trouble)),
        }
        if faults.borrow().gives_up() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let mut faults = faults.borrow_mut();
    for trouble in passed {
        match trouble.note.filter(|_| !ours) {
            None => faults.push(fault(source, trouble)),
            Some((taken, because)) => {
                let Fault { origin, message, hint, .. } = fault(source, trouble);
                let settle = hint.unwrap_or_default();
                faults.note(Note { origin, message, assumed: taken, because, settle });
            }
        }
    }
    faults.finish();
}

/// The maximum number of oddities of a source; further ones are faults, because the source is not a
/// manifest.
const MAX_PASSED: usize = 100;

fn fault(source: &Source, trouble: Trouble) -> Fault {
    let Trouble { line, column, message, hint, .. } = trouble;
    let origin = Origin::at(source.name.clone(), line, column);
    Fault { origin, object: None, field: None, message, hint }
}

/// Calls `each` for a document, or for each item of a List, with its `apiVersion` and `kind`.
pub(crate) fn each_item(doc: &Doc<'_>, each: &mut dyn FnMut(&Doc<'_>, &str, &str)) {
    // The caller checks itself whether to go on with the next document.
    let _ = each_item_of(doc, None, each);
}

fn each_item_of<'d>(
    doc: &Doc<'d>,
    inherited: Option<(&'d str, &'d str)>,
    each: &mut dyn FnMut(&Doc<'_>, &str, &str),
) -> ControlFlow<()> {
    let Some((version, kind)) = identity(doc, inherited) else { return go_on(doc) };
    let Some(item_kind) = item_kind(kind, doc.root.get("items").is_some()) else {
        each(doc, version, kind);
        return go_on(doc);
    };
    let inherited = (!item_kind.is_empty()).then_some((version, item_kind));
    let mut at = 0;
    let mut each_of = |item: &Node<'_>| {
        let prefix = match doc.prefix {
            "" => format!("items[{at}]"),
            prefix => format!("{prefix}.items[{at}]"),
        };
        at += 1;
        let doc = doc.item(item, &prefix);
        each_item_of(&doc, inherited, each)
    };
    match doc.root.get("items").map(|items| &items.value) {
        Some(Value::Items(items)) => {
            let ours = inherited.is_some_and(|(version, _)| is_ours(version));
            items.each(ours, &mut each_of)
        }
        _ => doc.items(doc.root, "items").iter().try_for_each(each_of),
    }
}

/// Returns the kind of a list's items, empty for `List`. Returns `None` for other kinds, and for an
/// object whose kind only ends like a list's.
pub(crate) fn item_kind(kind: &str, has_items: bool) -> Option<&str> {
    kind.strip_suffix("List").filter(|rest| rest.is_empty() || has_items)
}

/// Returns whether reading continues, which it does until there are too many faults.
fn go_on(doc: &Doc<'_>) -> ControlFlow<()> {
    if doc.faults.borrow().gives_up() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Returns the `apiVersion` and `kind` of a document. A list's items may inherit those of the list.
fn identity<'d>(
    doc: &Doc<'d>,
    inherited: Option<(&'d str, &'d str)>,
) -> Option<(&'d str, &'d str)> {
    if !matches!(doc.root.value, Value::Map(_)) {
        let message =
            format!("expected a mapping with apiVersion and kind, found {}", doc.root.describe());
        doc.fault(doc.root, message);
        return None;
    }
    let text = |key| match doc.root.get(key) {
        Some(node) if node.as_str().is_some_and(|text| !text.is_empty()) => node.as_str(),
        Some(node) => {
            doc.fault(node, format!("expected a text, found {}", node.describe()));
            None
        }
        None => None,
    };
    let before = doc.faults.borrow().count();
    match (text("apiVersion"), text("kind"), inherited) {
        (Some(version), Some(kind), _) => Some((version, kind)),
        (None, None, Some(inherited)) => Some(inherited),
        (version, kind, _) => {
            if doc.faults.borrow().count() == before {
                let lacks = match (version, kind) {
                    (None, None) => "apiVersion and kind are missing",
                    (None, _) => "apiVersion is missing",
                    _ => "kind is missing",
                };
                let hint = "expected `apiVersion` and `kind`; is this a Kubernetes manifest?";
                doc.fault_with_hint(doc.root, format!("not an object: {lacks}"), hint.to_owned());
            }
            None
        }
    }
}
