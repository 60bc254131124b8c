//! Words that people also use in names of their own, such as `web` and `nginx`: they are kept only
//! in inputs in which the analysis reads something from them.

use std::collections::{BTreeSet, HashSet};
use std::sync::LazyLock;

use serde_json::Value;
use uturn_model::Cluster;

use crate::objects::text_of;
use crate::words::list;

/// Words in names of ports, which show what an Ingress controller accepts there.
static PORTS: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| list(include_str!("known/ports.txt")));

/// A class of Ingresses and of Gateways that is recognised by its name.
const CLASS: &str = "nginx";

/// Returns the words that are kept in these objects.
pub(crate) fn words(documents: &[Value], cluster: &Cluster) -> HashSet<&'static str> {
    let namespaces: BTreeSet<&str> =
        cluster.controllers.iter().map(|controller| controller.namespace.as_str()).collect();
    let mut words = HashSet::new();
    for document in documents {
        let namespace = document["metadata"]["namespace"].as_str().unwrap_or("default");
        if namespaces.contains(namespace) {
            ports(document, &mut words);
        }
        if classes(document).any(|class| class == CLASS) {
            words.insert(CLASS);
        }
    }
    words
}

/// Collects the words from the names of all ports.
fn ports(of: &Value, words: &mut HashSet<&'static str>) {
    match of {
        Value::Object(entries) => {
            for (field, value) in entries {
                match (&**field, value) {
                    ("ports", Value::Array(ports)) => {
                        let names = ["name", "targetPort"];
                        let texts =
                            ports.iter().flat_map(|port| names.map(|field| text_of(port, field)));
                        let all = texts.flat_map(|text| text.split('-'));
                        words.extend(all.filter_map(|word| PORTS.get(word)));
                    }
                    _ => ports(value, words),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| ports(item, words)),
        _ => {}
    }
}

/// Returns the classes that an object names or is.
fn classes(document: &Value) -> impl Iterator<Item = &str> {
    const ANNOTATION: &str = "kubernetes.io/ingress.class";
    let is_class = matches!(text_of(document, "kind"), "IngressClass" | "GatewayClass");
    let (metadata, spec) = (&document["metadata"], &document["spec"]);
    let own = is_class.then(|| text_of(metadata, "name"));
    let named = ["ingressClassName", "gatewayClassName"].map(|field| text_of(spec, field));
    let annotated = text_of(&metadata["annotations"], ANNOTATION);
    own.into_iter().chain(named).chain([annotated])
}
