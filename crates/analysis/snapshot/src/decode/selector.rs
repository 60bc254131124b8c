//! Reads label selectors.

use uturn_document::Node;
use uturn_model::labels::{Operator, Requirement};
use uturn_model::{Selector, Text};

use super::{Doc, meta};

/// Reads `matchLabels` and `matchExpressions` under `key`. Returns `None` if the key is missing.
pub(crate) fn read<'d>(doc: &Doc<'d>, parent: &'d Node<'d>, key: &str) -> Option<Selector> {
    Some(of(doc, doc.map(parent, key)?))
}

/// Reads `matchLabels` and `matchExpressions` of a mapping.
pub(crate) fn of<'d>(doc: &Doc<'d>, node: &'d Node<'d>) -> Selector {
    let expressions = doc.maps(node, "matchExpressions").filter_map(|item| {
        let key = doc.need::<Text>(item, "key");
        let values = doc.list::<Text>(item, "values");
        let operator = match doc.need::<Text>(item, "operator")?.as_ref() {
            "In" => Operator::In(values),
            "NotIn" => Operator::NotIn(values),
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            other => {
                let message =
                    format!("expected In, NotIn, Exists or DoesNotExist, found {other:?}");
                doc.fault(item.get("operator").unwrap_or(item), message);
                return None;
            }
        };
        Some(Requirement { key: key?, operator })
    });
    let expressions = expressions.collect();
    Selector { labels: meta::labels(doc, node, "matchLabels"), expressions }
}
