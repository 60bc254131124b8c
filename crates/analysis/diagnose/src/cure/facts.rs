//! The Facts document, which cures edit if it states what they change.

use std::net::IpAddr;

use uturn_document::edit::{At, Tree};
use uturn_model::{ObjectKind, ObjectRef};

use super::way;

/// Returns the reference to the Facts document.
pub(super) fn facts() -> ObjectRef {
    ObjectRef::global(ObjectKind::Facts, "facts")
}

/// The `apiVersion` of Facts.
const VERSION: &str = "uturn.dev/v1alpha1";

/// Makes a Facts document.
pub(super) fn document(spec: Tree) -> Tree {
    Tree::map([("apiVersion", Tree::text(VERSION)), ("kind", Tree::text("Facts")), ("spec", spec)])
}

pub(super) fn probe_source_path(vip: IpAddr) -> Vec<At> {
    way!["loadBalancers", At::Where("vip".into(), vip.to_string()), "probeSource"]
}
