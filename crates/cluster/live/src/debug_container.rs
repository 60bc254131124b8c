//! Adds an ephemeral container to a running pod, as `kubectl debug` does.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerState, Pod};
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::exec::{ExecError, refused};
use crate::server::Server;

/// The pause between two checks of the pod.
const PAUSE: Duration = Duration::from_millis(500);
/// The prefix of the container's name.
const NAME: &str = "uturn-probe";
/// The reasons for waiting of a container that will not run without help.
const HOPELESS: [&str; 6] = [
    "ErrImageNeverPull",
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CreateContainerError",
];

/// An ephemeral container to add to a pod. It sleeps for a while, so that commands can be run in
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugContainer {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// The image, which needs a program `sleep`.
    pub image: String,
    /// The time for which the container sleeps before it ends.
    pub lifetime: Duration,
    /// The longest time until the container runs.
    pub limit: Duration,
}

pub(crate) async fn add(server: &Server, wanted: &DebugContainer) -> Result<String, ExecError> {
    let pods: Api<Pod> = Api::namespaced(server.client().clone(), &wanted.namespace);
    let pod = pods.get(&wanted.pod).await.map_err(|why| refused(&why))?;
    let name = free_name(&pod);
    let patch = Patch::Strategic(patch(&name, wanted));
    let params = PatchParams::default();
    let patched = pods.patch_ephemeral_containers(&wanted.pod, &params, &patch).await;
    patched.map_err(|why| refused(&why))?;
    let running = await_running(&pods, &wanted.pod, &name);
    tokio::time::timeout(wanted.limit, running)
        .await
        .unwrap_or(Err(ExecError::TimedOut(wanted.limit)))?;
    Ok(name)
}

/// Returns a name that no container of the pod has.
fn free_name(pod: &Pod) -> String {
    let spec = pod.spec.as_ref();
    let ephemeral = spec.and_then(|spec| spec.ephemeral_containers.as_ref()).into_iter().flatten();
    let own = spec.map(|spec| &spec.containers).into_iter().flatten();
    let taken: Vec<&str> = ephemeral
        .map(|container| &*container.name)
        .chain(own.map(|container| &*container.name))
        .collect();
    let mut names = (1..).map(|number| format!("{NAME}-{number}"));
    names.find(|name| !taken.contains(&&**name)).unwrap_or_else(|| NAME.to_owned())
}

fn patch(name: &str, wanted: &DebugContainer) -> Value {
    json!({"spec": {"ephemeralContainers": [{
        "name": name,
        "image": wanted.image,
        "command": ["sleep", wanted.lifetime.as_secs().to_string()],
        "imagePullPolicy": "IfNotPresent",
        "terminationMessagePolicy": "File",
        // The container only has to open connections.
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }]}})
}

async fn await_running(pods: &Api<Pod>, pod: &str, name: &str) -> Result<(), ExecError> {
    loop {
        let now = pods.get(pod).await.map_err(|why| refused(&why))?;
        match state(&now, name) {
            State::Runs => return Ok(()),
            State::Waits => tokio::time::sleep(PAUSE).await,
            State::Fails(why) => {
                return Err(ExecError::NoContainer(format!("container {name}: {why}")));
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    Waits,
    Runs,
    Fails(String),
}

fn state(pod: &Pod, name: &str) -> State {
    let statuses =
        pod.status.as_ref().and_then(|status| status.ephemeral_container_statuses.as_ref());
    let status = statuses.into_iter().flatten().find(|status| status.name == name);
    let Some(ContainerState { running, terminated, waiting }) =
        status.and_then(|status| status.state.as_ref())
    else {
        return State::Waits;
    };
    let join = |reason: &Option<String>, message: &Option<String>| {
        let texts = [reason.as_deref(), message.as_deref()];
        texts.into_iter().flatten().collect::<Vec<_>>().join(": ")
    };
    if running.is_some() {
        return State::Runs;
    }
    if let Some(ended) = terminated {
        return State::Fails(format!(
            "it has ended with status {}: {}",
            ended.exit_code,
            join(&ended.reason, &ended.message)
        ));
    }
    match waiting {
        Some(waiting) if HOPELESS.contains(&waiting.reason.as_deref().unwrap_or_default()) => {
            State::Fails(join(&waiting.reason, &waiting.message))
        }
        _ => State::Waits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(value: Value) -> Pod {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn names_are_not_used_twice() {
        let ephemeral = |names: &[&str]| {
            let all: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
            pod(json!({"spec": {"containers": [{"name": "web"}], "ephemeralContainers": all}}))
        };
        assert_eq!(free_name(&ephemeral(&[])), "uturn-probe-1");
        assert_eq!(free_name(&ephemeral(&["uturn-probe-1", "debugger"])), "uturn-probe-2");
    }

    #[test]
    fn it_ends_by_itself() {
        let wanted = DebugContainer {
            namespace: "shop".into(),
            pod: "web-0".into(),
            image: "curlimages/curl".into(),
            lifetime: Duration::from_secs(90),
            limit: Duration::from_secs(1),
        };
        let patch = patch("uturn-probe-1", &wanted);
        let container = &patch["spec"]["ephemeralContainers"][0];
        assert_eq!(container["command"], json!(["sleep", "90"]));
        assert_eq!(container["image"], "curlimages/curl");
    }

    #[test]
    fn an_image_that_is_not_there_is_not_waited_for() {
        let with = |state: Value| {
            let status = json!([{"name": "uturn-probe-1", "state": state, "image": "", "imageID": "",
                                 "ready": false, "restartCount": 0}]);
            let pod = pod(json!({"status": {"ephemeralContainerStatuses": status}}));
            super::state(&pod, "uturn-probe-1")
        };
        assert_eq!(with(json!({})), State::Waits);
        assert_eq!(with(json!({"running": {}})), State::Runs);
        assert_eq!(with(json!({"waiting": {"reason": "ContainerCreating"}})), State::Waits);
        let waiting = json!({"waiting": {"reason": "ErrImagePull", "message": "no such image"}});
        assert_eq!(with(waiting), State::Fails("ErrImagePull: no such image".into()));
        let ended = with(json!({"terminated": {"exitCode": 127, "reason": "StartError"}}));
        assert!(matches!(ended, State::Fails(why) if why.contains("127: StartError")));
        assert_eq!(state(&pod(json!({})), "uturn-probe-1"), State::Waits);
    }
}
