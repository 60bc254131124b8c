//! Adds the names that ConfigMaps state to the containers that read them: in the templates of
//! workloads, and in pods that no given workload makes.

use std::collections::BTreeMap;
use std::sync::Arc;

use uturn_model::pod::{CalledName, PodSpec};
use uturn_model::{Name, NamespacedName, ObjectKind, ObjectRef, Text};

use crate::decode::objects::Objects;

type Maps = BTreeMap<NamespacedName, Vec<(Text, Vec<CalledName>)>>;

/// The maximum number of names that a container calls. Others in ConfigMaps are left out.
const MAX_CALLED: usize = 256;

/// Adds the names.
pub(super) fn complete(objects: &mut Objects) {
    let maps = std::mem::take(&mut objects.called_in_maps);
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
}

fn add(maps: &Maps, namespace: &Name, spec: &mut Arc<PodSpec>) {
    let named = |name: &Text| NamespacedName::new(namespace.as_str(), name).ok();
    let known = |name: &Text| named(name).is_some_and(|name| maps.contains_key(&name));
    let mut sources = spec.containers.iter().flat_map(|container| &container.reads);
    if !sources.any(|source| known(&source.config_map)) {
        return;
    }
    for container in &mut Arc::make_mut(spec).containers {
        for source in &container.reads {
            let Some(map) = named(&source.config_map).and_then(|name| maps.get(&name)) else {
                continue;
            };
            let read =
                map.iter().filter(|(key, _)| source.key.as_ref().is_none_or(|own| own == key));
            for called in read.flat_map(|(_, names)| names) {
                let stated =
                    CalledName { stated_in: Some(source.config_map.clone()), ..called.clone() };
                let is_known =
                    |own: &CalledName| own.host == called.host && own.port == called.port;
                if container.called.len() < MAX_CALLED && !container.called.iter().any(is_known) {
                    container.called.push(stated);
                }
            }
        }
    }
}
