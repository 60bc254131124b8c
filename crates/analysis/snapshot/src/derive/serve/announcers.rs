//! Determines which nodes announce addresses of load balancers: by objects that state it, and by
//! where the announcing program runs.

use uturn_clouds::cloud;
use uturn_model::Announcements;

use crate::decode::announcement::MAP;
use crate::decode::objects::Objects;
use crate::derive::ground::kube_proxy;

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
    let is_map = |object: &str| object.starts_with(MAP);
    // Releases that read objects read no ConfigMap, even if one is left of an older release.
    let has_objects =
        kinds().flat_map(|objects| objects.kinds()).any(|kind| objects.seen.contains_key(kind));
    let reads_maps = !has_objects && !is_new(objects);
    let counts = |object: &str| reads_maps || !is_map(object);
    Announcements {
        pools: objects.pools.0.values().filter(|own| counts(&own.object)).cloned().collect(),
        all: objects.announcements.0.values().filter(|own| counts(&own.object)).cloned().collect(),
        lacks_labels: objects.nodes.0.values().any(|node| !node.has_all_labels()),
        are_complete: objects.complete || is_listed(),
    }
}

/// Returns whether the program that announces is of a release that reads no ConfigMap.
fn is_new(objects: &Objects) -> bool {
    let readers = || cloud::ALL.into_iter().filter(|entry| entry.announcements.is_some());
    let workloads = objects.workloads.0.values().map(|workload| &workload.template);
    let pods = objects.pods.0.values().map(|pod| &pod.spec);
    workloads.chain(pods).flat_map(|spec| &spec.containers).any(|container| {
        readers().any(|entry| {
            let before = entry.announcements.as_ref().and_then(|objects| objects.before.as_ref());
            let is_it = entry.versions_of.contains(&container.program());
            let version = kube_proxy::tag(&container.image).filter(|_| is_it);
            before.zip(version).is_some_and(|(before, version)| version >= before.until)
        })
    })
}
