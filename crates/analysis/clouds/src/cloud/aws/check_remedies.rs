//! Annotations that change what health checks of Network Load Balancers ask.

use super::annotations::{CHECK_PORT, CHECK_PROTOCOL, key};
use crate::cloud::Remedy;

/// Makes a remedy with which health checks make a connection to the port of requests.
pub(super) fn target_by_tcp() -> Remedy {
    let mut remedy = Remedy::annotation(key(CHECK_PROTOCOL), "tcp");
    remedy.annotations.push((key(CHECK_PORT), "traffic-port".to_owned()));
    remedy
}

/// Makes the remedies with which health checks of a port that takes datagrams ask elsewhere by TCP:
/// at other ports of the targets, and at kube-proxy on nodes.
pub(super) fn checks_by_tcp(others: &[(u16, String)], of_nodes: bool) -> Vec<Remedy> {
    let at = |(number, because): &(u16, String)| {
        Remedy::annotation(key(CHECK_PORT), number.to_string()).needs(
            "the targets listen there by TCP",
            Some(true),
            because,
        )
    };
    let mut all: Vec<Remedy> = others.iter().map(at).collect();
    if of_nodes {
        let mut remedy = Remedy::annotation(key(CHECK_PORT), "10256")
            .needs(
                "the nodes' security groups let health checks in at port 10256",
                None,
                "kube-proxy answers there for itself; the controller adds a rule unless it is told not to",
            )
            .costs("health checks tell whether a node's kube-proxy works, not whether servers do");
        remedy.annotations.push((key(CHECK_PROTOCOL), "http".to_owned()));
        remedy.annotations.push((key("healthcheck-path"), "/healthz".to_owned()));
        all.push(remedy);
    }
    all
}
