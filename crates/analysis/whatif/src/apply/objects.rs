//! Changes of objects in the texts.

use uturn_document::Source;
use uturn_document::edit::{At, Tree};
use uturn_model::{
    Labels, Name, ObjectKind, ObjectRef, Pod, Service, Text, Workload, WorkloadKind, misspelt,
};
use uturn_snapshot::{fields_of, read};

use super::{Texts, json_patch, merge, settle, value};
use crate::change::path::shown;
use crate::change::{Operation, PatchTarget, Written};

impl Texts<'_> {
    /// Replaces, patches or adds an object of a file.
    pub(super) fn put(&mut self, written: &Written) -> Result<(), String> {
        let Written { file, line, object, tree, lacks } = written;
        if object.kind == ObjectKind::Facts {
            return self.put_facts(file, tree);
        }
        self.touch(object);
        match (self.manifests.object(object), lacks) {
            (Some(old), None) => {
                let new = merge::with_assigned(&old, tree);
                checked(object, tree, file, *line)?;
                self.replace(file, object, &old, &new)
            }
            (Some(old), Some(_)) => {
                let is_strategic = !is_custom(&old);
                let new = merge::merge(&old, &without_identity(tree), &[], is_strategic);
                unknown_fields(object, tree)?;
                checked(object, &new, file, *line)?;
                self.replace(file, object, &old, &new)
            }
            (None, None) => {
                checked(object, tree, file, *line)?;
                self.manifests = self.manifests.with_source(at_line(file, *line, tree));
                Ok(())
            }
            // A kind without required parts may be new.
            (None, Some(_)) if object.kind == ObjectKind::ConfigMap => {
                self.manifests = self.manifests.with_source(at_line(file, *line, tree));
                Ok(())
            }
            (None, Some(lacks)) => Err(format!(
                "{object} is not there to be patched, and is no whole object: it lacks {lacks}{}",
                self.like(object)
            )),
        }
    }

    /// Makes operations on each object that a patch names.
    pub(super) fn operate(
        &mut self,
        target: &PatchTarget,
        operations: &[Operation],
    ) -> Result<(), String> {
        let objects = self.named(target);
        if objects.is_empty() {
            let sought = ObjectRef {
                kind: target.kind,
                namespace: target.namespace.clone(),
                name: target.name.clone(),
            };
            return Err(format!("{sought} is not there{}", self.like(&sought)));
        }
        for object in objects {
            let Some(old) = self.manifests.object(&object) else { continue };
            let new = json_patch::patched(&old, operations)?;
            self.touch(&object);
            checked(&object, &new, &"the patched object".into(), 1)?;
            self.replace(&"patched.yaml".into(), &object, &old, &new)?;
        }
        Ok(())
    }

    /// Deletes an object, with what it makes: ReplicaSets, Jobs and pods.
    pub(super) fn delete(&mut self, object: &ObjectRef) -> Result<(), String> {
        if !self.manifests.has(object) {
            return Err(format!("{object} is not there{}", self.like(object)));
        }
        self.touch(object);
        self.remove(object)?;
        for made in self.made_by(object) {
            self.remove(&made)?;
        }
        for pod in self.pods_of(object) {
            self.remove(&pod)?;
            self.forget_endpoints_of(&pod, None)?;
        }
        match object.kind {
            ObjectKind::Service => self.forget_endpoints(object)?,
            ObjectKind::Pod => self.forget_endpoints_of(object, None)?,
            _ => {}
        }
        Ok(())
    }

    fn remove(&mut self, object: &ObjectRef) -> Result<(), String> {
        if self.manifests.has(object) {
            let without = self.manifests.without_object(object);
            self.manifests = without.map_err(|why| why.to_string())?;
            self.deleted.push(object.clone());
        }
        Ok(())
    }

    /// Sets a value in an object.
    pub(super) fn set(
        &mut self,
        object: &ObjectRef,
        path: &[At],
        wanted: Option<&Tree>,
    ) -> Result<(), String> {
        if object.kind == ObjectKind::Facts {
            let wanted = wanted.ok_or("a fact cannot be removed")?;
            return self.set_fact(path, wanted);
        }
        let Some(old) = self.manifests.object(object) else {
            return Err(format!("{object} is not there{}", self.like(object)));
        };
        self.touch(object);
        let kind = object.kind.as_str();
        let new = value::with_value(&old, path, wanted, &|way| is_field(kind, way))?;
        checked(object, &new, &Text::default(), 0)?;
        self.replace(&"changed.yaml".into(), object, &old, &new)
    }

    fn replace(
        &mut self,
        file: &Text,
        object: &ObjectRef,
        old: &Tree,
        new: &Tree,
    ) -> Result<(), String> {
        let new = settle::settled(new);
        self.manifests =
            self.manifests.with_replaced(file, object, &new).map_err(|why| why.to_string())?;
        match object.kind {
            ObjectKind::Service if settle::has_other_endpoints(old, &new) => {
                self.forget_endpoints(object)
            }
            ObjectKind::Pod => self.forget_endpoints_of(object, Some(&new)),
            ObjectKind::Workload(_) => self.follow(object, old, &new),
            _ => Ok(()),
        }
    }

    /// Changes the pods that a workload makes as a changed template does. They stay on their nodes.
    fn follow(&mut self, workload: &ObjectRef, old: &Tree, new: &Tree) -> Result<(), String> {
        let replicas = |tree: &Tree| tree.below(&["spec", "replicas"]).cloned();
        let pods: Vec<ObjectRef> =
            self.pods_of(workload).into_iter().filter(|pod| self.manifests.has(pod)).collect();
        if replicas(old) != replicas(new) && !pods.is_empty() {
            self.notes.push(format!(
                "spec.replicas of {workload} changes, and its {} pods stay as they are: --scale tells \
                 what becomes of them",
                pods.len()
            ));
        }
        if settle::template(old) == settle::template(new) {
            return Ok(());
        }
        for pod in pods {
            let Some(own) = self.manifests.object(&pod) else { continue };
            let node = self.node_of(&pod);
            let changed = settle::of_template(&own, old, new, node.as_deref());
            self.manifests = self
                .manifests
                .with_replaced("changed.yaml", &pod, &changed)
                .map_err(|why| why.to_string())?;
            self.forget_endpoints_of(&pod, Some(&changed))?;
        }
        Ok(())
    }

    /// Returns the address of a pod's node.
    fn node_of(&self, pod: &ObjectRef) -> Option<String> {
        let pod = self.cluster.pods.get(&pod.namespaced_name()?)?;
        let node = self.cluster.nodes.get(pod.node.as_ref()?)?;
        node.internal_ips.first().map(ToString::to_string)
    }

    /// Removes the endpoints of the Services that select a pod, as it was or as it is after a change.
    fn forget_endpoints_of(&mut self, pod: &ObjectRef, new: Option<&Tree>) -> Result<(), String> {
        let Some(name) = pod.namespaced_name() else { return Ok(()) };
        let old = self.cluster.pods.get(&name).map(|pod| &pod.spec.labels);
        let labels: Labels = match new.and_then(|new| new.below(&["metadata", "labels"])) {
            Some(Tree::Map(entries)) => {
                let label = |(key, value): &(String, Tree)| {
                    Some((key.as_str().to_owned(), value.as_str()?.to_owned()))
                };
                entries.iter().filter_map(label).collect()
            }
            _ => Labels::new(),
        };
        let selects = |service: &&Service| {
            service.name.namespace == name.namespace
                && service.selector.as_ref().is_some_and(|selector| {
                    old.is_some_and(|old| selector.matches(old))
                        || new.is_some() && selector.matches(&labels)
                })
        };
        let services: Vec<ObjectRef> =
            self.cluster.services.values().filter(selects).map(Service::object).collect();
        services.iter().try_for_each(|service| self.forget_endpoints(service))
    }

    /// Removes the endpoints that a controller made of a Service's selector, so that they are
    /// derived anew.
    fn forget_endpoints(&mut self, service: &ObjectRef) -> Result<(), String> {
        let Some(name) = service.namespaced_name() else { return Ok(()) };
        let has_selector =
            self.cluster.services.get(&name).is_some_and(|service| service.selector.is_some());
        if !has_selector {
            return Ok(());
        }
        let slices: Vec<ObjectRef> = self
            .cluster
            .slices(&name)
            .iter()
            .map(|slice| ObjectRef::namespaced(ObjectKind::EndpointSlice, &slice.name))
            .collect();
        let whole = ObjectRef::namespaced(ObjectKind::Endpoints, &name);
        for made in slices.into_iter().chain([whole]) {
            if self.manifests.has(&made) {
                self.manifests =
                    self.manifests.without_object(&made).map_err(|why| why.to_string())?;
            }
        }
        Ok(())
    }

    /// Returns the ReplicaSets and Jobs that a workload makes, which are named after it.
    fn made_by(&self, workload: &ObjectRef) -> Vec<ObjectRef> {
        let ObjectKind::Workload(maker) = workload.kind else { return Vec::new() };
        let made = match maker {
            WorkloadKind::Deployment | WorkloadKind::Rollout => WorkloadKind::ReplicaSet,
            WorkloadKind::CronJob => WorkloadKind::Job,
            WorkloadKind::DeploymentConfig => WorkloadKind::ReplicationController,
            _ => return Vec::new(),
        };
        let is_its = |own: &&Workload| {
            own.kind == made
                && Some(&own.name.namespace) == workload.namespace.as_ref()
                && own.name.name.as_str().rsplit_once('-').map(|(name, _)| name)
                    == Some(&*workload.name)
        };
        self.cluster.workloads.values().filter(is_its).map(Workload::object).collect()
    }

    /// Returns the pods that a workload makes.
    fn pods_of(&self, workload: &ObjectRef) -> Vec<ObjectRef> {
        if !matches!(workload.kind, ObjectKind::Workload(_)) {
            return Vec::new();
        }
        let is_its = |pod: &&Pod| {
            uturn_diagnose::workload_of(pod) == *workload || pod.owner.as_ref() == Some(workload)
        };
        self.cluster.pods.values().filter(is_its).map(|pod| pod.object()).collect()
    }

    /// Returns the objects that a patch names.
    fn named(&self, target: &PatchTarget) -> Vec<ObjectRef> {
        let PatchTarget { kind, namespace, name } = target;
        let of = |namespace: Option<Name>| ObjectRef { kind: *kind, namespace, name: name.clone() };
        let candidates: Vec<ObjectRef> = match namespace {
            Some(namespace) => vec![of(Some(namespace.clone()))],
            None if crate::change::kind::is_global(*kind) => vec![of(None)],
            None => self.namespaces().into_iter().map(|namespace| of(Some(namespace))).collect(),
        };
        candidates.into_iter().filter(|object| self.manifests.has(object)).collect()
    }

    fn namespaces(&self) -> Vec<Name> {
        let cluster = self.cluster;
        let mut all: Vec<Name> = cluster
            .services
            .keys()
            .chain(cluster.pods.keys())
            .chain(cluster.workloads.values().map(|own| &own.name))
            .chain(cluster.ingresses.keys())
            .map(|name| name.namespace.clone())
            .collect();
        all.extend(Name::new("default"));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Returns a hint with the object that a misspelt one may mean.
    fn like(&self, object: &ObjectRef) -> String {
        let cluster = self.cluster;
        let names: Vec<String> = match object.kind {
            ObjectKind::Node => cluster.nodes.keys().map(ToString::to_string).collect(),
            ObjectKind::Service => cluster.services.keys().map(ToString::to_string).collect(),
            ObjectKind::Pod => cluster.pods.keys().map(ToString::to_string).collect(),
            ObjectKind::Ingress => cluster.ingresses.keys().map(ToString::to_string).collect(),
            ObjectKind::Workload(kind) => {
                let own = cluster.workloads.values().filter(|own| own.kind == kind);
                own.map(|own| own.name.to_string()).collect()
            }
            _ => Vec::new(),
        };
        let wanted = match &object.namespace {
            Some(namespace) => format!("{namespace}/{}", object.name),
            None => object.name.to_string(),
        };
        if names.contains(&wanted) {
            return " as an object of the input, from which it was derived: change what it comes from"
                .to_owned();
        }
        let same_name = || {
            let mut elsewhere =
                names.iter().filter(|own| own.rsplit('/').next() == Some(&*object.name));
            elsewhere.next().map(|own| format!("; did you mean {own}?"))
        };
        match misspelt::hint(&wanted, names.iter().map(String::as_str)) {
            hint if hint.is_empty() => same_name().unwrap_or_default(),
            hint => hint,
        }
    }
}

/// Returns whether an object's lists are replaced by patches: those of custom resources, whose
/// schema no file states.
fn is_custom(tree: &Tree) -> bool {
    let version = tree.get("apiVersion").and_then(Tree::as_str).unwrap_or_default();
    version.split_once('/').is_some_and(|(group, _)| {
        group.contains('.') && !group.ends_with(".k8s.io") || group == "gateway.networking.k8s.io"
    })
}

/// Returns a patch without what names its object.
fn without_identity(tree: &Tree) -> Tree {
    let Tree::Map(entries) = tree else { return tree.clone() };
    let kept = entries.iter().filter(|(key, _)| key != "apiVersion" && key != "kind");
    let kept = kept.map(|(key, value)| match (key.as_str(), value) {
        ("metadata", Tree::Map(meta)) => {
            let meta = meta.iter().filter(|(key, _)| key != "name" && key != "namespace");
            (key.clone(), Tree::Map(meta.cloned().collect()))
        }
        _ => (key.clone(), value.clone()),
    });
    Tree::Map(kept.collect())
}

/// Returns a document at its line of a file.
fn at_line(file: &Text, line: u32, tree: &Tree) -> Source {
    let above = "\n".repeat(line.saturating_sub(1) as usize);
    Source { name: file.clone(), text: above + &tree.document() }
}

/// Reads an object alone. Returns its first fault: a misspelt field, or a value of a wrong type.
fn checked(object: &ObjectRef, tree: &Tree, file: &Text, line: u32) -> Result<(), String> {
    let faults = match read(vec![at_line(file, line.max(1), tree)]) {
        Ok(_) => return Ok(()),
        Err(faults) => faults,
    };
    // An object alone may lack others that it refers to, which is no fault of the change.
    let Some(fault) = faults.first() else { return Ok(()) };
    let field = fault.field.as_deref().map(|field| format!("{field}: ")).unwrap_or_default();
    let hint = fault.hint.as_deref().map(|hint| format!("; {hint}")).unwrap_or_default();
    Err(format!("{object}: {field}{}{hint}", fault.message))
}

/// Returns an error if a kind is known not to have the last key of a path.
fn is_field(kind: &str, path: &[At]) -> Result<(), String> {
    let Some((At::Key(key), above)) = path.split_last() else { return Ok(()) };
    let keys: Vec<&str> = above
        .iter()
        .filter_map(|step| match step {
            At::Key(key) => Some(key.as_str()),
            At::Item(_) | At::Where(..) => None,
        })
        .collect();
    let Some(fields) = fields_of(kind, &keys) else { return Ok(()) };
    if fields.contains(&key.as_str()) {
        return Ok(());
    }
    let hint = misspelt::hint(key, fields.iter().copied());
    let whose = if above.is_empty() { format!("a {kind}") } else { shown(above) };
    Err(format!("{}: {whose} has no field {key}{hint}", shown(path)))
}

/// Returns an error for the first field of a patch that its kind does not have.
fn unknown_fields(object: &ObjectRef, patch: &Tree) -> Result<(), String> {
    fn each(kind: &str, tree: &Tree, path: &mut Vec<At>) -> Result<(), String> {
        match tree {
            Tree::Map(entries) => {
                for (key, value) in entries.iter().filter(|(key, _)| !key.starts_with('$')) {
                    path.push(At::Key(key.clone()));
                    is_field(kind, path)?;
                    each(kind, value, path)?;
                    path.pop();
                }
                Ok(())
            }
            Tree::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    path.push(At::Item(at));
                    each(kind, item, path)?;
                    path.pop();
                }
                Ok(())
            }
            Tree::Text(_) | Tree::Bare(_) => Ok(()),
        }
    }
    each(object.kind.as_str(), patch, &mut Vec::new())
}
