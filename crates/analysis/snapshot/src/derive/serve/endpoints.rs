//! Derives endpoints: from EndpointSlices, or else from Endpoints objects, or else from pods.

use std::cell::LazyCell;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use uturn_document::Fault;
use uturn_model::pod::Phase;
use uturn_model::service::{ServiceKind, TargetPort};
use uturn_model::{
    Endpoint, EndpointPort, EndpointSlice, Family, Name, NamespacedName, Node, Pod, Port, Service,
    Text,
};

use crate::decode::objects::Objects;
use crate::derive::populate::Population;
use crate::derive::populate::pods::ByLabel;

/// The maximum number of comparisons of pods with the selectors of Services whose endpoints are not
/// given.
const MAX_COMPARED: usize = 50_000_000;

/// The maximum number of endpoints that are derived from pods; a pod counts once for each port.
const MAX: usize = 1_000_000;

pub(in crate::derive) type Slices = BTreeMap<NamespacedName, Vec<EndpointSlice>>;

/// Returns the EndpointSlices of each Service.
///
/// # Errors
/// Returns a fault if Services without slices would exceed [`MAX_COMPARED`] or [`MAX`].
pub(super) fn derive(population: &mut Population) -> Result<Slices, Fault> {
    let mut slices = Slices::new();
    let serving = population.serving();
    for slice in std::mem::take(serving.slices).into_values() {
        slices.entry(slice.service.clone()).or_default().push(slice);
    }
    for (service, old) in std::mem::take(serving.endpoints) {
        slices.entry(service).or_insert(old.slices);
    }
    add_pods(population, &mut slices);
    let by_label = LazyCell::new(|| ByLabel::new(&population.pods.0));
    let (mut compared, mut made) = (0, 0);
    for service in population.services.0.values() {
        let Some(selector) = &service.selector else { continue };
        if slices.contains_key(&service.name)
            || matches!(service.kind, ServiceKind::ExternalName(_))
        {
            continue;
        }
        let home = &service.name.namespace;
        compared += by_label.compared(home, selector);
        if compared > MAX_COMPARED {
            return Err(too_many(service, &format!("more than {MAX_COMPARED} pods are compared")));
        }
        let selected = by_label.selected(home, selector);
        made += selected.len() * service.ports.len().max(1);
        if made > MAX {
            return Err(too_many(service, &format!("more than {MAX} endpoints are made of pods")));
        }
        let derived = of_service(service, &selected, population);
        if !derived.is_empty() {
            slices.insert(service.name.clone(), derived);
        }
    }
    Ok(slices)
}

/// Returns the fault that Services without slices, including this one, exceed a limit.
fn too_many(service: &Service, what: &str) -> Fault {
    let object = service.object();
    let message = format!("with those of {object}, {what}, since no EndpointSlice is given");
    let fault = Fault::new(service.origin.clone(), message);
    Fault { object: Some(object.to_string().into()), ..fault }
        .hint("give the EndpointSlices, or a part of the Services")
}

/// Sets each endpoint's pod where a pod has its address. The endpoint's node is left as it is
/// written: to kube-proxy, an endpoint without a node is local to no node, whatever its address.
fn add_pods(objects: &Objects, slices: &mut Slices) {
    let mut unnamed =
        slices.values_mut().flatten().flat_map(|slice| &mut slice.endpoints).peekable();
    if unnamed.peek().is_none() {
        return;
    }
    let alive = objects.pods.0.values().filter(|pod| pod.is_alive() && !pod.spec.host_network);
    let by_address: HashMap<IpAddr, &Pod> =
        alive.flat_map(|pod| pod.ips.iter().map(move |ip| (*ip, pod))).collect();
    for endpoint in unnamed.filter(|endpoint| endpoint.pod.is_none()) {
        endpoint.pod = by_address.get(&endpoint.address).map(|pod| pod.name.clone());
    }
}

/// Returns whether a pod would be an endpoint of a Service that selects it if it had the ports.
pub(in crate::derive) fn could_serve(service: &Service, pod: &Pod) -> bool {
    families(service).into_iter().any(|family| address(pod, family).is_some())
}

/// Returns the address of a family at which a running pod is called.
fn address(pod: &Pod, family: Family) -> Option<IpAddr> {
    let fits = pod.node.is_some() && !matches!(pod.phase, Phase::Succeeded | Phase::Failed);
    pod.address(family).filter(|_| fits)
}

/// Returns the EndpointSlices that the endpoint controller would create for the selected pods.
fn of_service(service: &Service, selected: &[&Pod], objects: &Objects) -> Vec<EndpointSlice> {
    let mut slices = Vec::new();
    for family in families(service) {
        let mut groups: Vec<(Vec<EndpointPort>, Vec<Endpoint>)> = Vec::new();
        for pod in selected {
            let Some(address) = address(pod, family) else { continue };
            let ports = ports(service, pod);
            if ports.is_empty() && !service.ports.is_empty() {
                continue;
            }
            let endpoint = endpoint(service, pod, address, objects);
            match groups.iter_mut().find(|(known, _)| *known == ports) {
                Some((_, endpoints)) => endpoints.push(endpoint),
                None => groups.push((ports, vec![endpoint])),
            }
        }
        for (ports, endpoints) in groups {
            let number = slices.len() + 1;
            let Ok(name) = Name::new(format!("{}-{number}", service.name.name)) else { continue };
            slices.push(EndpointSlice {
                name: NamespacedName { namespace: service.name.namespace.clone(), name },
                service: service.name.clone(),
                family,
                ports,
                endpoints,
                derived: true,
                origin: service.origin.clone(),
            });
        }
    }
    slices
}

fn families(service: &Service) -> Vec<Family> {
    let mut families: Vec<Family> = service.cluster_ips.iter().map(|ip| Family::of(*ip)).collect();
    if families.is_empty() {
        families.clone_from(&service.families);
    }
    if families.is_empty() {
        families.extend(Family::BOTH);
    }
    families.sort_unstable();
    families.dedup();
    families
}

fn endpoint(service: &Service, pod: &Pod, address: IpAddr, objects: &Objects) -> Endpoint {
    let node = pod.node.as_ref().and_then(|name| objects.nodes.0.get(name));
    let serving = pod.ready || service.publishes_not_ready;
    Endpoint {
        address,
        ready: service.publishes_not_ready || (pod.ready && !pod.terminating),
        serving,
        terminating: pod.terminating,
        hostname: hostname(service, pod),
        node: pod.node.clone(),
        zone: node.and_then(Node::zone).map(Into::into),
        zone_hints: Vec::new(),
        node_hints: Vec::new(),
        pod: Some(pod.name.clone()),
    }
}

/// Returns the hostname of a pod below its headless Service, which only a pod with a matching
/// subdomain has.
fn hostname(service: &Service, pod: &Pod) -> Option<Text> {
    let below = pod.spec.subdomain.as_deref() == Some(service.name.name.as_str());
    pod.spec.hostname.clone().filter(|_| below)
}

/// Returns the Service's ports with the numbers that this pod has. A named port that the pod lacks
/// is left out.
fn ports(service: &Service, pod: &Pod) -> Vec<EndpointPort> {
    let ports = service.ports.iter().filter_map(|port| {
        let target: Port = match &port.target {
            TargetPort::Number(number) => *number,
            TargetPort::Name(name) => pod.spec.named_port(name, port.protocol)?,
        };
        Some(EndpointPort { name: port.name.clone(), protocol: port.protocol, port: target })
    });
    ports.collect()
}
