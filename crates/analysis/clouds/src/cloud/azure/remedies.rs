//! What annotations make the Standard Load Balancer do otherwise.

use uturn_model::Service;

use super::standard::NO_FLOATING_IP;
use crate::cloud::{Remedy, Want};

/// What brings about something that is wanted. It always keeps the client's address, and no
/// annotation changes its status.
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
