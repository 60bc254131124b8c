//! The assumptions of a cluster, and what uturn does not judge.

use uturn_clouds::controller;
use uturn_model::{Assumption, Cluster, Text};

use super::{ingress_assumptions, uncaptured};
use crate::outline::outline_of_listeners;

/// Returns the assumptions of a cluster, including one for everything that uturn does not judge.
pub(super) fn of(cluster: &Cluster) -> Vec<Assumption> {
    // Only Facts give load balancers security groups.
    let has_groups = cluster.load_balancers.iter().any(|fact| fact.security_groups.is_some());
    let balancers = if has_groups {
        controller::load_balancers(&outline_of_listeners(cluster))
    } else {
        Vec::new()
    };
    let mut supposed = cluster.supposed.clone();
    supposed.extend(uncaptured::supposed(cluster));
    supposed.extend(ingress_assumptions::of_ingresses(cluster));
    let mut unjudged = |about: String, passes: &str, settle: &str| {
        supposed.push(Assumption {
            subject: about.into(),
            assumed: passes.into(),
            because: "uturn does not judge it".into(),
            settle: settle.into(),
        });
    };
    let policies = &cluster.network_policies;
    if !policies.is_empty() && !policies.captured.is_empty() {
        unjudged(
            format!("{} NetworkPolicy", policies.iter().count()),
            "everything passes that the rules of captured nodes let through",
            "look whether they allow the flow",
        );
    }
    let mut groups: Vec<&Text> = Vec::new();
    let nodes = cluster.nodes.values().filter_map(|node| node.security_groups.as_ref());
    for name in nodes.chain(balancers.iter().map(|balancer| &balancer.security_groups)).flatten() {
        if !cluster.security_groups.contains_key(name) && !groups.contains(&name) {
            groups.push(name);
            let settle = "state its rules in Facts: spec.securityGroups";
            unjudged(format!("security group {name}"), "everything passes", settle);
        }
    }
    supposed
}
