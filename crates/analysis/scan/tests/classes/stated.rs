//! What Facts state beside the objects: load balancers that no Service owns, and addresses that nodes
//! hold beside their own.

use std::net::IpAddr;

use uturn_model::lb::{
    Delivery, ListenerFact, ListenerProtocol, LoadBalancerFact, Scheduler, StatedTargets,
    TargetNodes,
};
use uturn_model::service::{IpMode, ServiceKind};
use uturn_model::{Cluster, Family, Labels, Name, Origin, Port};

use crate::dice::Dice;

const ROLE: &str = "pool";

/// Adds to a cluster what Facts may state.
pub(crate) fn add(cluster: &mut Cluster, dice: &mut Dice) {
    for node in cluster.nodes.values_mut() {
        let old: Vec<(String, String)> =
            node.labels.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let mut all: Vec<(&str, &str)> = Vec::new();
        all.extend(old.iter().map(|(key, value)| (key.as_str(), value.as_str())));
        all.push((ROLE, dice.one_of(&["a", "a", "b"])));
        node.labels = all.into_iter().collect();
    }
    let node_ports: Vec<Port> = cluster
        .services
        .values()
        .flat_map(|service| &service.ports)
        .filter_map(|port| port.node_port)
        .collect();
    for number in 0..=dice.below(2) {
        let vip: IpAddr = if dice.once_in(4) {
            format!("fd00::{}", 240 + number).parse().expect("an address")
        } else {
            format!("10.0.0.{}", 240 + number).parse().expect("an address")
        };
        let mut fact = LoadBalancerFact::new(vip, Origin::SUPPOSED);
        fact.name = Some(format!("stated-{number}").into());
        let products =
            ["AWS NLB", "Google Cloud passthrough load balancer", "Azure Load Balancer", "tke"];
        fact.product = dice.once_in(2).then(|| dice.one_of(&products).into());
        fact.zone = dice.once_in(4).then(|| dice.one_of(&["a", "b"]).into());
        fact.listeners = vec![listener(cluster, dice, &node_ports)];
        cluster.load_balancers.push(fact);
    }
    for service in cluster.services.values_mut() {
        // Where kube-proxy has no rule, what holds the address decides.
        if service.kind == ServiceKind::LoadBalancer && dice.once_in(3) {
            service.load_balancer.iter_mut().for_each(|entry| entry.mode = IpMode::Proxy);
        }
    }
    hold(cluster, dice);
    // Whether every node answers for addresses that some of them announce.
    if dice.once_in(3) {
        cluster.proxy.arp_ranges = vec!["0.0.0.0/0".parse().expect("a range")];
    }
    // What nodes themselves are like.
    let names: Vec<Name> = cluster.nodes.keys().cloned().collect();
    for node in cluster.nodes.values_mut() {
        node.hairpin = dice.one_of(&[None, None, Some(false)]);
        if dice.once_in(6) {
            let other = names[dice.below(names.len())].clone();
            let name = if dice.once_in(2) { other } else { name("nobody") };
            node.proxy_name = Some(name).filter(|name| *name != node.name);
        }
    }
    if dice.once_in(3) {
        forward(cluster, dice, &node_ports);
    }
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

/// Has nodes forward ports to pods.
fn forward(cluster: &mut Cluster, dice: &mut Dice, node_ports: &[Port]) {
    let mut usual: Vec<Port> = [80, 6443, 8080].into_iter().filter_map(Port::new).collect();
    usual.extend(node_ports);
    for pod in cluster.pods.values_mut().filter(|pod| !pod.spec.host_network) {
        let spec = std::sync::Arc::make_mut(&mut pod.spec);
        let ports = spec.containers.iter_mut().flat_map(|container| &mut container.ports);
        for port in ports {
            if dice.once_in(4) {
                port.host_port = Some(dice.one_of(&usual));
            }
        }
    }
}

fn listener(cluster: &Cluster, dice: &mut Dice, node_ports: &[Port]) -> ListenerFact {
    let port = Port::new(dice.one_of(&[80, 6443])).expect("a port");
    let called = if node_ports.is_empty() || dice.once_in(3) {
        Port::new(dice.one_of(&[6443, 8080])).expect("a port")
    } else {
        dice.one_of(node_ports)
    };
    let names = cluster.nodes.keys();
    let some: Vec<Name> = names.filter(|_| !dice.once_in(3)).cloned().collect();
    let nodes = match dice.below(3) {
        0 => TargetNodes::All,
        1 => TargetNodes::Named(some),
        _ => TargetNodes::Labelled([(ROLE, "a")].into_iter().collect::<Labels>()),
    };
    let protocols = [ListenerProtocol::Tcp, ListenerProtocol::Tcp, ListenerProtocol::Http];
    ListenerFact {
        protocol: Some(dice.one_of(&protocols)),
        snat: Some(dice.once_in(3)),
        delivery: dice.one_of(&[None, None, Some(Delivery::KeepsAddress)]),
        health_check: dice.one_of(&[None, None, Some(false)]),
        scheduler: dice.one_of(&[None, None, Some(Scheduler::SourceHash)]),
        targets: Some(StatedTargets { nodes, port: called }),
        ..ListenerFact::new(port, Origin::SUPPOSED)
    }
}

/// Gives nodes the addresses of load balancers.
fn hold(cluster: &mut Cluster, dice: &mut Dice) {
    let services = cluster.services.values().flat_map(|service| &service.load_balancer);
    let mut vips: Vec<IpAddr> = services.filter_map(|entry| entry.ip).collect();
    vips.extend(cluster.load_balancers.iter().map(|fact| fact.vip));
    let one = dice.below(cluster.nodes.len());
    for vip in vips {
        let how = dice.below(4);
        for (number, node) in cluster.nodes.values_mut().enumerate() {
            let holds = match how {
                0 => number == one,
                1 => !dice.once_in(3),
                _ => false,
            };
            // Without the family a node can call nothing but itself by it.
            let speaks = node.address(Family::of(vip)).is_some();
            if holds && speaks && !node.local_addresses.contains(&vip) {
                node.local_addresses.push(vip);
            }
        }
    }
}
