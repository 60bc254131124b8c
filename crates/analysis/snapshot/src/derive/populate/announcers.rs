//! Finds the nodes on which the program that announces addresses of load balancers does not run.

use std::collections::BTreeSet;

use uturn_clouds::cloud;
use uturn_model::pod::PodSpec;
use uturn_model::{Cloud, Extent, Name, WorkloadKind};

use crate::decode::objects::Objects;

/// Marks the nodes on which the announcing program does not run: its DaemonSet excludes them
/// (`nodeSelector`, affinity, taints), or all pods are given and none of the program's is there.
pub(super) fn note_nodes_without(objects: &mut Objects, cloud: Option<Cloud>, extent: Extent) {
    let entry = cloud.and_then(cloud::entry);
    let Some(images) = entry.map(|entry| entry.announcer_images).filter(|all| !all.is_empty())
    else {
        return;
    };
    let runs_it = |spec: &PodSpec| {
        spec.containers.iter().any(|container| images.contains(&container.program()))
    };
    let sets = objects.workloads.0.values().filter(|set| set.kind == WorkloadKind::DaemonSet);
    let templates: Vec<&PodSpec> =
        sets.map(|set| &*set.template).filter(|spec| runs_it(spec)).collect();
    let pods = objects.pods.0.values().filter(|pod| extent.pods && runs_it(&pod.spec));
    let homes: BTreeSet<Name> = pods.filter_map(|pod| pod.node.clone()).collect();
    for node in objects.nodes.0.values_mut() {
        let is_unwanted =
            !templates.is_empty() && templates.iter().all(|spec| !spec.may_run_on(node));
        let is_empty = !homes.is_empty() && !homes.contains(&node.name);
        node.lacks_announcer = is_empty || (is_unwanted && node.has_all_labels());
    }
}
