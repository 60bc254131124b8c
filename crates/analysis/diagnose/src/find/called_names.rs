//! Finds calls of Services by names that their callers cannot resolve. A command line or a variable
//! of a workload names the Service, so the calls are stated.

use std::collections::BTreeMap;

use uturn_model::pod::{DnsPolicy, PodSpec};
use uturn_model::{
    Client, Destination, Flow, Mechanism, ObjectKind, ObjectRef, Origin, Outcome, Pod, Share,
};
use uturn_path::Engine;

use super::object_faults::about;
use super::service_reference::ServiceReference;
use crate::clients::{Clients, Example};
use crate::finding::Finding;
use crate::{Code, Severity};

/// The maximum number of names that are looked up.
const MAX_LOOKUPS: usize = 2_000;

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
    let cluster = engine.cluster();
    let mut all: Vec<Finding> = Vec::new();
    for container in &spec.containers {
        for called in &container.called {
            let host = &called.host;
            let Some(named) = ServiceReference::of(cluster, &pod.name.namespace, host) else {
                continue;
            };
            let Some((port, protocol)) = named.port(called.port) else { continue };
            let Some(rest) = left.checked_sub(1) else { return all };
            *left = rest;
            let to = Destination::Host(host.clone(), port);
            let flow = Flow { from: Client::Pod(pod.name.clone()), to, protocol };
            if !engine.resolve(&flow).is_ok_and(|target| target.is_name_lost()) {
                continue;
            }
            let what = format!(
                "container {} names {host}:{port}, {}: {}",
                container.name,
                if named.is_of_pod {
                    format!("a pod of headless {}", named.service.object())
                } else {
                    format!("which is {}", named.service.object())
                },
                reason(engine, spec, &named)
            );
            let mut finding = about(Code::NameNotFound, object.clone(), origin, what);
            if asks_cluster(spec) && lacks_ready(engine, &named) {
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

/// Returns whether pods ask the cluster's name servers.
fn asks_cluster(spec: &PodSpec) -> bool {
    match spec.dns_policy {
        DnsPolicy::ClusterFirst => !spec.host_network,
        DnsPolicy::ClusterFirstWithHostNet => true,
        DnsPolicy::Default | DnsPolicy::None => false,
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

fn reason(engine: &Engine<'_>, spec: &PodSpec, named: &ServiceReference<'_>) -> &'static str {
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
