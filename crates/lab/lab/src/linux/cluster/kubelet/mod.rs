//! A stand-in for the kubelet of all nodes: it runs each pod as a namespace with the lab's servers,
//! and writes the pod's status.
//!
//! The stand-in runs no containers. A pod's servers answer on the ports that its containers
//! declare, or that Services send to; a container whose image is called `coredns` is the real
//! CoreDNS. Probes are not run: a pod is ready when its servers listen and its readiness gates are
//! true. Volumes are not mounted, except for the ConfigMap of CoreDNS. The API server reaches the
//! stand-in only for `kubectl exec` ([`exec`]).

mod addresses;
mod core_dns;
pub(super) mod exec;
pub(super) mod node;
mod pod;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::pin::pin;

use futures_util::StreamExt as _;
use futures_util::future::{Either, select};
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Error, ResourceExt as _};
use serde_json::{Value, json};
use tokio::time::{Duration, interval};

use super::credentials::Credentials;
use super::layout::{Layout, v4_range};
use super::parts::Parts;
use crate::linux::build::lab_cluster::LabCluster;
use crate::linux::run::state::Run;
use addresses::Addresses;
use pod::RunningPod;
use status::Running;

/// The time between two readings of ConfigMaps.
const REFRESH: Duration = Duration::from_secs(5);

/// The surroundings that pods are built in.
#[derive(Clone, Copy, Debug)]
pub(super) struct PodContext<'a> {
    pub(super) run: &'a Run,
    pub(super) lab_cluster: &'a LabCluster,
    pub(super) layout: &'a Layout,
    pub(super) parts: &'a Parts,
    pub(super) credentials: &'a Credentials,
}

/// The stand-in and the pods that it runs. The pods end when it is dropped.
pub(super) struct Kubelet<'a> {
    context: PodContext<'a>,
    client: Client,
    /// The pods by UID.
    pods: BTreeMap<String, Entry>,
    addresses: Addresses,
    /// The number of pods that were built so far.
    count: usize,
    /// The pods in the current list, while it arrives.
    listed: Option<BTreeSet<String>>,
}

struct Entry {
    node: String,
    pod: RunningPod,
    status: Running,
    /// Whether the readiness gates were open when the status was written.
    was_open: bool,
}

impl<'a> Kubelet<'a> {
    pub(super) fn new(context: PodContext<'a>, client: Client) -> Self {
        let ranges = context.layout.cluster.nodes.values();
        let ranges =
            ranges.filter_map(|node| Some((node.name.to_string(), v4_range(&node.pod_cidrs)?)));
        let addresses = Addresses::new(ranges);
        Self { context, client, pods: BTreeMap::new(), addresses, count: 0, listed: None }
    }

    /// Runs the pods that are bound to nodes for as long as the future is polled.
    pub(super) async fn serve(&mut self) {
        let pods: Api<Pod> = Api::all(self.client.clone());
        let bound = watcher::Config::default().fields("spec.nodeName!=");
        let mut events = pin!(watcher(pods, bound).default_backoff());
        let mut ticks = interval(REFRESH);
        loop {
            match select(events.next(), pin!(ticks.tick())).await {
                Either::Left((Some(Ok(event)), _)) => self.handle(event).await,
                // The watcher starts anew after an error.
                Either::Left((Some(Err(_)), _)) => {}
                Either::Left((None, _)) => return,
                Either::Right(_) => self.refresh().await,
            }
        }
    }

    async fn handle(&mut self, event: Event<Pod>) {
        match event {
            Event::Init => self.listed = Some(BTreeSet::new()),
            Event::InitApply(pod) => {
                let uid = pod.uid().unwrap_or_default();
                self.listed.get_or_insert_default().insert(uid);
                self.keep(&pod).await;
            }
            Event::InitDone => {
                let listed = self.listed.take().unwrap_or_default();
                let gone: Vec<String> =
                    self.pods.keys().filter(|uid| !listed.contains(*uid)).cloned().collect();
                gone.iter().for_each(|uid| self.stop(uid));
            }
            Event::Apply(pod) => self.keep(&pod).await,
            Event::Delete(pod) => self.stop(&pod.uid().unwrap_or_default()),
        }
    }

    /// Brings a pod to the state that its object asks for. If the API server returns an error, the
    /// pod's status stays outdated until the next event tries again.
    async fn keep(&mut self, pod: &Pod) {
        let Ok(object) = serde_json::to_value(pod) else { return };
        let uid = pod.uid().unwrap_or_default();
        if pod.metadata.deletion_timestamp.is_some() {
            self.stop(&uid);
            let _ = self.remove(pod).await;
            return;
        }
        if matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed")) {
            return;
        }
        let is_open = status::gates_are_open(&object);
        let status = match self.pods.get_mut(&uid) {
            Some(entry) if entry.was_open == is_open => return,
            Some(entry) => {
                entry.was_open = is_open;
                entry.status.since = now();
                status::of_pod(&object, &entry.status)
            }
            None => match self.start(&uid, &object).await {
                Some(status) => status,
                None => return,
            },
        };
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &namespace(pod));
        let patch = Patch::Strategic(json!({"metadata": {"uid": uid}, "status": status}));
        if pods.patch_status(&pod.name_any(), &PatchParams::default(), &patch).await.is_err() {
            // The pod was changed meanwhile, which causes another event.
            self.stop(&uid);
        }
    }

    /// Starts a pod. Returns its status, or `None` if its node is not one of the lab's.
    async fn start(&mut self, uid: &str, object: &Value) -> Option<Value> {
        let node = object["spec"]["nodeName"].as_str()?;
        let nodes = &self.context.layout.cluster.nodes;
        let host = nodes.values().find(|own| own.name.as_str() == node)?.internal_ips.first()?;
        let is_host_network = object["spec"]["hostNetwork"] == true;
        let ip =
            if is_host_network { Some(*host) } else { self.addresses.take(node).map(IpAddr::V4) };
        let Some(ip) = ip else {
            return Some(status::of_failed_pod(object, "the node's range has no address left"));
        };
        let services = self.services(object).await.unwrap_or_default();
        let files = core_dns::files(&self.client, object).await;
        self.count += 1;
        match RunningPod::start(self.context, self.count, object, ip, &services, &files) {
            Ok(pod) => {
                let status = Running { ip, host: *host, since: now() };
                let written = status::of_pod(object, &status);
                let was_open = status::gates_are_open(object);
                let node = node.to_owned();
                self.pods.insert(uid.to_owned(), Entry { node, pod, status, was_open });
                Some(written)
            }
            Err(error) => {
                if let IpAddr::V4(ip) = ip {
                    self.addresses.give_back(node, ip);
                }
                Some(status::of_failed_pod(object, &error.to_string()))
            }
        }
    }

    /// Returns the Services of a pod's namespace.
    async fn services(&self, pod: &Value) -> Result<Vec<Value>, Error> {
        let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
        let services: Api<Service> = Api::namespaced(self.client.clone(), namespace);
        let all = services.list(&ListParams::default()).await?;
        Ok(all.items.iter().filter_map(|service| serde_json::to_value(service).ok()).collect())
    }

    /// Ends a pod's servers, and removes its namespace.
    fn stop(&mut self, uid: &str) {
        let Some(entry) = self.pods.remove(uid) else { return };
        if let (IpAddr::V4(ip), false) = (entry.status.ip, entry.pod.shares_host()) {
            self.addresses.give_back(&entry.node, ip);
        }
        entry.pod.leave(self.context);
    }

    /// Tells the API server that a pod to be deleted has ended.
    async fn remove(&self, pod: &Pod) -> Result<(), Error> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &namespace(pod));
        let preconditions = Preconditions { uid: pod.uid(), resource_version: None };
        let params = DeleteParams::default().grace_period(0).preconditions(preconditions);
        pods.delete(&pod.name_any(), &params).await.map(drop)
    }

    /// Reads the ConfigMaps of CoreDNS pods again, as a kubelet does from time to time.
    async fn refresh(&self) {
        for entry in self.pods.values() {
            entry.pod.refresh(self.context, &self.client).await;
        }
    }
}

fn namespace(pod: &Pod) -> String {
    pod.namespace().unwrap_or_default()
}

fn now() -> String {
    let now = Timestamp::now();
    format!("{now:.0}")
}
