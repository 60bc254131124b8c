//! Adds the names that ConfigMaps state to the containers that read them: in the templates of
//! workloads, and in pods that no given workload makes.

use std::collections::BTreeMap;
use std::sync::Arc;

use uturn_model::pod::{CalledName, Container, PodSpec};
use uturn_model::{Name, NamespacedName, ObjectKind, ObjectRef, Text};

use crate::decode::objects::Objects;

type Maps = BTreeMap<NamespacedName, Vec<(Text, Vec<CalledName>)>>;

/// The maximum number of names that a container calls. Others in ConfigMaps are left out.
const MAX_CALLED: usize = 256;

/// Adds the names.
pub(super) fn complete(objects: &mut Objects) {
    let mut maps = std::mem::take(&mut objects.called_in_maps);
    if maps.is_empty() {
        return;
    }
    for workload in objects.workloads.0.values_mut() {
        add(&maps, &workload.name.namespace, &mut workload.template);
    }
    let workloads = &objects.workloads.0;
    let is_made = |owner: &ObjectRef| match (owner.kind, owner.namespaced_name()) {
        (ObjectKind::Workload(kind), Some(name)) => workloads.contains_key(&(kind, name)),
        _ => false,
    };
    // Pods of one owner are many, and share their spec: those of a workload are left as they are.
    let bare = objects.pods.0.values_mut().filter(|pod| !pod.owner.as_ref().is_some_and(is_made));
    for pod in bare {
        add(&maps, &pod.name.namespace, &mut pod.spec);
    }
    let of_workloads = objects.workloads.0.values();
    let of_workloads = of_workloads.map(|workload| (&workload.name.namespace, &*workload.template));
    let of_pods = objects.pods.0.values().map(|pod| (&pod.name.namespace, &*pod.spec));
    for (namespace, spec) in of_workloads.chain(of_pods) {
        for source in spec.containers.iter().flat_map(|container| &container.reads) {
            if let Ok(name) = NamespacedName::new(namespace.as_str(), &source.config_map) {
                maps.remove(&name);
            }
        }
    }
    for workload in objects.workloads.0.values_mut() {
        suppose(&maps, &workload.name, &mut workload.template);
    }
}

/// Adds the names in ConfigMaps that nothing reads to a workload whose volumes are not given, if a
/// ConfigMap is called like the workload.
fn suppose(unread: &Maps, workload: &NamespacedName, spec: &mut Arc<PodSpec>) {
    if spec.containers.iter().any(|container| !container.reads.is_empty()) {
        return;
    }
    let own = workload.name.as_str();
    let is_its = |name: &NamespacedName| {
        let rest = name.name.as_str().strip_prefix(own);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    let from = unread.range(workload.clone()..);
    let near = from.take_while(|(name, _)| {
        name.namespace == workload.namespace && name.name.as_str().starts_with(own)
    });
    let found: Vec<_> = near.filter(|(name, _)| is_its(name)).collect();
    if found.is_empty() {
        return;
    }
    let Some(container) = Arc::make_mut(spec).containers.first_mut() else { return };
    for (name, entries) in found {
        let map = Text::from(name.name.as_str());
        for called in entries.iter().flat_map(|(_, names)| names) {
            state(container, called, &map, true);
        }
    }
}

fn add(maps: &Maps, namespace: &Name, spec: &mut Arc<PodSpec>) {
    let named = |name: &Text| NamespacedName::new(namespace.as_str(), name).ok();
    let known = |name: &Text| named(name).is_some_and(|name| maps.contains_key(&name));
    let mut sources = spec.containers.iter().flat_map(|container| &container.reads);
    if !sources.any(|source| known(&source.config_map)) {
        return;
    }
    for container in &mut Arc::make_mut(spec).containers {
        for source in container.reads.clone() {
            let Some(map) = named(&source.config_map).and_then(|name| maps.get(&name)) else {
                continue;
            };
            let read =
                map.iter().filter(|(key, _)| source.key.as_ref().is_none_or(|own| own == key));
            for called in read.flat_map(|(_, names)| names) {
                state(container, called, &source.config_map, false);
            }
        }
    }
}

/// Adds a name that a ConfigMap states, unless the container calls it already.
fn state(container: &mut Container, called: &CalledName, map: &Text, is_supposed: bool) {
    let is_known = |own: &CalledName| own.host == called.host && own.port == called.port;
    if container.called.len() < MAX_CALLED && !container.called.iter().any(is_known) {
        container.called.push(CalledName {
            stated_in: Some(map.clone()),
            is_supposed,
            ..called.clone()
        });
    }
}
