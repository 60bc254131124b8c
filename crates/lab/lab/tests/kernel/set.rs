//! Clusters to change, and what is measured of them.

use std::net::IpAddr;

use uturn_lab::MeasuredFlow;
use uturn_model::lb::{ProbeSource, Target};
use uturn_model::network::NetworkMode;
use uturn_model::{Cluster, Flow, Known, LoadBalancer, Origin, Outcome};

use crate::rows::{flow, plan, quick};

/// A cluster and its load balancers.
pub(crate) type Set = (Cluster, Vec<LoadBalancer>);

pub(crate) const OUTSIDE: &str = "outside";

pub(crate) fn measure_pairs(
    (cluster, balancers): &Set,
    pairs: &[(&str, &str)],
) -> Vec<MeasuredFlow> {
    let flows: Vec<Flow> = pairs.iter().map(|(from, to)| flow(from, to)).collect();
    uturn_lab::measure(&plan(cluster, balancers, &flows), &mut |_| {}).unwrap()
}

/// Every connection of each flow ends so.
pub(crate) fn hold(set: &Set, expected: &[(&str, &str, Outcome)]) -> Vec<MeasuredFlow> {
    let pairs: Vec<_> = expected.iter().map(|(from, to, _)| (*from, *to)).collect();
    let measured = measure_pairs(set, &pairs);
    for (flow, (from, to, outcome)) in measured.iter().zip(expected) {
        assert_eq!(flow.counts, [(*outcome, 12)], "{from} → {to}: {:?}", flow.evidence);
    }
    measured
}

/// The nodes no longer serve the load balancers' addresses by themselves.
pub(crate) fn forget_vips(set: &mut Set) {
    for service in set.0.services.values_mut() {
        service.load_balancer.clear();
    }
}

pub(crate) fn set_probe_source(set: &mut Set, source: ProbeSource) {
    for listener in set.1.iter_mut().flat_map(|lb| &mut lb.listeners) {
        listener.profile.health_check.as_mut().unwrap().source = source;
    }
}

pub(crate) fn targets(set: &mut Set) -> impl Iterator<Item = &mut Target> {
    let listeners = set.1.iter_mut().flat_map(|lb| &mut lb.listeners);
    listeners.flat_map(|listener| &mut listener.rules).flat_map(|rule| &mut rule.targets)
}

pub(crate) fn pod(name: &str) -> String {
    format!("pod/shop/{name}")
}

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub(crate) fn here() -> Origin {
    Origin::file("fabric.rs")
}

/// Pods have addresses of the VPC, on a card of their node's.
pub(crate) fn vpc_cni_set(nodes: u8) -> Set {
    let (mut cluster, load_balancers) = quick(nodes);
    cluster.network.mode = Known::stated(NetworkMode::VpcCni, here());
    cluster.network.vpc_cidrs = Known::stated(vec!["10.0.0.0/15".parse().unwrap()], here());
    for node in cluster.nodes.values_mut() {
        node.pod_cidrs.clear();
    }
    (cluster, load_balancers)
}
