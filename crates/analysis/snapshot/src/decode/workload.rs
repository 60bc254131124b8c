//! Reads Deployments and other workloads, and other objects that create pods from a template.

use std::cell::RefCell;

use uturn_document::{Faults, Node, Value};
use uturn_model::pod::PodSpec;
use uturn_model::{Labels, NamespacedName, Origin, Selector, Text, Workload, WorkloadKind};

use super::objects::Objects;
use super::{Doc, calico, fields, meta, pod, selector};

/// Reads a workload.
pub(crate) fn read(doc: &Doc<'_>, objects: &mut Objects, kind: WorkloadKind) {
    let meta = meta::read(doc);
    let Some(mut spec) = doc.need_map(doc.root, "spec") else { return };
    if kind == WorkloadKind::CronJob {
        let job = doc.need_map(spec, "jobTemplate").and_then(|job| doc.need_map(job, "spec"));
        let Some(job) = job else { return };
        spec = job;
    }
    doc.spelled(spec, fields::WORKLOAD);
    if kind == WorkloadKind::DaemonSet {
        let inner = spec.get("template").and_then(|template| template.get("spec"));
        calico::look_into(doc, inner, objects);
    }
    let Some(mut template) = template(doc, spec) else { return };
    if kind == WorkloadKind::StatefulSet {
        // The controller gives the pods host names below this Service.
        template.subdomain = doc.read(spec, "serviceName").or(template.subdomain);
    }
    let count = if kind.ends() { "parallelism" } else { "replicas" };
    let replicas = doc.read(spec, count);
    let selector = match kind {
        // The selector is a plain mapping of labels.
        WorkloadKind::ReplicationController => plain_selector(doc, spec),
        _ => selector::read(doc, spec, "selector"),
    };
    let first_number = match doc.map(spec, "ordinals") {
        Some(ordinals) if kind == WorkloadKind::StatefulSet => doc.read(ordinals, "start"),
        _ => None,
    };
    let Some(meta) = meta else { return };
    let key = (kind, meta.name.clone());
    if replicas.is_none() && !kind.ends() {
        objects.unscaled.insert(key.clone());
    }
    if let Some(first) = first_number {
        objects.first_numbers.insert(meta.name.clone(), first);
    }
    if doc.read::<Text>(spec, "completionMode").as_deref() == Some("Indexed") {
        objects.indexed.insert(key.clone());
    }
    let workload = Workload {
        kind,
        replicas: replicas.unwrap_or(1),
        selector: selector.unwrap_or_else(|| Selector::labels(template.labels.clone())),
        template: template.into(),
        origin: meta.origin,
        name: meta.name,
    };
    objects.workloads.add(doc, key, workload);
}

/// Reads the pod template of a workload.
fn template<'d>(doc: &Doc<'d>, spec: &'d Node<'d>) -> Option<PodSpec> {
    let template = doc.need_map(spec, "template")?;
    doc.spelled(template, fields::TEMPLATE);
    let beside = doc.map(template, "metadata");
    if let Some(beside) = beside {
        doc.spelled(beside, fields::METADATA);
    }
    let labels = |key| beside.map(|beside| meta::labels(doc, beside, key)).unwrap_or_default();
    Some(pod::spec(doc, doc.need_map(template, "spec"), labels("labels"), labels("annotations")))
}

fn plain_selector<'d>(doc: &Doc<'d>, spec: &'d Node<'d>) -> Option<Selector> {
    let labels = meta::labels(doc, spec, "selector");
    (!labels.is_empty()).then(|| Selector::labels(labels))
}

/// Reads an object of an unknown kind if it creates pods from a template, and returns whether it
/// does. Its faults are ignored.
pub(crate) fn read_other(doc: &Doc<'_>, kind: &str, objects: &mut Objects) -> bool {
    let Some(spec) = doc.root.get("spec") else { return false };
    let faults = RefCell::new(Faults::default());
    let doc = &Doc { faults: &faults, ..*doc };
    let found = match spec.get("template").and_then(|template| template.get("spec")) {
        Some(pod) if is_list(pod.get("containers")) => made_of_template(doc, spec, kind),
        _ => return kind == "Rollout" && refers(doc, spec, objects),
    };
    let Some((workload, is_unscaled)) = found.filter(|_| faults.borrow().count() == 0) else {
        return false;
    };
    let key = (workload.kind, workload.name.clone());
    if objects.workloads.0.contains_key(&key) {
        return false;
    }
    if is_unscaled {
        objects.unscaled.insert(key.clone());
    }
    objects.workloads.0.insert(key, workload);
    true
}

fn is_list(node: Option<&Node<'_>>) -> bool {
    matches!(node, Some(Node { value: Value::Seq(items), .. }) if !items.is_empty())
}

fn made_of_template<'d>(doc: &Doc<'d>, spec: &'d Node<'d>, kind: &str) -> Option<(Workload, bool)> {
    let mut template = template(doc, spec)?;
    let meta = meta::read(doc)?;
    let replicas = spec.get("replicas").and_then(|count| super::FromNode::from_node(count).ok());
    template.labels = added(kind, &meta.name, &template.labels);
    let kind = match kind {
        "DeploymentConfig" => WorkloadKind::DeploymentConfig,
        "Rollout" => WorkloadKind::Rollout,
        "CloneSet" => WorkloadKind::CloneSet,
        // Other API groups have kinds with the same name and purpose.
        "Deployment" => WorkloadKind::Deployment,
        other if other.ends_with("StatefulSet") => WorkloadKind::StatefulSet,
        other if other.ends_with("DaemonSet") => WorkloadKind::DaemonSet,
        other if other.ends_with("Job") => WorkloadKind::Job,
        _ => WorkloadKind::Other,
    };
    let workload = Workload {
        kind,
        replicas: replicas.unwrap_or(1),
        selector: any_selector(spec).unwrap_or_else(|| Selector::labels(template.labels.clone())),
        template: template.into(),
        origin: meta.origin,
        name: meta.name,
    };
    Some((workload, replicas.is_none()))
}

/// Returns the labels of a template, with those that the controller puts on every pod.
fn added(kind: &str, name: &NamespacedName, labels: &Labels) -> Labels {
    let keys: &[&str] = match kind {
        "DeploymentConfig" => &["deploymentconfig"],
        // This is Knative's Service: no other Service has a template.
        "Service" => &["serving.knative.dev/service", "serving.knative.dev/configuration"],
        _ => &[],
    };
    let own = keys.iter().map(|key| (*key, name.name.as_str()));
    labels.iter().chain(own).map(|(key, value)| (key, Text::from(value))).collect()
}

/// Reads a selector of either form: labels alone, or `matchLabels`.
fn any_selector(spec: &Node<'_>) -> Option<Selector> {
    let node = spec.get("selector")?;
    let labels = match (node.get("matchLabels"), node.get("matchExpressions")) {
        (_, Some(_)) => return None,
        (Some(labels), None) => labels,
        (None, None) => node,
    };
    let Value::Map(entries) = &labels.value else { return None };
    let texts = entries.iter().map(|entry| Some((&*entry.key, Text::from(entry.value.as_str()?))));
    let labels: Labels = texts.collect::<Option<Vec<_>>>()?.into_iter().collect();
    (!labels.is_empty()).then(|| Selector::labels(labels))
}

/// An Argo Rollout that takes its template from a Deployment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reference {
    pub(crate) name: NamespacedName,
    pub(crate) deployment: NamespacedName,
    pub(crate) replicas: u32,
    pub(crate) origin: Origin,
}

fn refers<'d>(doc: &Doc<'d>, spec: &'d Node<'d>, objects: &mut Objects) -> bool {
    let Some(target) = spec.get("workloadRef") else { return false };
    let is_deployment = target.get("kind").and_then(Node::as_str) == Some("Deployment");
    let (Some(meta), Some(name)) = (meta::read(doc), target.get("name")) else { return false };
    let Some(name) = doc.value(name).filter(|_| is_deployment) else { return false };
    objects.references.push(Reference {
        deployment: NamespacedName { namespace: meta.name.namespace.clone(), name },
        replicas: doc.read(spec, "replicas").unwrap_or(1),
        origin: meta.origin,
        name: meta.name,
    });
    true
}

/// The effect of an autoscaler on a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Autoscaling {
    /// The minimum number of pods.
    pub(crate) least: u32,
    /// Whether the autoscaler also creates pods of a workload with zero replicas.
    pub(crate) raises_from_zero: bool,
}

/// Reads a HorizontalPodAutoscaler.
pub(crate) fn read_autoscaler(doc: &Doc<'_>, objects: &mut Objects) {
    let Some(meta) = meta::read(doc) else { return };
    let Some(spec) = doc.need_map(doc.root, "spec") else { return };
    let Some(target) = doc.need_map(spec, "scaleTargetRef") else { return };
    let least = doc.read(spec, "minReplicas").unwrap_or(1);
    let kind = doc.need::<Text>(target, "kind");
    let Some(name) = doc.need(target, "name") else { return };
    if let Some(kind) = kind.as_deref().and_then(WorkloadKind::from_word) {
        let name = NamespacedName { namespace: meta.name.namespace, name };
        let autoscaling = Autoscaling { least, raises_from_zero: false };
        objects.autoscaled.insert((kind, name), autoscaling);
    }
}

/// The annotation with the number of pods that KEDA keeps while the workload is paused.
const PAUSED_REPLICAS: &str = "autoscaling.keda.sh/paused-replicas";

/// Reads a ScaledObject of KEDA, which creates pods of a workload with none as soon as there is
/// work for them. The workload is analysed as if there is work.
pub(crate) fn read_scaled_object(doc: &Doc<'_>, objects: &mut Objects) {
    let Some(meta) = meta::read(doc) else { return };
    let Some(spec) = doc.need_map(doc.root, "spec") else { return };
    let Some(target) = doc.need_map(spec, "scaleTargetRef") else { return };
    let least: u32 = doc.read(spec, "minReplicaCount").unwrap_or_default();
    let paused = meta.annotations.get(PAUSED_REPLICAS).and_then(|count| count.parse().ok());
    let kind = match target.get("kind") {
        Some(kind) => kind.as_str().and_then(WorkloadKind::from_word),
        None => Some(WorkloadKind::Deployment),
    };
    let Some(name) = doc.need(target, "name") else { return };
    if let Some(kind) = kind {
        let name = NamespacedName { namespace: meta.name.namespace, name };
        let autoscaling =
            Autoscaling { least: paused.unwrap_or(least.max(1)), raises_from_zero: true };
        objects.autoscaled.insert((kind, name), autoscaling);
    }
}
