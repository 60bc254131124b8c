//! The Facts document, which cures edit if it states what they change.

use std::net::IpAddr;

use uturn_document::edit::At;
use uturn_model::{ObjectKind, ObjectRef};

use super::way;

/// Returns the reference to the Facts document.
pub(super) fn facts() -> ObjectRef {
    ObjectRef::global(ObjectKind::Facts, "facts")
}

pub(super) fn probe_source_path(vip: IpAddr) -> Vec<At> {
    way!["loadBalancers", At::Where("vip".into(), vip.to_string()), "probeSource"]
}
