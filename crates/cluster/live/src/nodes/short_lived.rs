//! Pods that exist for the capture of a node, and are removed whatever happens.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::{Client, Error};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use uturn_model::Name;

use super::{CaptureSettings, TOOLS};
use crate::error::with_causes;
use crate::exec::Container;

/// The namespace of the pods. In most clusters, others refuse pods with the node's network.
pub const POD_NAMESPACE: &str = "kube-system";

/// The label by which leftover pods are found.
const LABEL: (&str, &str) = ("app.kubernetes.io/name", "uturn-collect");

/// The longest time for a pod to start, including its image, and below the longest time for it to
/// be removed.
const START: Duration = Duration::from_secs(120);
const END: Duration = Duration::from_secs(60);

/// The time between two checks of a pod.
const INTERVAL: Duration = Duration::from_millis(250);

/// The pods of this run.
pub(super) struct ShortLived {
    pods: Api<Pod>,
    image: String,
    /// The lifetime of a pod that nothing removes.
    lifetime: Duration,
    /// The prefix of the names of this run's pods.
    prefix: String,
    /// The number of pods that were begun.
    count: AtomicUsize,
    /// The names of the pods that may exist.
    made: Mutex<BTreeSet<String>>,
    stop: watch::Receiver<bool>,
}

impl ShortLived {
    pub(super) fn new(
        client: &Client,
        settings: &CaptureSettings,
        stop: watch::Receiver<bool>,
    ) -> Self {
        let nanoseconds = Timestamp::now().as_nanosecond().unsigned_abs();
        Self {
            pods: Api::namespaced(client.clone(), POD_NAMESPACE),
            image: settings.image.clone().unwrap_or_default(),
            lifetime: START + settings.limit * TOOLS + END,
            prefix: format!("{}-{:x}-{:x}", LABEL.1, std::process::id(), nanoseconds % (1 << 40)),
            count: AtomicUsize::new(0),
            made: Mutex::default(),
            stop,
        }
    }

    fn made(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a pod on a node and waits until it runs.
    pub(super) async fn create(&self, node: &Name) -> Result<Container, String> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", self.prefix);
        // The name is recorded before the request, as the pod may exist although no answer comes.
        self.made().insert(name.clone());
        let object = object(&name, node, &self.image, self.lifetime);
        let pod: Pod = serde_json::from_value(object).map_err(|why| why.to_string())?;
        let mut stop = self.stop.clone();
        let started = async {
            let created = self.pods.create(&PostParams::default(), &pod).await;
            created.map_err(|why| format!("no pod of {}: {}", self.image, reason(&why)))?;
            self.wait_until_it_runs(&name).await
        };
        tokio::select! {
            started = started => started?,
            _ = stop.wait_for(|is_over| *is_over) => return Err("interrupted".to_owned()),
        }
        let (namespace, container) = (POD_NAMESPACE.to_owned(), Some(CONTAINER.to_owned()));
        Ok(Container { namespace, pod: name, container })
    }

    async fn wait_until_it_runs(&self, name: &str) -> Result<(), String> {
        let end = Instant::now() + START;
        loop {
            let pod = self.pods.get(name).await.map_err(|why| reason(&why))?;
            let status = serde_json::to_value(pod.status).unwrap_or_default();
            let state = &status["containerStatuses"][0]["state"];
            if state["running"].is_object() {
                return Ok(());
            }
            let waits = &state["waiting"];
            let (why, message) = (waits["reason"].as_str(), waits["message"].as_str());
            let why = why.unwrap_or("it waits");
            let is_over = ["Succeeded", "Failed"].iter().any(|phase| status["phase"] == *phase);
            let is_stuck = ["Err", "BackOff", "Invalid"].iter().any(|word| why.contains(word));
            if is_over || is_stuck || Instant::now() > end {
                let text = message.or(status["message"].as_str()).unwrap_or_default();
                return Err(format!("pod {name} of {} does not run: {why} {text}", self.image)
                    .trim_end()
                    .to_owned());
            }
            sleep(INTERVAL).await;
        }
    }

    /// Removes a pod and waits until it is gone.
    pub(super) async fn remove(&self, name: &str, notes: &dyn Fn(&str)) {
        match self.delete(name).await {
            Ok(()) => drop(self.made().remove(name)),
            Err(why) => notes(&format!(
                "pod {POD_NAMESPACE}/{name} could not be removed: {why}; it ends by itself after \
                 {} s: kubectl delete pod -n {POD_NAMESPACE} {name}",
                self.lifetime.as_secs()
            )),
        }
    }

    async fn delete(&self, name: &str) -> Result<(), String> {
        let end = Instant::now() + END;
        match self.pods.delete(name, &DeleteParams::default()).await {
            Ok(_) => {}
            Err(Error::Api(status)) if status.code == 404 => return Ok(()),
            Err(why) => return Err(reason(&why)),
        }
        while self.pods.get_opt(name).await.map_err(|why| reason(&why))?.is_some() {
            if Instant::now() > end {
                return Err(format!("it is still there after {} s", END.as_secs()));
            }
            sleep(INTERVAL).await;
        }
        Ok(())
    }

    /// Removes the remaining pods of this run.
    pub(super) async fn remove_all(&self, notes: &dyn Fn(&str)) {
        let left: Vec<String> = self.made().iter().cloned().collect();
        for name in left {
            self.remove(&name, notes).await;
        }
    }

    /// Removes pods of earlier runs that ended without removing them.
    pub(super) async fn remove_leftovers(&self, notes: &dyn Fn(&str)) {
        let wanted = ListParams::default().labels(&format!("{}={}", LABEL.0, LABEL.1));
        let found = match self.pods.list(&wanted).await {
            Ok(found) => found.items,
            Err(why) => {
                let why = reason(&why);
                return notes(&format!("whether earlier runs left pods is not known: {why}"));
            }
        };
        for pod in found {
            let name = pod.metadata.name.clone().unwrap_or_default();
            if !is_leftover(&serde_json::to_value(&pod).unwrap_or_default(), Timestamp::now()) {
                notes(&format!("pod {POD_NAMESPACE}/{name} is of another run; it is left alone"));
                continue;
            }
            match self.delete(&name).await {
                Ok(()) => notes(&format!("removed pod {POD_NAMESPACE}/{name} of an earlier run")),
                Err(why) => notes(&format!(
                    "pod {POD_NAMESPACE}/{name} of an earlier run could not be removed: {why}"
                )),
            }
        }
    }
}

/// The name of the container.
const CONTAINER: &str = "capture";

/// Returns a pod with the node's network and no other rights on the node.
fn object(name: &str, node: &Name, image: &str, lifetime: Duration) -> Value {
    let seconds = lifetime.as_secs();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "namespace": POD_NAMESPACE, "name": name,
            "labels": {LABEL.0: LABEL.1, "app.kubernetes.io/managed-by": "uturn"},
        },
        "spec": {
            "nodeName": node.as_str(), "hostNetwork": true, "restartPolicy": "Never",
            "activeDeadlineSeconds": seconds, "terminationGracePeriodSeconds": 1,
            "tolerations": [{"operator": "Exists"}],
            "automountServiceAccountToken": false, "enableServiceLinks": false,
            "containers": [{
                "name": CONTAINER, "image": image, "imagePullPolicy": "IfNotPresent",
                "command": ["sleep", seconds.to_string()],
                "securityContext": {
                    "privileged": false, "allowPrivilegeEscalation": false, "runAsUser": 0,
                    "readOnlyRootFilesystem": true,
                    "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN", "NET_RAW"]},
                },
                "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
            }],
        },
    })
}

/// Returns whether a pod is left over: it has ended, or its time is over.
fn is_leftover(pod: &Value, now: Timestamp) -> bool {
    let has_ended = ["Succeeded", "Failed"].iter().any(|phase| pod["status"]["phase"] == *phase);
    let created = pod["metadata"]["creationTimestamp"].as_str();
    let created: Option<Timestamp> = created.and_then(|text| text.parse().ok());
    let lifetime = pod["spec"]["activeDeadlineSeconds"].as_i64();
    let is_late = created
        .zip(lifetime)
        .is_some_and(|(created, lifetime)| now.as_second() - created.as_second() > lifetime);
    has_ended || is_late
}

/// Returns why a request failed. For a missing right, the text says how to grant it.
fn reason(error: &Error) -> String {
    match error {
        Error::Api(status) if status.code == 403 => format!(
            "{}; uturn collect --rbac --nodes --image IMAGE prints the rights",
            status.message
        ),
        Error::Api(status) => status.message.clone(),
        other => with_causes(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_has_no_more_rights_than_it_needs() {
        let node = Name::new("n1").unwrap();
        let pod = object("uturn-collect-1-0", &node, "tools:1", Duration::from_secs(480));
        let spec = &pod["spec"];
        assert_eq!(spec["containers"][0]["securityContext"]["privileged"], false);
        assert_eq!(spec["activeDeadlineSeconds"], 480);
        for absent in ["volumes", "hostPID", "hostIPC", "serviceAccountName"] {
            assert_eq!(spec.get(absent), None, "{absent}");
        }
        assert_eq!(pod["metadata"].get("ownerReferences"), None);
        // The API knows every field of the pod.
        let read: Pod = serde_json::from_value(pod.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), pod);
    }

    #[test]
    fn pods_whose_time_is_over_are_leftovers() {
        let now: Timestamp = "2026-01-01T00:10:00Z".parse().unwrap();
        let pod = |created: &str, phase: &str| {
            json!({"metadata": {"creationTimestamp": created}, "status": {"phase": phase},
                   "spec": {"activeDeadlineSeconds": 300}})
        };
        assert!(!is_leftover(&pod("2026-01-01T00:06:00Z", "Running"), now));
        assert!(is_leftover(&pod("2026-01-01T00:04:00Z", "Running"), now));
        assert!(is_leftover(&pod("2026-01-01T00:09:00Z", "Failed"), now));
    }
}
