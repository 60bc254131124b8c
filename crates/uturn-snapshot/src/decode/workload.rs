//! Deployments and the other workloads.

use uturn_model::{Selector, Workload, WorkloadKind};

use super::{Doc, calico, meta, pod, selector};
use crate::objects::Objects;

/// Reads a workload.
pub(crate) fn read(doc: &Doc<'_>, objects: &mut Objects, kind: WorkloadKind) {
    let meta = meta::read(doc);
    let Some(mut spec) = doc.need_map(doc.root, "spec") else { return };
    if kind == WorkloadKind::CronJob {
        let job = doc.need_map(spec, "jobTemplate").and_then(|job| doc.need_map(job, "spec"));
        let Some(job) = job else { return };
        spec = job;
    }
    let Some(template) = doc.need_map(spec, "template") else { return };
    if kind == WorkloadKind::DaemonSet {
        calico::look_into(doc, template.get("spec"), objects);
    }
    let beside = doc.map(template, "metadata");
    let labels = |key| beside.map(|beside| meta::labels(doc, beside, key)).unwrap_or_default();
    let template =
        pod::spec(doc, doc.need_map(template, "spec"), labels("labels"), labels("annotations"));
    let replicas = match kind {
        WorkloadKind::Job | WorkloadKind::CronJob => doc.read(spec, "parallelism"),
        _ => doc.read(spec, "replicas"),
    };
    let selector = selector::read(doc, spec, "selector");
    let Some(meta) = meta else { return };
    let workload = Workload {
        kind,
        replicas: replicas.unwrap_or(1),
        selector: selector.unwrap_or_else(|| Selector::labels(template.labels.clone())),
        template,
        origin: meta.origin,
        name: meta.name,
    };
    objects.workloads.add(doc, (kind, workload.name.clone()), workload);
}
