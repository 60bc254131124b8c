//! Finds calls of Services by names that their callers cannot resolve. A command line, a variable or
//! a ConfigMap of a workload names the Service, so the calls are stated.

use std::collections::BTreeMap;

use uturn_model::pod::{CalledName, Container, DnsPolicy, PodSpec};
use uturn_model::{
    Client, Destination, Flow, Mechanism, ObjectKind, ObjectRef, Origin, Outcome, Pod, Port,
    Protocol, Share,
};
use uturn_path::Engine;

use super::cluster_names::elsewhere;
use super::meant_service::MeantService;
use super::object_faults::about;
use super::service_reference::ServiceReference;
use crate::clients::{Clients, Example};
use crate::finding::Finding;
use crate::{Code, Severity};

/// The maximum number of names that are looked up.
pub(super) const MAX_LOOKUPS: usize = 2_000;

pub(crate) fn find(engine: &Engine<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    let mut by_owner: BTreeMap<&ObjectRef, &Pod> = BTreeMap::new();
    let alive = || cluster.pods.values().filter(|pod| pod.is_alive() && !pod.ips.is_empty());
    for pod in alive() {
        if let Some(owner) = &pod.owner {
            by_owner.entry(owner).or_insert(pod);
        }
    }
    let of_workloads = cluster.workloads.values().filter_map(|workload| {
        let object = workload.object();
        let pod = by_owner.get(&object)?;
        Some((object, &workload.origin, &*workload.template, *pod))
    });
    let is_bare = |pod: &&Pod| match &pod.owner {
        Some(ObjectRef { kind: ObjectKind::Workload(kind), .. }) => {
            let name = pod.owner.as_ref().and_then(ObjectRef::namespaced_name);
            !name.is_some_and(|name| cluster.workloads.contains_key(&(*kind, name)))
        }
        _ => true,
    };
    let bare = alive().filter(|pod| pod.spec.containers.iter().any(|own| !own.called.is_empty()));
    let bare = bare.filter(is_bare).map(|pod| (pod.object(), &pod.origin, &*pod.spec, pod));
    let mut left = MAX_LOOKUPS;
    of_workloads
        .chain(bare)
        .flat_map(|(object, origin, spec, pod)| {
            of_pods(engine, &object, origin, spec, pod, &mut left)
        })
        .collect()
}

/// Finds the names that the pods of a workload, or a bare pod, cannot resolve.
fn of_pods(
    engine: &Engine<'_>,
    object: &ObjectRef,
    origin: &Origin,
    spec: &PodSpec,
    pod: &Pod,
    left: &mut usize,
) -> Vec<Finding> {
    let mut all: Vec<Finding> = Vec::new();
    for container in &spec.containers {
        for called in &container.called {
            let Some(named) = Named::of(engine, pod, called) else { continue };
            let Some(rest) = left.checked_sub(1) else { return all };
            *left = rest;
            let host = &called.host;
            let (port, protocol) = named.port();
            let to = Destination::Host(host.clone(), port);
            let flow = Flow { from: Client::Pod(pod.name.clone()), to, protocol };
            let says = states(pod, container, called);
            if !engine.resolve(&flow).is_ok_and(|target| target.is_name_lost()) {
                all.extend(elsewhere(engine, &flow, host).map(|finding| Finding {
                    subject: object.clone(),
                    clients: Clients::other(Clients::ITS_PODS),
                    ..finding
                }));
                continue;
            }
            let what = match &named {
                Named::Service(named, ..) => format!(
                    "{says} {host}:{port}, {}: {}",
                    if named.is_of_pod {
                        format!("a pod of headless {}", named.service.object())
                    } else {
                        format!("which is {}", named.service.object())
                    },
                    reason(engine, spec, named)
                ),
                Named::Meant(meant) => {
                    format!("no Service is called {host}: {meant}; {says} {host}:{port}")
                }
            };
            let mut finding = about(Code::NameNotFound, object.clone(), origin, what);
            if named.is_doubtful(engine, spec, called) {
                finding.severity = Severity::Warning;
            }
            if let (Some(map), true) = (&called.stated_in, called.is_supposed) {
                let namespace = &pod.name.namespace;
                let condition = format!("{object} reads ConfigMap {namespace}/{map}");
                finding.conditions.push(condition.into());
                finding.severity = Severity::Warning;
            }
            finding.targets = vec![format!("{host}:{port}")];
            finding.clients = Clients::other(Clients::ITS_PODS);
            finding.share_failing = Share::ALL;
            finding.outcome = Outcome::NameNotFound;
            finding.mechanism = Some(Mechanism::NameUnresolved);
            finding.example = Example::Flow(flow);
            if !all.iter().any(|known| known.targets == finding.targets) {
                all.push(finding);
            }
        }
    }
    all
}

/// The Service that a called name leads to, or should lead to.
enum Named<'c> {
    /// The Service that has the name, with the port that is called.
    Service(ServiceReference<'c>, Port, Protocol),
    /// No Service has the name. One is probably meant.
    Meant(MeantService<'c>),
}

impl<'c> Named<'c> {
    fn of(engine: &'c Engine<'_>, pod: &Pod, called: &CalledName) -> Option<Self> {
        let (cluster, namespace) = (engine.cluster(), &pod.name.namespace);
        match ServiceReference::of(cluster, namespace, &called.host) {
            Some(named) => {
                let (port, protocol) = named.port(called.port)?;
                Some(Self::Service(named, port, protocol))
            }
            None => MeantService::of(cluster, pod, &called.host, called.port?).map(Self::Meant),
        }
    }

    fn port(&self) -> (Port, Protocol) {
        match self {
            Self::Service(_, port, protocol) => (*port, *protocol),
            Self::Meant(meant) => (meant.port, Protocol::Tcp),
        }
    }

    /// Returns whether it is not certain that the call is made, or that it fails for long.
    fn is_doubtful(&self, engine: &Engine<'_>, spec: &PodSpec, called: &CalledName) -> bool {
        match self {
            // A part of a file may be unused. A full name is hardly written for nothing.
            Self::Service(named, ..) => {
                called.stated_in.is_some() && !named.is_qualified
                    || spec.asks_cluster_dns() && lacks_ready(engine, named)
            }
            Self::Meant(_) => true,
        }
    }
}

/// Returns the beginning of a sentence about the statement of a name.
fn states(pod: &Pod, container: &Container, called: &CalledName) -> String {
    match &called.stated_in {
        Some(map) if called.is_supposed => {
            format!("ConfigMap {}/{map}, which is called like it, names", pod.name.namespace)
        }
        Some(map) => format!(
            "ConfigMap {}/{map}, which container {} reads, names",
            pod.name.namespace, container.name
        ),
        None => format!("container {} names", container.name),
    }
}

/// Returns whether the name is one that is only published while pods are ready, and the cluster's
/// name servers would be asked for it.
fn lacks_ready(engine: &Engine<'_>, named: &ServiceReference<'_>) -> bool {
    let service = named.service;
    let slices = engine.cluster().slices(&service.name);
    let mut endpoints = slices.iter().flat_map(|slice| &slice.endpoints);
    service.headless && (named.is_of_pod || !endpoints.any(|endpoint| endpoint.ready))
}

pub(super) fn reason(
    engine: &Engine<'_>,
    spec: &PodSpec,
    named: &ServiceReference<'_>,
) -> &'static str {
    match spec.dns_policy {
        DnsPolicy::ClusterFirst if spec.host_network => {
            "with hostNetwork, dnsPolicy ClusterFirst asks the name servers of the node, which know no \
             Services (ClusterFirstWithHostNet asks the cluster's)"
        }
        DnsPolicy::Default => {
            "dnsPolicy Default asks the name servers of the node, which know no Services"
        }
        DnsPolicy::None => "dnsPolicy None asks only the servers of dnsConfig",
        _ if named.is_of_pod && !named.service.publishes_not_ready => {
            "a pod has this name only while it is ready (publishNotReadyAddresses is not set), and only \
             with a hostname and this Service as its subdomain"
        }
        _ if lacks_ready(engine, named) => {
            "no pod of this headless Service is ready (publishNotReadyAddresses would publish them \
             before)"
        }
        _ => "the cluster's name servers do not know it",
    }
}
