//! Adds pods that endpoints name, if Pod objects could not be read or are not given. The endpoints
//! state their nodes and addresses.

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;

use uturn_model::pod::{Container, ContainerPort, Phase, PodSpec};
use uturn_model::wording::{count, some_of};
use uturn_model::{
    Endpoint, EndpointSlice, Extent, NamespacedName, Node, Origin, Pod, Service, Workload,
    WorkloadKind,
};

use crate::decode::objects::Objects;
use crate::derive::Assumptions;

/// Adds the pods that endpoints name. If pods were read, a pod that is not among them no longer
/// exists.
pub(super) fn add(objects: &mut Objects, extent: Extent, assumptions: &mut Assumptions) {
    if extent.pods && !objects.pods.0.is_empty() {
        return;
    }
    let known: HashSet<IpAddr> =
        objects.pods.0.values().flat_map(|pod| pod.ips.iter().copied()).collect();
    let mut new: BTreeMap<NamespacedName, Pod> = BTreeMap::new();
    let old = objects.endpoints.0.values().flat_map(|old| &old.slices);
    for slice in objects.slices.0.values().chain(old) {
        for endpoint in &slice.endpoints {
            let (Some(name), Some(node)) = (&endpoint.pod, &endpoint.node) else { continue };
            let is_known = objects.pods.0.contains_key(name) || known.contains(&endpoint.address);
            let Some(node) = objects.nodes.0.get(node).filter(|_| !is_known) else { continue };
            let pod = new.entry(name.clone()).or_insert_with(|| {
                let service = objects.services.0.get(&slice.service);
                pod(objects, name, (slice, endpoint), service, node)
            });
            if !pod.ips.contains(&endpoint.address) {
                pod.ips.push(endpoint.address);
            }
            pod.ready |= endpoint.ready;
        }
    }
    if new.is_empty() {
        return;
    }
    let names: Vec<&NamespacedName> = new.keys().collect();
    assumptions.assume(
        format!("{} that endpoints name: {}", count(new.len(), "pod"), some_of(&names)),
        "where their endpoints say, made as their workloads say",
        "there are no Pod objects of theirs",
        "give the Pod objects",
    );
    objects.pods.0.extend(new);
}

/// Makes a pod from an endpoint and the workload that creates such pods.
fn pod(
    objects: &Objects,
    name: &NamespacedName,
    (slice, endpoint): (&EndpointSlice, &Endpoint),
    service: Option<&Service>,
    node: &Node,
) -> Pod {
    let maker = service.and_then(|service| maker(objects, name, service));
    let mut spec = maker.map(|maker| PodSpec::clone(&maker.template)).unwrap_or_else(|| {
        let selector = service.and_then(|service| service.selector.as_ref());
        PodSpec {
            labels: selector.map(|selector| selector.labels.clone()).unwrap_or_default(),
            containers: vec![container(slice)],
            ..PodSpec::default()
        }
    });
    spec.host_network = node.has_address(endpoint.address);
    spec.hostname = endpoint.hostname.clone().or(spec.hostname);
    Pod {
        name: name.clone(),
        spec: spec.into(),
        node: Some(node.name.clone()),
        ips: Vec::new(),
        phase: Phase::Running,
        ready: false,
        deciding_gates: Vec::new(),
        terminating: endpoint.terminating,
        owner: maker.map(Workload::object),
        supposed: false,
        origin: origin(slice, maker),
    }
}

fn origin(slice: &EndpointSlice, maker: Option<&Workload>) -> Origin {
    maker.map_or_else(|| slice.origin.clone(), |maker| maker.origin.clone())
}

/// Returns the workload that creates a Service's pods and whose name the pod's name begins with. If
/// there are several, the longest name counts.
fn maker<'o>(
    objects: &'o Objects,
    pod: &NamespacedName,
    service: &Service,
) -> Option<&'o Workload> {
    let selector = service.selector.as_ref()?;
    let makes = |maker: &&Workload| {
        let rest = pod.name.as_str().strip_prefix(maker.name.name.as_str());
        maker.name.namespace == pod.namespace
            && !matches!(maker.kind, WorkloadKind::Job | WorkloadKind::CronJob)
            && rest.is_some_and(|rest| rest.starts_with('-'))
            && selector.matches(&maker.template.labels)
    };
    let all = objects.workloads.0.values().filter(makes);
    all.max_by_key(|maker| maker.name.name.as_str().len())
}

/// Makes a container that listens on the ports of a slice.
fn container(slice: &EndpointSlice) -> Container {
    let port = |port: &uturn_model::EndpointPort| ContainerPort {
        name: None,
        port: port.port,
        protocol: port.protocol,
        host_port: None,
        host_ip: None,
    };
    Container {
        name: "container".into(),
        image: "".into(),
        arguments: Vec::new(),
        environment: Default::default(),
        ports: slice.ports.iter().map(port).collect(),
        probed: Vec::new(),
        readiness: None,
        configured: Vec::new(),
        reads: Vec::new(),
        called: Vec::new(),
    }
}
