//! What is shown of a cluster in a box.

use std::collections::BTreeSet;
use std::env;
use std::fmt::Debug;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::serde::de::DeserializeOwned;
use kube::api::{Api, DeleteParams, ListParams};
use kube::runtime::conditions::is_deleted;
use kube::runtime::wait::await_condition;
use kube::{Client, Resource, ResourceExt as _};
use uturn_testing::{Requirement, skip};

use super::installed::{Installed, Run, text};
use super::machine;
use super::nodes;
use super::stage::Stage;
use super::stories;

/// How long a pod may take to go.
const PATIENCE: Duration = Duration::from_secs(900);

/// A call that is tried again while it is refused: kube-proxy may not have programmed the first
/// endpoint of a Service yet.
const CURL: [&str; 7] = ["curl", "-sS", "--max-time", "60", "--retry", "5", "--retry-connrefused"];

/// The cluster of the shop.
const SHOP: [&str; 2] = ["--example", "shop"];

/// How many calls are made to see every endpoint of two: but for one time in 2^29.
const CALLS: usize = 30;

pub(crate) fn main() {
    let what = "a cluster in a box";
    let Some(installed) = Installed::find() else {
        return skip(Requirement::ClusterParts, what, "`cargo xtask box` builds its parts");
    };
    if let Err(why) = uturn_lab::available() {
        return skip(Requirement::Kernel, what, why);
    }
    let _turn = turn();
    let words: Vec<String> = env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    if words == ["short"] {
        return short(&installed);
    }
    let is_wanted = |name: &str| words.is_empty() || words.iter().any(|word| word == name);
    if is_wanted("shop") {
        let stage = Stage::up(&installed, &SHOP);
        shop(&installed, &stage);
        stage.down();
    }
    if is_wanted("nodes") {
        let stage = Stage::up(&installed, &SHOP);
        nodes::show(&stage);
        stage.down();
    }
    if is_wanted("killed") {
        killed(&installed);
    }
    machine::play(&installed, &is_wanted);
    stories::play(&installed, &is_wanted);
}

/// A machine has one cluster at a time: tests of several checkouts take turns.
fn turn() -> File {
    let file = File::create(env::temp_dir().join("uturn-cluster-test.lock")).unwrap();
    file.lock().unwrap();
    file
}

/// Everything but the small machine once, on one cluster: the shop, a story, and what a supervisor
/// that is killed leaves.
fn short(installed: &Installed) {
    let stage = Stage::up(installed, &SHOP);
    stories::play_first(&stage);
    shop(installed, &stage);
    nodes::show(&stage);
    let inside = Inside::start(installed, "shop/web");
    let run = Run::of(&stage.leave());
    run.kill_supervisor();
    installed.down(&run);
    inside.assert_killed();
}

/// The shop as its manifests have it: nodes, pods, endpoints, names.
fn shop(installed: &Installed, stage: &Stage<'_>) {
    let (run, runtime, client) = (stage.run(), stage.runtime(), stage.client());
    let nodes = runtime.block_on(list::<Node>(client));
    let names: Vec<String> = nodes.iter().map(Node::name_any).collect();
    assert_eq!(names, ["n1", "n2", "n3"]);
    for node in &nodes {
        assert!(is_true(node.status.as_ref().unwrap().conditions.iter().flatten(), |c| (
            &c.type_, &c.status
        )));
        let info = node.status.as_ref().unwrap().node_info.as_ref().unwrap();
        assert!(info.kubelet_version.contains("stand-in"), "{}", info.kubelet_version);
    }

    let pods = runtime.block_on(list::<Pod>(client));
    // 2 of the API, 2 of the front, 3 of the web, 2 of CoreDNS, 3 of kube-proxy.
    assert_eq!(pods.len(), 12);
    for pod in &pods {
        let status = pod.status.as_ref().unwrap();
        assert_eq!(status.phase.as_deref(), Some("Running"), "{}", pod.name_any());
        assert!(is_true(status.conditions.iter().flatten(), |c| (&c.type_, &c.status)));
    }

    let fronts: Vec<&Pod> = pods.iter().filter(|pod| is_front(pod)).collect();
    let slices = runtime.block_on(list::<EndpointSlice>(client));
    let of_front = |slice: &&EndpointSlice| {
        slice.labels().get("kubernetes.io/service-name").map(String::as_str) == Some("front")
    };
    let endpoints = slices.iter().filter(of_front).flat_map(|slice| &slice.endpoints);
    let endpoints: BTreeSet<&String> =
        endpoints.flatten().flat_map(|endpoint| &endpoint.addresses).collect();
    let ips = fronts.iter().map(|pod| pod.status.as_ref().unwrap().pod_ip.as_ref().unwrap());
    assert_eq!(endpoints, ips.collect());

    let named = |pod: &&Pod| format!("by pod shop/{}", pod.name_any());
    let expected: BTreeSet<String> = fronts.iter().map(named).collect();
    assert_eq!(answers(installed, "shop/web", "http://front/"), expected);
    assert_eq!(answers(installed, "node/n2", "http://172.16.12.7/"), expected);

    runtime.block_on(replace(client, fronts[0]));
    let inside = run.namespaces();
    let old = fronts[0].name_any();
    assert!(!inside.iter().any(|name| name.ends_with(&old)), "{old} is left in {inside:?}");
}

/// A supervisor that is killed, and a program that still runs in a pod.
fn killed(installed: &Installed) {
    let kubeconfig = installed.up(&["--mode", "nftables", "--nodes", "2"]);
    let again = installed.lab(&["up"]).output().unwrap();
    assert_eq!(again.status.code(), Some(3), "{}", text(&again.stderr));
    let inside = Inside::start(installed, "kube-system/coredns");
    let run = Run::of(&kubeconfig);
    run.kill_supervisor();
    installed.down(&run);
    inside.assert_killed();
}

/// A program that runs in a pod until it is killed.
struct Inside(Child);

impl Inside {
    fn start(installed: &Installed, pod: &str) -> Self {
        let words = ["exec", pod, "--", "sh", "-c", "echo ready; exec sleep 1000"];
        let mut inside = installed.lab(&words).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let stdout = inside.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self(inside)
    }

    fn assert_killed(mut self) {
        assert!(!self.0.wait().unwrap().success());
    }
}

pub(crate) fn is_front(pod: &Pod) -> bool {
    pod.labels().get("app").is_some_and(|app| app == "front")
}

/// Who answers a client's calls.
fn answers(installed: &Installed, client: &str, url: &str) -> BTreeSet<String> {
    answers_of(installed, client, url, CALLS)
}

/// Who answers this many calls.
pub(crate) fn answers_of(
    installed: &Installed,
    client: &str,
    url: &str,
    calls: usize,
) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    for _ in 0..calls {
        let output = installed.in_pod(client, &[&CURL, &[url][..]].concat());
        assert!(output.status.success(), "{client} {url}: {}", text(&output.stderr));
        seen.extend(text(&output.stdout).lines().next().map(str::to_owned));
    }
    seen
}

/// Deletes a pod and waits until it is gone.
pub(crate) async fn replace(client: &Client, pod: &Pod) {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap());
    let (name, uid) = (pod.name_any(), pod.uid().unwrap());
    pods.delete(&name, &DeleteParams::default()).await.unwrap();
    let gone = await_condition(pods, &name, is_deleted(&uid));
    tokio::time::timeout(PATIENCE, gone).await.unwrap().unwrap();
}

pub(crate) async fn list<K>(client: &Client) -> Vec<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    Api::<K>::all(client.clone()).list(&ListParams::default()).await.unwrap().items
}

/// Whether the condition `Ready` is true.
fn is_true<'a, C: 'a>(
    conditions: impl Iterator<Item = &'a C>,
    parts: impl Fn(&'a C) -> (&'a String, &'a String),
) -> bool {
    let mut parts = conditions.map(parts);
    parts.any(|(kind, status)| kind == "Ready" && status == "True")
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}
