//! Security groups of a load balancer.

use uturn_lb::config::Config;
use uturn_model::Origin;
use uturn_model::network::{SecurityGroup, SecurityRule};

/// Gives the load balancer a group that accepts or drops these ranges, in this order.
pub(crate) fn set_group(config: &mut Config, ranges: &[(bool, &str)]) {
    let rule = |(accept, peer): &(bool, &str)| SecurityRule {
        accept: *accept,
        protocol: None,
        ports: None,
        peer: Some(peer.parse().unwrap()),
        origin: Origin::file("lb.yaml"),
    };
    config.load_balancers[0].load_balancer.security_groups = vec!["web".into()];
    config.security_groups = vec![SecurityGroup {
        name: "web".into(),
        inbound: ranges.iter().map(rule).collect(),
        outbound: Vec::new(),
        origin: Origin::file("lb.yaml"),
    }];
}
