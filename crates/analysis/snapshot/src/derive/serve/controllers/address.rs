//! Determines the address of an Ingress that a controller in the cluster serves: that of its
//! status, or else that of the controller's Service.

use std::net::IpAddr;

use uturn_clouds::cloud;
use uturn_model::cluster::Provider;
use uturn_model::service::{IpMode, LbIngress, ServiceKind};
use uturn_model::{Family, IngressController, Known, NamespacedName, Pod, Service};

use super::candidate::Open;
use crate::decode::objects::Objects;
use crate::derive::populate::Population;
use crate::derive::{Assumptions, joined};

/// Gives the Ingress an address if it has none, and checks whether its address leads to the
/// controller's pods.
pub(super) fn settle(
    population: &mut Population,
    provider: &Known<Provider>,
    controller: &IngressController,
    published: Option<&NamespacedName>,
    name: &NamespacedName,
    assumptions: &mut Assumptions,
) -> Result<(), Open> {
    let Some(ingress) = population.ingresses.0.get(name) else { return Ok(()) };
    let status: Vec<IpAddr> = ingress.load_balancer.iter().filter_map(|entry| entry.ip).collect();
    // Some distributions write loopback for the nodes on which the controller runs.
    let is_loopback =
        !ingress.load_balancer.is_empty() && ingress.load_balancer.iter().all(is_loopback);
    let at_nodes = of_nodes(population, on_nodes(population, controller));
    if is_loopback && !at_nodes.is_empty() {
        let because = format!("its status has loopback, and {} is on nodes", controller.workload);
        give(population, name, at_nodes, because, assumptions);
        return Ok(());
    }
    let known: Vec<NamespacedName> = services(controller).cloned().collect();
    let known: Vec<&Service> =
        known.iter().filter_map(|service| population.services.0.get(service)).collect();
    if !status.is_empty() {
        let stray = status.iter().find(|ip| {
            let is_service = known.iter().any(|service| service.has_address(**ip));
            let is_node = population.nodes.0.values().any(|node| node.has_address(**ip));
            !is_service && !is_node
        });
        return match stray {
            None => Ok(()),
            Some(ip) => Err(Open::new(
                format!(
                    "its address {ip} is neither that of a Service of {} nor a node's",
                    controller.workload
                ),
                "trace to the Service of that controller",
            )),
        };
    }
    if let Some(host) = ingress.load_balancer.iter().find_map(|entry| entry.hostname.as_ref()) {
        let service = known.iter().find(|service| {
            service.load_balancer.iter().any(|entry| entry.hostname.as_ref() == Some(host))
        });
        if service.is_some_and(|service| names_lead(service, provider)) {
            return Ok(());
        }
        return Err(match service {
            Some(service) => Open::new(
                format!("its address is that of Service {}: {host}", service.name),
                format!("trace to svc/{}, whose pods serve it", service.name),
            ),
            None => Open::new(
                format!("its address is {host}, which is of no Service of its controller"),
                "trace to the Service of that controller",
            ),
        });
    }
    let (entries, because) = supposed(population, provider, controller, published, &known)?;
    give(population, name, entries, because, assumptions);
    Ok(())
}

/// Returns whether an entry of a status leads to whoever reads it.
fn is_loopback(entry: &LbIngress) -> bool {
    match (entry.ip, &entry.hostname) {
        (Some(ip), _) => ip.is_loopback(),
        (None, host) => host.as_deref() == Some("localhost"),
    }
}

/// Gives an Ingress addresses that are assumed.
fn give(
    population: &mut Population,
    name: &NamespacedName,
    entries: Vec<LbIngress>,
    because: String,
    assumptions: &mut Assumptions,
) {
    let Some(ingress) = population.ingresses.0.get(name) else { return };
    let shown = entries.iter().filter_map(|entry| match (entry.ip, &entry.hostname) {
        (Some(ip), _) => Some(ip.to_string()),
        (None, name) => name.as_ref().map(ToString::to_string),
    });
    let shown: Vec<String> = shown.collect();
    assumptions.assume(
        format!("address of {}", ingress.object()),
        joined(&shown),
        because,
        "give the object's status",
    );
    if let Some(ingress) = population.serving().ingresses.get_mut(name) {
        ingress.load_balancer = entries;
    }
}

/// Iterates over the Services that lead to a controller's pods.
pub(super) fn services(controller: &IngressController) -> impl Iterator<Item = &NamespacedName> {
    controller.listeners.iter().flat_map(|listener| &listener.services).map(|(service, _)| service)
}

/// Returns whether the host name of a Service's load balancer has known addresses, which it has if
/// the behaviour of the load balancer is described.
fn names_lead(service: &Service, provider: &Known<Provider>) -> bool {
    service.kind == ServiceKind::LoadBalancer && cloud::maker_of(service, provider).is_described()
}

/// Returns the address that the controller would write into a status, and the reason.
fn supposed(
    objects: &Objects,
    provider: &Known<Provider>,
    controller: &IngressController,
    published: Option<&NamespacedName>,
    known: &[&Service],
) -> Result<(Vec<LbIngress>, String), Open> {
    if let Some(published) = published {
        let Some(service) = objects.services.0.get(published) else {
            return Err(Open::new(
                format!("its controller gives it the address of Service {published}"),
                format!("give Service {published}"),
            ));
        };
        let because = format!("{} publishes Service {published}", controller.workload);
        return of_service(service, provider).map(|entries| (entries, because));
    }
    let mut balanced: Vec<&Service> =
        known.iter().copied().filter(|service| service.kind == ServiceKind::LoadBalancer).collect();
    balanced.dedup_by(|a, b| a.name == b.name);
    match balanced.as_slice() {
        [only] => {
            let because = format!("Service {} leads to {}", only.name, controller.workload);
            of_service(only, provider).map(|entries| (entries, because))
        }
        [] => {
            let entries = of_nodes(objects, on_nodes(objects, controller));
            if !entries.is_empty() {
                return Ok((entries, format!("{} has ports of nodes", controller.workload)));
            }
            let has_node_port =
                controller.listeners.iter().any(|listener| listener.at_nodes.is_some());
            let entries = of_nodes(objects, pods_of(objects, controller));
            if has_node_port && !entries.is_empty() {
                return Ok((entries, format!("{} has node ports", controller.workload)));
            }
            Err(Open::new(
                format!("nothing says at which address {} takes requests", controller.workload),
                "give the Service of the controller with its status, or the Ingress's status",
            ))
        }
        [first, second, ..] => Err(Open::new(
            format!("it may have the address of Service {} or {}", first.name, second.name),
            "give the Ingress's status",
        )),
    }
}

/// Returns the addresses that a controller writes for a Service: those of its load balancer, or
/// else its external IPs and its cluster IP.
fn of_service(service: &Service, provider: &Known<Provider>) -> Result<Vec<LbIngress>, Open> {
    let own = service.external_ips.iter().chain(service.cluster_ips.first());
    let entries: Vec<LbIngress> = match service.kind {
        ServiceKind::LoadBalancer => service.load_balancer.clone(),
        _ => own.map(|ip| LbIngress { ip: Some(*ip), hostname: None, mode: IpMode::Vip }).collect(),
    };
    if entries.iter().any(|entry| entry.ip.is_some()) {
        return Ok(entries);
    }
    let name = &service.name;
    match entries.iter().find_map(|entry| entry.hostname.as_ref()) {
        Some(_) if names_lead(service, provider) => Ok(entries),
        Some(host) => Err(Open::new(
            format!("the address of Service {name} of its controller is {host}"),
            format!("trace to svc/{name}, whose pods serve it"),
        )),
        None => Err(Open::new(
            format!("Service {name} of its controller has no address yet"),
            format!("give Service {name} with its status, or trace to svc/{name}"),
        )),
    }
}

/// Iterates over the pods of a controller.
fn pods_of<'o>(
    objects: &'o Objects,
    controller: &'o IngressController,
) -> impl Iterator<Item = &'o Pod> {
    objects.pods.0.values().filter(|pod| pod.is_alive() && controller.has_pod(pod))
}

/// Iterates over the pods of a controller that take requests at an address of their node.
fn on_nodes<'o>(
    objects: &'o Objects,
    controller: &'o IngressController,
) -> impl Iterator<Item = &'o Pod> {
    let is_there =
        |pod: &&Pod| pod.spec.host_network || pod.spec.ports().any(|port| port.host_port.is_some());
    pods_of(objects, controller).filter(is_there)
}

/// Returns the addresses of the nodes of these pods.
fn of_nodes<'p>(objects: &Objects, pods: impl Iterator<Item = &'p Pod>) -> Vec<LbIngress> {
    let nodes = pods.filter_map(|pod| objects.nodes.0.get(pod.node.as_ref()?));
    let mut ips: Vec<IpAddr> = nodes.filter_map(|node| node.address(Family::V4)).collect();
    ips.sort_unstable();
    ips.dedup();
    ips.into_iter()
        .map(|ip| LbIngress { ip: Some(ip), hostname: None, mode: IpMode::Vip })
        .collect()
}
