//! Finds names of Services that only programs of a node resolve: the container engine pulls images,
//! and the kubelet mounts volumes, in the node's network and with its name servers.

use uturn_model::pod::{Phase, PodSpec};
use uturn_model::{
    Client, Destination, Flow, Mechanism, Name, ObjectRef, Origin, Outcome, Pod, Port, Protocol,
    Share,
};
use uturn_path::Engine;

use super::object_faults::about;
use super::service_reference::ServiceReference;
use crate::clients::{Clients, Example};
use crate::finding::Finding;
use crate::{Code, Severity};

pub(crate) fn find(engine: &Engine<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    let mut all = Vec::new();
    for workload in cluster.workloads.values() {
        let own = |pod: &&Pod| pod.owner.as_ref() == Some(&workload.object());
        if named(engine, &workload.name.namespace, &workload.template).next().is_none() {
            continue;
        }
        let pods: Vec<&Pod> = cluster.pods.values().filter(own).collect();
        let (object, namespace) = (workload.object(), &workload.name.namespace);
        all.extend(images(engine, &object, &workload.origin, namespace, &workload.template, &pods));
    }
    for pod in cluster.pods.values().filter(|pod| pod.owner.is_none()) {
        let (object, namespace) = (pod.object(), &pod.name.namespace);
        all.extend(images(engine, &object, &pod.origin, namespace, &pod.spec, &[pod]));
    }
    all.extend(volumes(engine));
    all
}

/// Finds volumes whose server is a Service's name.
fn volumes(engine: &Engine<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    let Some(node) = cluster.nodes.keys().next() else { return Vec::new() };
    let default = Name::new("default").expect("a constant name");
    let volumes = cluster.volume_servers.iter();
    volumes
        .filter_map(|volume| {
            let named = ServiceReference::of(cluster, &default, &volume.host)?;
            lost(engine, node, &volume.host, volume.port, |host| {
                let (field, service) = (volume.field, named.service.object());
                let what = format!("{field} is {host}, which is the name of {service}");
                about(Code::NameNotFound, volume.object(), &volume.origin, what)
            })
        })
        .collect()
}

/// Returns the images whose registry is a Service: the image, its registry's host, and the port.
fn named<'e>(
    engine: &'e Engine<'_>,
    namespace: &'e Name,
    spec: &'e PodSpec,
) -> impl Iterator<Item = (&'e str, &'e str, Option<Port>)> {
    spec.containers.iter().filter_map(move |container| {
        let image: &str = &container.image;
        let (host, port) = registry(image)?;
        ServiceReference::of(engine.cluster(), namespace, host)?;
        Some((image, host, port))
    })
}

/// Returns the host of an image's registry, and its port. The first part of an image is a registry
/// only if it has a dot or a port.
pub(crate) fn registry(image: &str) -> Option<(&str, Option<Port>)> {
    let (first, _) = image.split_once('/')?;
    match first.split_once(':') {
        Some((host, port)) => Some((host, Some(port.parse().ok()?))),
        None => first.contains('.').then_some((first, None)),
    }
}

fn images(
    engine: &Engine<'_>,
    object: &ObjectRef,
    origin: &Origin,
    namespace: &Name,
    spec: &PodSpec,
    pods: &[&Pod],
) -> Vec<Finding> {
    // The engine of a pod that has started has its images.
    let waiting = pods.iter().find(|pod| pod.phase == Phase::Pending || pod.supposed);
    let Some(node) = waiting.and_then(|pod| pod.node.clone()) else { return Vec::new() };
    let is_supposed = pods.iter().all(|pod| pod.supposed);
    let mut all = Vec::new();
    for (image, host, port) in named(engine, namespace, spec) {
        let found = ServiceReference::of(engine.cluster(), namespace, host);
        let Some(service) = found.map(|found| found.service) else { continue };
        let port = port.unwrap_or(Port::new(443).expect("not zero"));
        let Some(mut finding) = lost(engine, &node, host, port, |service_name| {
            let what = format!(
                "image {image} is pulled from {service_name}, which is the name of {}",
                service.object()
            );
            about(Code::NameNotFound, object.clone(), origin, what)
        }) else {
            continue;
        };
        if is_supposed {
            finding.severity = Severity::Warning;
            let condition = format!("the container engine has no mirror for {host}");
            finding.conditions.push(condition.into());
        }
        all.push(finding);
    }
    all
}

/// Returns the finding about a name if the programs of a node cannot resolve it.
fn lost(
    engine: &Engine<'_>,
    node: &Name,
    host: &str,
    port: Port,
    finding: impl FnOnce(&str) -> Finding,
) -> Option<Finding> {
    let flow = Flow {
        from: Client::Node(node.clone()),
        to: Destination::Host(host.into(), port),
        protocol: Protocol::Tcp,
    };
    if !engine.resolve(&flow).is_ok_and(|target| target.is_name_lost()) {
        return None;
    }
    let mut finding = finding(host);
    if let Some(own) = finding.other_evidence.first_mut() {
        let more = "the node's name servers know no Services: an address, a node port or a name that \
                    nodes resolve is needed";
        own.what = format!("{}: {more}", own.what).into();
    }
    finding.targets = vec![format!("{host}:{port}")];
    finding.clients = Clients::other(Clients::NODE_PROGRAMS);
    finding.share_failing = Share::ALL;
    finding.outcome = Outcome::NameNotFound;
    finding.mechanism = Some(Mechanism::NameUnresolved);
    finding.example = Example::Flow(flow);
    Some(finding)
}
