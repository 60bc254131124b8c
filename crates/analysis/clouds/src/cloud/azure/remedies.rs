//! Annotations that change the behaviour of the Standard Load Balancer.

use uturn_model::Service;

use super::standard::NO_FLOATING_IP;
use crate::cloud::{Remedy, Want};

/// Returns the remedies for a [`Want`]. The load balancer always keeps the client's address, and no
/// annotation changes the status.
pub(super) fn remedies(_: &Service, want: Want, _: &str) -> Vec<Remedy> {
    match want {
        Want::NodePorts => vec![
            Remedy::annotation(NO_FLOATING_IP, "true")
                .costs("nodes see their own address as the destination: rules of a node's firewall or of a network security group that name the load balancer's address no longer match")
                .costs("a node or pod that the load balancer gives itself gets no answer, where calls from inside reach it"),
        ],
        _ => Vec::new(),
    }
}
