//! Evaluates health checks that ask a node rather than the target: whether its kube-proxy works, or
//! has an endpoint of the Service. The lab's nodes have kube-proxy's rules without the program, so
//! the lab answers in its place, before anything is built.

use std::net::Ipv4Addr;

use uturn_clouds::targets::has_ready_pod;
use uturn_lb::decide::Choice;
use uturn_model::lb::{HealthQuestion, Listener, Rule, Target};
use uturn_model::{Cluster, LoadBalancer};

/// Returns the load balancers with only the targets that may be picked, if their health checks ask
/// nodes. Such listeners are not probed any more.
pub(crate) fn answered(cluster: &Cluster, all: &[LoadBalancer]) -> Vec<LoadBalancer> {
    let mut all = all.to_vec();
    for listener in all.iter_mut().flat_map(|lb| &mut lb.listeners) {
        let question = listener.profile.health_check.as_ref().map(|check| check.question);
        let Some(question) = question else { continue };
        if asks_nodes(question, listener) {
            let Listener { profile, rules, .. } = listener;
            for rule in rules {
                let is_alive = |target: &Target| is_alive(cluster, question, rule, target);
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
    !is_of_target && targets.all(|target| target.kind.node().is_some())
}

fn is_alive(cluster: &Cluster, question: HealthQuestion, rule: &Rule, target: &Target) -> bool {
    let service = cluster.services.get(&rule.service);
    match (question, service.zip(target.kind.node())) {
        (HealthQuestion::LocalEndpoint, Some((service, node))) => {
            has_ready_pod(cluster, service, node)
        }
        _ => true,
    }
}
