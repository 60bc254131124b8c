//! Evaluates health checks that ask a node rather than the target: whether its kube-proxy works, or
//! has an endpoint of the Service. The lab's nodes have kube-proxy's rules without the program, so
//! the lab answers in its place, before anything is built.

use std::net::{IpAddr, Ipv4Addr};

use uturn_clouds::targets::has_ready_pod;
use uturn_lb::decide::Choice;
use uturn_model::lb::{HealthQuestion, Listener, Rule, Target};
use uturn_model::{Cluster, LoadBalancer, Port};

use crate::linux::forward::rules::let_in_probe;

/// Returns the load balancers with only the targets that may be picked, if their health checks ask
/// nodes. Such listeners are not probed any more.
pub(crate) fn answered(cluster: &Cluster, all: &[LoadBalancer]) -> Vec<LoadBalancer> {
    let mut all = all.to_vec();
    for (vip, listener) in all.iter_mut().flat_map(|lb| {
        let vip = lb.vip;
        lb.listeners.iter_mut().map(move |listener| (vip, listener))
    }) {
        let check = listener.profile.health_check.as_ref();
        let Some((question, source)) = check.map(|check| (check.question, check.source)) else {
            continue;
        };
        let prober = source.address(vip);
        if asks_nodes(question, listener) {
            let Listener { profile, rules, .. } = listener;
            for rule in rules {
                let is_alive = |target: &Target| {
                    is_alive(cluster, question, rule, target)
                        && is_let_in(cluster, question, rule, target, prober)
                };
                let alive: Vec<bool> = rule.targets.iter().map(is_alive).collect();
                // No node asks for itself.
                let client = Ipv4Addr::UNSPECIFIED.into();
                let left = Choice::new(profile, &rule.targets, &alive, client).candidates();
                let all = std::mem::take(&mut rule.targets).into_iter().enumerate();
                let left = all.filter(|(at, _)| left.contains(at));
                rule.targets = left.map(|(_, target)| target).collect();
            }
            profile.health_check = None;
        }
    }
    all
}

fn asks_nodes(question: HealthQuestion, listener: &Listener) -> bool {
    let mut targets = listener.rules.iter().flat_map(|rule| &rule.targets);
    // The lab's pods have every page.
    let is_of_target = matches!(question, HealthQuestion::Target | HealthQuestion::Page { .. });
    let is_settled = matches!(question, HealthQuestion::Unanswered(_));
    is_settled || !is_of_target && targets.all(|target| target.kind.node().is_some())
}

/// Returns whether the groups of a target's node let in health checks of its kube-proxy.
fn is_let_in(
    cluster: &Cluster,
    question: HealthQuestion,
    rule: &Rule,
    target: &Target,
    prober: IpAddr,
) -> bool {
    let port = match question {
        HealthQuestion::ServiceProxy => Some(SERVICE_PROXY),
        HealthQuestion::LocalEndpoint => cluster
            .services
            .get(&rule.service)
            .and_then(|service| service.health_check_node_port)
            .map(Port::number),
        _ => None,
    };
    let node = target.kind.node().and_then(|node| cluster.nodes.get(node));
    port.zip(node).is_none_or(|(port, node)| let_in_probe(cluster, node, prober, port))
}

/// The port at which kube-proxy answers for itself.
const SERVICE_PROXY: u16 = 10_256;

fn is_alive(cluster: &Cluster, question: HealthQuestion, rule: &Rule, target: &Target) -> bool {
    let service = cluster.services.get(&rule.service);
    match (question, service.zip(target.kind.node())) {
        (HealthQuestion::LocalEndpoint, Some((service, node))) => {
            has_ready_pod(cluster, service, node)
        }
        (HealthQuestion::Unanswered(_), _) => false,
        _ => true,
    }
}
