//! Reads what controllers need besides a cluster's objects: UIDs, and the data of Secrets.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use uturn_document::{self as document, Keep, Node, Value, from_base64};
use uturn_model::{NamespacedName, ObjectKind, ObjectRef};

use crate::Manifests;

/// The UIDs and Secrets that controllers need besides a cluster's objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identities {
    /// The UIDs of Services and Ingresses that state one.
    pub uids: BTreeMap<ObjectRef, String>,
    /// The data of the requested Secrets, as texts.
    pub secrets: BTreeMap<NamespacedName, BTreeMap<String, String>>,
}

impl Manifests {
    /// Reads the UIDs of objects, and the data of these Secrets. No other Secret is read. A value
    /// that is not a text is left out.
    pub fn identities(&self, secrets: &BTreeSet<NamespacedName>) -> Identities {
        let mut found = Identities::default();
        for source in self.sources() {
            document::read(&source.text, Keep::All, &mut |document| {
                if let Ok(root) = document {
                    found.add(&root, secrets);
                }
                ControlFlow::Continue(())
            });
        }
        found
    }
}

impl Identities {
    fn add(&mut self, node: &Node<'_>, secrets: &BTreeSet<NamespacedName>) {
        let kind = node.get("kind").and_then(Node::as_str).unwrap_or_default();
        if let Some(Value::Seq(items)) = node.get("items").map(|items| &items.value)
            && kind.ends_with("List")
        {
            items.iter().for_each(|item| self.add(item, secrets));
            return;
        }
        let meta = |key: &str| node.get("metadata")?.get(key)?.as_str();
        let namespace = meta("namespace").unwrap_or("default");
        let name = NamespacedName::new(namespace, meta("name").unwrap_or_default());
        let Ok(name) = name else { return };
        let object = match kind {
            "Service" => Some(ObjectKind::Service),
            "Ingress" => Some(ObjectKind::Ingress),
            _ => None,
        };
        if let (Some(kind), Some(uid)) = (object, meta("uid")) {
            self.uids.insert(ObjectRef::namespaced(kind, &name), uid.to_owned());
        }
        if kind == "Secret" && secrets.contains(&name) {
            self.secrets.insert(name, held(node));
        }
    }
}

/// Returns the data of a Secret. `stringData` overrides `data`, as in the API server.
fn held(secret: &Node<'_>) -> BTreeMap<String, String> {
    let mut held = BTreeMap::new();
    for (key, value) in entries(secret, "data") {
        held.extend(base64_text(value).map(|text| (key.to_owned(), text)));
    }
    for (key, value) in entries(secret, "stringData") {
        held.insert(key.to_owned(), value.to_owned());
    }
    held
}

fn entries<'n>(node: &'n Node<'_>, key: &str) -> Vec<(&'n str, &'n str)> {
    let Some(Value::Map(entries)) = node.get(key).map(|map| &map.value) else { return Vec::new() };
    entries.iter().filter_map(|entry| Some((&*entry.key, entry.value.as_str()?))).collect()
}

/// Decodes a value of a Secret's `data` to a text. Returns `None` if it is not a text.
pub fn base64_text(value: &str) -> Option<String> {
    String::from_utf8(from_base64(value)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;

    #[test]
    fn uids_and_the_secrets_that_are_named() {
        let text = "
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop, uid: u-1}}
- {apiVersion: v1, kind: Service, metadata: {name: api, namespace: shop}}
- apiVersion: v1
  kind: Secret
  metadata: {name: cert, namespace: shop}
  data: {qcloud_cert_id: QWJjZDEyMzQ=, raw: //79, wrong: '?'}
  stringData: {note: plain}
- {apiVersion: v1, kind: Secret, metadata: {name: other, namespace: shop}, data: {a: QQ==}}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: front, uid: u-2}}
";
        let source = Source { name: "all.yaml".into(), text: text.to_owned() };
        let cert: NamespacedName = "shop/cert".parse().unwrap();
        let found = Manifests::of(vec![source]).identities(&BTreeSet::from([cert.clone()]));
        let uids: Vec<_> =
            found.uids.iter().map(|(object, uid)| (object.short(), uid.as_str())).collect();
        assert_eq!(
            uids,
            [("svc/shop/web".to_owned(), "u-1"), ("ingress/default/front".to_owned(), "u-2")]
        );
        assert_eq!(found.secrets.keys().collect::<Vec<_>>(), [&cert]);
        let held: Vec<_> = found.secrets[&cert].iter().map(|(k, v)| (&**k, &**v)).collect();
        assert_eq!(held, [("note", "plain"), ("qcloud_cert_id", "Abcd1234")]);
    }
}
