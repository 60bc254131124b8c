//! Edits of pods: in the template of their workload, or in a pod that no workload makes.

use uturn_document::edit::{At, Change, Tree};
use uturn_model::{Client, ObjectKind, ObjectRef, Pod, WorkloadKind};

use super::{Case, Proposal, way};

/// The maximum number of pods of a workload that are edited along with its template.
const MAX: usize = 50;

/// An object whose pods are edited.
pub(super) struct Template {
    /// The workload or the pod.
    pub(super) object: ObjectRef,
    /// Whether it is a pod.
    is_pod: bool,
}

impl Template {
    /// Returns the template of a pod: that of its workload, or the pod itself. Returns `None` if
    /// the manifests do not have it, or if it has another form.
    pub(super) fn of_pod(case: &Case<'_>, pod: &Pod) -> Option<Self> {
        let own = Self { object: pod.object(), is_pod: true };
        let found = match &pod.owner {
            Some(owner) => Self::of_object(owner.clone())?,
            None => own,
        };
        case.manifests.has(&found.object).then_some(found)
    }

    /// Returns the template of the client of a case.
    pub(super) fn of_client(case: &Case<'_>) -> Option<Self> {
        match &case.walked()?.from {
            Client::Pod(name) => Self::of_pod(case, case.cluster().pods.get(name)?),
            Client::Workload(kind, name) => {
                let workload = case.cluster().workloads.get(&(*kind, name.clone()))?;
                Self::of_object(workload.object()).filter(|own| case.manifests.has(&own.object))
            }
            Client::Node(_) | Client::Outside(_) => None,
        }
    }

    /// Returns the template of a workload or a pod.
    pub(super) fn of_object(object: ObjectRef) -> Option<Self> {
        let is_pod = object.kind == ObjectKind::Pod;
        let kinds = [
            WorkloadKind::Deployment,
            WorkloadKind::StatefulSet,
            WorkloadKind::DaemonSet,
            WorkloadKind::ReplicaSet,
            WorkloadKind::ReplicationController,
            WorkloadKind::DeploymentConfig,
        ];
        let has_template = kinds.into_iter().any(|kind| ObjectKind::from(kind) == object.kind);
        (is_pod || has_template).then_some(Self { object, is_pod })
    }

    /// Returns the spec of the pods in the object as it is written.
    pub(super) fn spec<'t>(&self, written: &'t Tree) -> Option<&'t Tree> {
        if self.is_pod {
            return written.get("spec");
        }
        written.get("spec")?.get("template")?.get("spec")
    }

    /// Adds an argument to the container that has one like it already. Returns `None` if no container
    /// has, or if there are too many pods.
    pub(super) fn with_argument(
        &self,
        case: &Case<'_>,
        made: Proposal,
        argument: &str,
        is_like: impl Fn(&str) -> bool,
    ) -> Option<Proposal> {
        let written = case.manifests.object(&self.object)?;
        let mut containers = self.spec(&written)?.items_below(&["containers"]).iter();
        let at = containers.position(|container| {
            let words = container.items_below(&["args"]).iter();
            words.filter_map(Tree::as_str).any(&is_like)
        })?;
        let path = way!["spec", "containers", at, "args"];
        self.edit(case, made, &path, &Change::Append(Tree::text(argument)))
    }

    /// Changes a place of the pods: `path` is that in a pod. The pods of a workload are made anew
    /// with the change. Returns `None` if there are too many.
    pub(super) fn edit(
        &self,
        case: &Case<'_>,
        mut made: Proposal,
        path: &[At],
        change: &Change,
    ) -> Option<Proposal> {
        if self.is_pod {
            return Some(made.edit(self.object.clone(), path.to_vec(), change.clone()));
        }
        let mut way = way!["spec", "template"];
        way.extend_from_slice(path);
        made = made.edit(self.object.clone(), way, change.clone());
        let pods = case.cluster().pods.values();
        let pods = pods.filter(|pod| pod.owner.as_ref() == Some(&self.object) && !pod.supposed);
        let pods: Vec<ObjectRef> = pods.map(Pod::object).collect();
        if pods.len() > MAX {
            return None;
        }
        for pod in pods.into_iter().filter(|pod| case.manifests.has(pod)) {
            made = made.follow(pod, path.to_vec(), change.clone());
        }
        Some(made)
    }

    /// The effect of an edit.
    pub(super) fn cost(&self) -> String {
        let object = &self.object;
        if self.is_pod {
            format!("{object} has to be deleted and created again")
        } else {
            format!("{object} replaces its pods")
        }
    }
}
