//! The status that the stand-in for the kubelet writes for pods and nodes.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::exec::PORT;

/// The version that the stand-in states on every node, in place of a kubelet's.
pub(super) const STAND_IN: &str = "v0.0.0-uturn-kubelet-stand-in";

/// The addresses of a running pod, and its start time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Running {
    pub(super) ip: IpAddr,
    pub(super) host: IpAddr,
    pub(super) since: String,
}

/// Returns whether all readiness gates of a pod are true.
pub(super) fn gates_are_open(pod: &Value) -> bool {
    let gates = pod["spec"]["readinessGates"].as_array();
    let conditions = pod["status"]["conditions"].as_array();
    let is_open = |gate: &Value| {
        conditions.is_some_and(|conditions| {
            conditions.iter().any(|condition| {
                condition["type"] == gate["conditionType"] && condition["status"] == "True"
            })
        })
    };
    gates.is_none_or(|gates| gates.iter().all(is_open))
}

/// Returns the status of a pod whose containers all serve. Conditions of other controllers are not
/// part of it.
pub(super) fn of_pod(pod: &Value, running: &Running) -> Value {
    let Running { ip, host, since } = running;
    let condition = |kind: &str, is_true: bool| json!({"type": kind, "status": truth(is_true), "lastTransitionTime": since});
    let mut ready = condition("Ready", gates_are_open(pod));
    if ready["status"] == "False" {
        ready["reason"] = json!("ReadinessGatesNotReady");
    }
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let containers = containers.map(|container| {
        json!({
            "name": container["name"], "image": container["image"],
            "imageID": "", "containerID": "", "restartCount": 0,
            "ready": true, "started": true, "state": {"running": {"startedAt": since}},
        })
    });
    json!({
        "phase": "Running", "startTime": since,
        "hostIP": host, "hostIPs": [{"ip": host}], "podIP": ip, "podIPs": [{"ip": ip}],
        "conditions": [
            condition("PodReadyToStartContainers", true), condition("Initialized", true),
            condition("ContainersReady", true), ready,
        ],
        "containerStatuses": containers.collect::<Vec<_>>(),
    })
}

/// Returns the status of a pod that cannot be run.
pub(super) fn of_failed_pod(pod: &Value, why: &str) -> Value {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let containers = containers.map(|container| {
        let waiting = json!({"reason": "CreateContainerError", "message": why});
        json!({
            "name": container["name"], "image": container["image"], "imageID": "",
            "restartCount": 0, "ready": false, "started": false, "state": {"waiting": waiting},
        })
    });
    json!({"phase": "Pending", "containerStatuses": containers.collect::<Vec<_>>()})
}

/// Returns the status of a node: that of its manifest, with what is true here.
pub(super) fn of_node(manifest: &Value, kernel: &str, proxy: Option<&str>, now: &str) -> Value {
    let condition = |kind: &str, is_true: bool, reason: &str| {
        json!({
            "type": kind, "status": truth(is_true), "reason": reason,
            "message": "uturn's stand-in of the kubelet",
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        })
    };
    let capacity = json!({"cpu": "64", "memory": "256Gi", "pods": "250"});
    json!({
        "addresses": manifest["status"]["addresses"],
        "capacity": capacity, "allocatable": capacity,
        "conditions": [
            condition("MemoryPressure", false, "KubeletHasSufficientMemory"),
            condition("DiskPressure", false, "KubeletHasNoDiskPressure"),
            condition("PIDPressure", false, "KubeletHasSufficientPID"),
            condition("Ready", true, "KubeletReady"),
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": PORT}},
        "nodeInfo": {
            "kubeletVersion": STAND_IN, "kubeProxyVersion": proxy.unwrap_or_default(),
            "kernelVersion": kernel, "osImage": "uturn lab (network namespaces)",
            "containerRuntimeVersion": "uturn-lab://servers",
            "operatingSystem": "linux", "architecture": architecture(),
            "machineID": "", "systemUUID": "", "bootID": "",
        },
    })
}

/// Returns Kubernetes's name of the processor architecture.
pub(super) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn truth(is_true: bool) -> &'static str {
    if is_true { "True" } else { "False" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(pod: &Value) -> Value {
        let ip = "10.1.1.2".parse().unwrap();
        let running = Running { ip, host: ip, since: "2026-01-01T00:00:00Z".into() };
        of_pod(pod, &running)["conditions"][3]["status"].clone()
    }

    #[test]
    fn a_pod_is_ready_once_its_gates_are_open() {
        let mut pod = json!({"spec": {"containers": [{"name": "a", "image": "b"}]}});
        assert_eq!(ready(&pod), "True");
        pod["spec"]["readinessGates"] = json!([{"conditionType": "example.com/lb"}]);
        assert_eq!(ready(&pod), "False");
        pod["status"]["conditions"] = json!([{"type": "example.com/lb", "status": "False"}]);
        assert_eq!(ready(&pod), "False");
        pod["status"]["conditions"][0]["status"] = json!("True");
        assert_eq!(ready(&pod), "True");
    }

    #[test]
    fn a_node_says_that_its_kubelet_is_a_stand_in() {
        let status = of_node(&json!({}), "6.1", None, "2026-01-01T00:00:00Z");
        assert_eq!(status["nodeInfo"]["kubeletVersion"], STAND_IN);
    }
}
