//! A cluster in a box on which stories are played: the tools of a user (kubectl, curl in a pod,
//! `uturn scan`), and what shows that everything has come to rest.
//!
//! A story runs in a namespace of its own ([`Story`]) and leaves nothing behind, so stories run
//! one after another on one cluster. Nothing in them waits for a time: [`Story::wait`] follows an
//! object, [`Stage::until`] asks until the answer is there, and [`Story::settle`] waits until
//! kube-proxies and load balancers have taken in all that was written before.

mod calls;
mod cloud;
mod facts;
mod prediction;
mod probe;
mod web;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kube::Client;
use kube::api::{Api, DynamicObject};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, pinned_kind};
use kube::runtime::wait::await_condition;
use serde_json::Value;
use tokio::runtime::Runtime;

use super::installed::{Installed, Run, client, text};

pub(crate) use calls::Call;
pub(crate) use prediction::Prediction;
pub(crate) use web::{AUTO_CONFIG, NODE_PORT, ingress, servers};

/// How long anything may take on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(900);

/// How long to wait before something is asked again.
const PAUSE: Duration = Duration::from_millis(200);

/// A cluster in a box that is up.
pub(crate) struct Stage<'i> {
    installed: &'i Installed,
    kubeconfig: PathBuf,
    run: Run,
    runtime: Runtime,
    client: Client,
    cloud: cloud::Cloud,
    is_up: bool,
}

/// The logs that are shown when a story fails.
const LOGS: [&str; 3] = ["operator.log", "cloud.log", "load-balancer.log"];
/// How many lines of each.
const LAST_LINES: usize = 30;

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        if !self.is_up {
            return;
        }
        // A story has failed.
        for log in LOGS {
            let printed = fs::read_to_string(self.kubeconfig.with_file_name(log));
            let printed = printed.unwrap_or_else(|_| {
                // It is in a small machine.
                let cat = format!("cat /run/uturn-lab/*/{log}");
                text(&self.installed.in_pod("cloud", &["sh", "-c", &cat]).stdout)
            });
            let lines: Vec<&str> = printed.lines().collect();
            let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
            println!("{log}:\n{last}\n");
        }
        // What fails now would hide why the story failed.
        let _ = self.installed.lab(&["down"]).output();
    }
}

impl<'i> Stage<'i> {
    /// Builds a cluster with these options of `uturn lab up`.
    pub(crate) fn up(installed: &'i Installed, words: &[&str]) -> Self {
        let kubeconfig = installed.up(words);
        let run = Run::of(&kubeconfig);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = runtime.block_on(client(&kubeconfig));
        let cloud = cloud::Cloud::of(&kubeconfig);
        Self { installed, kubeconfig, run, runtime, client, cloud, is_up: true }
    }

    /// Takes it down, and shows that nothing is left.
    pub(crate) fn down(mut self) {
        self.is_up = false;
        self.installed.down(&self.run);
    }

    /// Leaves it up. Returns its kubeconfig.
    pub(crate) fn leave(mut self) -> PathBuf {
        self.is_up = false;
        self.kubeconfig.clone()
    }

    pub(crate) fn run(&self) -> &Run {
        &self.run
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The program under test.
    pub(crate) fn program(&self) -> &Path {
        self.installed.program()
    }

    /// The kubectl of the same version as the API server, which knows no cluster yet.
    pub(crate) fn bare_kubectl(&self) -> Command {
        self.installed.kubectl()
    }

    /// The runtime of its client.
    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Plays a story in a new namespace, which is gone afterwards.
    pub(crate) fn play(&self, name: &str, story: impl FnOnce(&Story<'_>)) {
        let began = Instant::now();
        self.kubectl(&["create", "namespace", name], "");
        story(&Story { stage: self, namespace: name.to_owned() });
        // Load balancers go with their objects: it waits for the operator's finalizers.
        self.kubectl(&["delete", "namespace", name, "--wait", "--timeout=900s"], "");
        println!("story {name}: {} s", began.elapsed().as_secs());
    }

    /// What kubectl prints. It has to succeed.
    pub(crate) fn kubectl(&self, words: &[&str], input: &str) -> String {
        let mut command = self.installed.kubectl();
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut kubectl = command.spawn().unwrap();
        kubectl.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = kubectl.wait_with_output().unwrap();
        let words = words.join(" ");
        assert!(output.status.success(), "kubectl {words}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// What a program prints in a pod, on a node or where the cloud is. It has to succeed.
    pub(crate) fn exec(&self, place: &str, words: &[&str]) -> String {
        let output = self.installed.in_pod(place, words);
        let words = words.join(" ");
        assert!(output.status.success(), "{place}: {words}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// Starts a program in a pod or on a node, which writes to this file.
    pub(crate) fn start(&self, place: &str, words: &[String], log: &Path) -> Child {
        let log = fs::File::create(log).unwrap();
        let mut command = self.installed.lab(&["exec", place, "--"]);
        command.args(words).stdout(log.try_clone().unwrap()).stderr(log);
        command.stdin(Stdio::null()).spawn().unwrap()
    }

    /// The path of a program that was built beside those of the cluster.
    pub(crate) fn part(&self, name: &str) -> String {
        self.installed.part(name).to_str().unwrap().to_owned()
    }

    /// Asks until there is an answer. `what` is what the answer is.
    pub(crate) fn until<T>(&self, what: &str, mut ask: impl FnMut() -> Result<T, String>) -> T {
        let end = Instant::now() + PATIENCE;
        loop {
            match ask() {
                Ok(answer) => return answer,
                Err(last) => assert!(Instant::now() < end, "{what}: {last}"),
            }
            self.runtime.block_on(async { tokio::time::sleep(PAUSE).await });
        }
    }
}

/// A story and its namespace.
pub(crate) struct Story<'s> {
    pub(crate) stage: &'s Stage<'s>,
    pub(crate) namespace: String,
}

impl Story<'_> {
    /// What kubectl prints for this namespace.
    pub(crate) fn kubectl(&self, words: &[&str]) -> String {
        self.stage.kubectl(&[&["--namespace", &self.namespace], words].concat(), "")
    }

    /// `kubectl apply`.
    pub(crate) fn apply(&self, manifests: &str) {
        self.stage.kubectl(&["--namespace", &self.namespace, "apply", "-f", "-"], manifests);
    }

    /// `kubectl annotate`, over what is there.
    pub(crate) fn annotate(&self, object: &str, annotation: &str) {
        self.kubectl(&["annotate", "--overwrite", object, annotation]);
    }

    /// `kubectl patch` with a merge patch or, for a list, with operations of JSON Patch.
    pub(crate) fn patch(&self, object: &str, patch: &Value) {
        let kind = if patch.is_array() { "json" } else { "merge" };
        self.kubectl(&["patch", object, "--type", kind, "--patch", &patch.to_string()]);
    }

    /// Follows an object until `condition` holds, and returns it. `kind` is
    /// `networking.k8s.io/v1/Ingress`, or `v1/Service`.
    pub(crate) fn wait(&self, kind: &str, name: &str, condition: impl Fn(&Value) -> bool) -> Value {
        let (version, kind) = kind.rsplit_once('/').unwrap();
        let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
        let holds = |object: Option<&DynamicObject>| {
            object.is_some_and(|object| condition(&serde_json::to_value(object).unwrap()))
        };
        let found = self.stage.runtime.block_on(async {
            let client = self.stage.client.clone();
            let kind = GroupVersionKind::gvk(group, version, kind);
            let (resource, capabilities) = pinned_kind(&client, &kind).await.unwrap();
            let api: Api<DynamicObject> = match capabilities.scope {
                Scope::Namespaced => Api::namespaced_with(client, &self.namespace, &resource),
                Scope::Cluster => Api::all_with(client, &resource),
            };
            let waiting = await_condition(api.clone(), name, holds);
            match tokio::time::timeout(PATIENCE, waiting).await {
                Ok(found) => found.unwrap(),
                Err(_) => {
                    let now = api.get_opt(name).await.unwrap();
                    let now = serde_json::to_string_pretty(&now).unwrap();
                    panic!("{} {name} is not as it should be: {now}", kind.kind);
                }
            }
        });
        serde_json::to_value(found.unwrap()).unwrap()
    }

    /// The address in the status of an Ingress.
    pub(crate) fn ingress_address(&self, name: &str) -> String {
        let ingress =
            self.wait("networking.k8s.io/v1/Ingress", name, |ingress| !address(ingress).is_empty());
        address(&ingress)
    }

    /// The address in the status of a Service.
    pub(crate) fn service_address(&self, name: &str) -> String {
        address(&self.wait("v1/Service", name, |service| !address(service).is_empty()))
    }

    /// Waits until a Deployment is ready, and returns its pods' names, in order.
    pub(crate) fn pods_of(&self, deployment: &str) -> Vec<String> {
        let ready = |object: &Value| {
            let status = &object["status"];
            status["observedGeneration"] == object["metadata"]["generation"]
                && status["readyReplicas"] == object["spec"]["replicas"]
                && status["replicas"] == object["spec"]["replicas"]
        };
        self.wait("apps/v1/Deployment", deployment, ready);
        let names =
            self.kubectl(&["get", "pods", "-o", "name", "-l", &format!("app={deployment}")]);
        let names = names.lines().map(|line| line.trim_start_matches("pod/").to_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// The name of a pod with its namespace, as pods say who they are.
    pub(crate) fn title(&self, pod: &str) -> String {
        format!("{}/{pod}", self.namespace)
    }

    /// The address of a pod.
    pub(crate) fn ip_of(&self, pod: &str) -> String {
        let words = ["get", "pod", pod, "-o", "jsonpath={.status.podIP}"];
        self.kubectl(&words)
    }
}

fn address(object: &Value) -> String {
    object["status"]["loadBalancer"]["ingress"][0]["ip"].as_str().unwrap_or_default().to_owned()
}
