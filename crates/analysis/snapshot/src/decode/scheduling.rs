//! Reads the fields that decide on which nodes pods run: taints, tolerations, node selectors and
//! affinity.

use uturn_document::Node;
use uturn_model::scheduling::{Placement, Taint, Toleration};
use uturn_model::{Selector, Text};

use super::{Doc, meta, selector};

/// Reads the taints of a node that keep pods away; taints with other effects are only preferences.
pub(crate) fn taints<'d>(doc: &Doc<'d>, spec: &'d Node<'d>) -> Vec<Taint> {
    let taint = |item: &'d Node<'d>| {
        let effect = text(item, "effect").filter(|effect| effect.starts_with("No"))?;
        let value = text(item, "value").unwrap_or_else(|| "".into());
        Some(Taint { key: text(item, "key")?, value, effect })
    };
    doc.maps(spec, "taints").filter_map(taint).collect()
}

/// Reads the constraints on the nodes of a pod.
pub(crate) fn placement<'d>(doc: &Doc<'d>, spec: &'d Node<'d>) -> Placement {
    let toleration = |item: &'d Node<'d>| {
        let exists = text(item, "operator").as_deref() == Some("Exists");
        Toleration {
            key: text(item, "key"),
            value: (!exists).then(|| text(item, "value").unwrap_or_else(|| "".into())),
            effect: text(item, "effect"),
        }
    };
    Placement {
        node_selector: meta::labels(doc, spec, "nodeSelector"),
        node_terms: node_terms(doc, spec).unwrap_or_default(),
        tolerations: doc.maps(spec, "tolerations").map(toleration).collect(),
    }
}

/// Reads the terms of the required node affinity. Returns `None` if there is none, or if a term has
/// other conditions than labels can meet, such as a greater number.
fn node_terms<'d>(doc: &Doc<'d>, spec: &'d Node<'d>) -> Option<Vec<Selector>> {
    let affinity = doc.map(doc.map(spec, "affinity")?, "nodeAffinity")?;
    let required = doc.map(affinity, "requiredDuringSchedulingIgnoredDuringExecution")?;
    let terms: Vec<&'d Node<'d>> = doc.maps(required, "nodeSelectorTerms").collect();
    let is_plain = |term: &&'d Node<'d>| {
        let by_number =
            |item: &'d Node<'d>| matches!(text(item, "operator").as_deref(), Some("Gt" | "Lt"));
        term.get("matchFields").is_none() && !doc.maps(term, "matchExpressions").any(by_number)
    };
    let is_known = terms.iter().all(is_plain);
    is_known.then(|| terms.into_iter().map(|term| selector::of(doc, term)).collect())
}

/// Returns a text that is not empty.
fn text(item: &Node<'_>, key: &str) -> Option<Text> {
    item.get(key).and_then(|value| value.as_str()).filter(|text| !text.is_empty()).map(Text::from)
}
