//! Determines which nodes announce addresses of load balancers: by objects that state it, and by
//! where the announcing program runs.

use uturn_clouds::cloud;
use uturn_model::Announcements;

use crate::decode::objects::Objects;

/// Returns what objects state about announcements. The objects are complete if that is stated, or
/// if an API server returned all of them.
pub(super) fn derive(objects: &Objects) -> Announcements {
    let kinds = || cloud::ALL.into_iter().filter_map(|entry| entry.announcements.as_ref());
    let is_unread =
        |kind: &str| objects.listing.unread.iter().any(|unread| unread.what.contains(kind));
    let is_listed = || {
        objects.listing.extent.is_some()
            && !kinds().flat_map(|objects| objects.kinds()).any(is_unread)
    };
    Announcements {
        pools: objects.pools.0.values().cloned().collect(),
        all: objects.announcements.0.values().cloned().collect(),
        lacks_labels: objects.nodes.0.values().any(|node| !node.has_all_labels()),
        are_complete: objects.complete || is_listed(),
    }
}
