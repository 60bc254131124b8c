//! Puts manifests into an API server, status and all, and gets them back.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use uturn_snapshot::{Manifests, json_objects};

use crate::control_plane::ControlPlane;

/// Kinds whose status is written by itself.
const WITH_STATUS: [&str; 4] = ["Node", "Pod", "Service", "Ingress"];

/// What `kubectl get` is asked for: all that uturn reads.
const RESOURCES: &str = "nodes,pods,services,endpointslices,ingresses,ingressclasses,\
    networkpolicies,deployments,statefulsets,daemonsets,replicasets,jobs,cronjobs,\
    replicationcontrollers,horizontalpodautoscalers,configmaps,tkeserviceconfigs,\
    validatingwebhookconfigurations,mutatingwebhookconfigurations,apiservices,persistentvolumes";

/// Puts the objects of files into the server.
pub(crate) fn put(plane: &ControlPlane, paths: &[PathBuf]) {
    let (manifests, faults) = Manifests::gather(paths, &[]);
    assert!(faults.is_empty(), "{faults:?}");
    let mut objects = json_objects(manifests.sources()).unwrap();
    objects.iter_mut().for_each(prepare);
    let namespaces: BTreeSet<&str> =
        objects.iter().filter_map(|object| object["metadata"]["namespace"].as_str()).collect();
    let namespaces: Vec<Value> = namespaces
        .into_iter()
        .filter(|name| !matches!(*name, "default" | "kube-system"))
        .map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
        .collect();
    let definitions = crate::run(plane, &["operator", "manifests"], crate::ADMIN);
    let path = plane.file("operator.yaml");
    std::fs::write(&path, &definitions.stdout).unwrap();
    plane.kubectl_done(&["apply", "-f", &path.display().to_string()]);
    plane.kubectl_done(&["wait", "--for=condition=Established", "--timeout=10m", "crd", "--all"]);
    plane.kubectl_list(&["create", "--validate=false"], &namespaces);
    // The server makes some at its start.
    let is_there = |object: &&Value| {
        let name = &object["metadata"]["name"];
        object["kind"] == "Service" && name == "kubernetes" || object["kind"] == "Namespace"
    };
    let new: Vec<Value> = objects.iter().filter(|object| !is_there(object)).cloned().collect();
    plane.kubectl_list(&["create", "--validate=false"], &new);
    let is_stated = |object: &&Value| {
        WITH_STATUS.iter().any(|kind| object["kind"] == *kind) && object["status"].is_object()
    };
    let stated: Vec<Value> = new.iter().filter(is_stated).cloned().collect();
    plane.kubectl_list(&["replace", "--validate=false", "--subresource=status"], &stated);
}

/// Leaves out what only a server may write, and names owners as a server wants them.
pub(crate) fn prepare(object: &mut Value) {
    let Some(meta) = object["metadata"].as_object_mut() else { return };
    for field in ["resourceVersion", "uid", "creationTimestamp", "generation", "managedFields"] {
        meta.remove(field);
    }
    for owner in meta.get_mut("ownerReferences").and_then(Value::as_array_mut).into_iter().flatten()
    {
        if owner["uid"].as_str().unwrap_or_default().is_empty() {
            owner["uid"] = "00000000-0000-0000-0000-000000000001".into();
        }
    }
}

/// Everything as `kubectl get` prints it, in a file.
pub(crate) fn get(plane: &ControlPlane) -> PathBuf {
    let text = plane.kubectl_done(&["get", RESOURCES, "--all-namespaces", "--output=json"]);
    let path = plane.file("got.json");
    std::fs::write(&path, text).unwrap();
    path
}

/// The Facts among generated objects, in a file.
pub(crate) fn facts(plane: &ControlPlane, generated: &Path) -> Option<PathBuf> {
    let list: Value = serde_json::from_slice(&std::fs::read(generated).unwrap()).unwrap();
    let facts = list["items"].as_array()?.iter().find(|item| item["kind"] == "Facts")?;
    let path = plane.file("facts.json");
    std::fs::write(&path, facts.to_string()).unwrap();
    Some(path)
}
