//! Adds the labels that controllers put on pods besides those of the template, because Services may
//! select by them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use uturn_model::wording::{count, some_of};
use uturn_model::{NamespacedName, ObjectRef, Pod, Text, Workload, WorkloadKind};

use crate::decode::objects::Objects;
use crate::derive::Assumptions;

/// The labels whose values only the running cluster knows.
const HASHES: [&str; 9] = [
    "pod-template-hash",
    "controller-revision-hash",
    "rollouts-pod-template-hash",
    "pod-template-generation",
    "controller-uid",
    "batch.kubernetes.io/controller-uid",
    "deployment",
    "serving.knative.dev/revision",
    "serving.knative.dev/configurationGeneration",
];

/// Returns the labels of a made-up pod that follow from its workload, its name and its number (from
/// 1, except in a StatefulSet).
pub(super) fn of_pod(
    objects: &Objects,
    workload: &Workload,
    name: &NamespacedName,
    number: u32,
) -> Vec<(&'static str, Text)> {
    let own: Text = workload.name.name.as_str().into();
    match workload.kind {
        WorkloadKind::StatefulSet => vec![
            ("statefulset.kubernetes.io/pod-name", name.name.as_str().into()),
            ("apps.kubernetes.io/pod-index", number.to_string().into()),
        ],
        WorkloadKind::Job => {
            let mut labels = vec![("batch.kubernetes.io/job-name", own.clone()), ("job-name", own)];
            if objects.indexed.contains(&(workload.kind, workload.name.clone())) {
                let index = number.saturating_sub(1).to_string();
                labels.push(("batch.kubernetes.io/job-completion-index", index.into()));
            }
            labels
        }
        _ => Vec::new(),
    }
}

/// Gives made-up pods the hashes that Services select, if the rest of the selector fits: the
/// Services are those of a running cluster, and so are its pods.
pub(super) fn add_hashes(objects: &mut Objects, assumptions: &mut Assumptions) {
    let mut asked: BTreeMap<(ObjectRef, &'static str), BTreeSet<Text>> = BTreeMap::new();
    let mut asking = BTreeSet::new();
    for service in objects.services.0.values() {
        let Some(selector) = &service.selector else { continue };
        let is_hash = |key: &str| HASHES.iter().copied().find(|hash| *hash == key);
        if !selector.labels.iter().any(|(key, _)| is_hash(key).is_some()) {
            continue;
        }
        for pod in objects.pods.0.values().filter(|pod| pod.supposed) {
            let has = |key| pod.spec.labels.get(key);
            let fits = |(key, value)| match has(key) {
                Some(own) => own == value,
                None => is_hash(key).is_some(),
            };
            let here = pod.name.namespace == service.name.namespace;
            if !here || !selector.labels.iter().all(fits) {
                continue;
            }
            let Some(owner) = &pod.owner else { continue };
            for (key, value) in selector.labels.iter() {
                if let Some(hash) = is_hash(key).filter(|_| has(key).is_none()) {
                    asked.entry((owner.clone(), hash)).or_default().insert(value.into());
                    asking.insert(service.name.clone());
                }
            }
        }
    }
    if asked.is_empty() {
        return;
    }
    let mut dealt: BTreeMap<(ObjectRef, &'static str), usize> = BTreeMap::new();
    for pod in objects.pods.0.values_mut().filter(|pod| pod.supposed) {
        let Some(owner) = pod.owner.clone() else { continue };
        for hash in HASHES {
            let key = (owner.clone(), hash);
            let Some(values) = asked.get(&key) else { continue };
            let turn = dealt.entry(key).or_default();
            let value = values.iter().nth(*turn % values.len()).cloned();
            *turn += 1;
            add(pod, value.map(|value| (hash, value)));
        }
    }
    let asking: Vec<_> = asking.into_iter().collect();
    assumptions.assume(
        format!(
            "labels that {} by and no manifest has: {}",
            if asking.len() == 1 {
                "a Service selects".into()
            } else {
                format!("{} select", count(asking.len(), "Service"))
            },
            some_of(&asking)
        ),
        "the pods have them, in turns where there are several",
        "controllers put them on pods that run",
        "give the running Pod objects",
    );
}

/// Adds the labels that the pod does not have yet.
pub(super) fn add(pod: &mut Pod, labels: impl IntoIterator<Item = (&'static str, Text)>) {
    let mut labels =
        labels.into_iter().filter(|(key, _)| pod.spec.labels.get(key).is_none()).peekable();
    if labels.peek().is_none() {
        return;
    }
    let labels: Vec<_> = labels.collect();
    let own = pod.spec.labels.iter().map(|(key, value)| (key, Text::from(value)));
    let all = own.chain(labels).collect();
    Arc::make_mut(&mut pod.spec).labels = all;
}
