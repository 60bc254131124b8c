//! How NetworkPolicies distinguish pods: by which policies select a pod, and which of their peers and
//! named ports it fits.

use std::net::IpAddr;
use std::sync::Arc;

use uturn_model::network_policy::{NetworkPolicies, PolicyPeer, PortNumbers};
use uturn_model::pod::PodSpec;
use uturn_model::{Cluster, IpNet, Name, Pod, Port, Text};
use uturn_netfilter::hash::FastMap;

use crate::numbers::Numbers;

/// A number for each address of a pod that policies distinguish from others.
#[derive(Default)]
pub(crate) struct Policed {
    marks: FastMap<IpAddr, u32>,
}

/// What policies see of a pod.
#[derive(PartialEq, Eq, Hash)]
struct LookOfPod {
    is_judged: bool,
    /// Whether each policy selects the pod, and whether each peer fits it: `None` if that is not
    /// known.
    fits: Vec<Option<bool>>,
    /// The number of each port that policies name.
    named: Vec<Option<Port>>,
}

/// Pods of one namespace with one spec, on nodes whose policies are judged or not, look alike.
type Known<'a> = FastMap<(&'a Name, *const PodSpec, bool), u32>;

impl Policed {
    pub(crate) fn new(cluster: &Cluster) -> Self {
        let policies = &cluster.network_policies;
        if !policies.are_enforced() {
            return Self::default();
        }
        let names = port_names(policies);
        let (mut numbers, mut known) = (Numbers::default(), Known::default());
        let mut marks = FastMap::default();
        for pod in cluster.pods.values().filter(|pod| !pod.spec.host_network) {
            let is_judged = policies.are_judged_for(pod);
            let key = (&pod.name.namespace, Arc::as_ptr(&pod.spec), is_judged);
            let number = *known.entry(key).or_insert_with(|| {
                let named = names.iter().flat_map(|name| {
                    pod.spec
                        .ports()
                        .filter(|port| port.name.as_deref() == Some(&**name))
                        .map(|port| Some(port.port))
                        .chain([None])
                });
                numbers.of(LookOfPod {
                    is_judged,
                    fits: fits(policies, pod),
                    named: named.collect(),
                })
            });
            marks.extend(pod.ips.iter().map(|ip| (*ip, number)));
        }
        Self { marks }
    }

    /// Adds the mark of an address to those of the ranges that contain it.
    pub(crate) fn add_mark(&self, ip: IpAddr, within: &mut Vec<u32>) {
        if let Some(mark) = self.marks.get(&ip) {
            within.extend([u32::MAX - 1, *mark]);
        }
    }
}

fn fits(policies: &NetworkPolicies, pod: &Pod) -> Vec<Option<bool>> {
    let mut all = Vec::new();
    for policy in policies.iter() {
        let is_own = pod.name.namespace == policy.name.namespace;
        all.push(Some(is_own && policy.pods.matches(&pod.spec.labels)));
        let rules = policy.ingress.iter().chain(&policy.egress).flatten();
        for peer in rules.flat_map(|rule| &rule.peers) {
            let PolicyPeer::Pods { namespaces, pods } = peer else { continue };
            let is_it = pods.as_ref().is_none_or(|pods| pods.matches(&pod.spec.labels));
            all.push(match namespaces {
                _ if !is_it => Some(false),
                None => Some(is_own),
                Some(selector) => policies.has_namespace(selector, &pod.name.namespace),
            });
        }
    }
    all
}

/// Returns the names of ports in all rules.
fn port_names(policies: &NetworkPolicies) -> Vec<&Text> {
    let rules = policies.iter().flat_map(|policy| policy.ingress.iter().chain(&policy.egress));
    let ports = rules.flatten().flat_map(|rule| &rule.ports);
    let mut names: Vec<&Text> = ports
        .filter_map(|port| match &port.numbers {
            PortNumbers::Named(name) => Some(name),
            PortNumbers::All | PortNumbers::Range(..) => None,
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the ranges and ports that rules of policies name.
pub(crate) fn words(policies: &NetworkPolicies) -> (Vec<IpNet>, Vec<(u16, u16)>) {
    let (mut nets, mut ports) = (Vec::new(), Vec::new());
    if !policies.are_enforced() {
        return (nets, ports);
    }
    let rules = policies.iter().flat_map(|policy| policy.ingress.iter().chain(&policy.egress));
    for rule in rules.flatten() {
        for peer in &rule.peers {
            if let PolicyPeer::Range { net, except } = peer {
                nets.push(*net);
                nets.extend(except);
            }
        }
        ports.extend(rule.ports.iter().filter_map(|port| match &port.numbers {
            PortNumbers::Range(first, last) => Some((first.number(), last.number())),
            PortNumbers::All | PortNumbers::Named(_) => None,
        }));
    }
    (nets, ports)
}
