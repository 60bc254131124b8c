//! Finds Services that take calls from outside in one family only, although nodes and their own pods
//! have addresses of both.

use std::net::IpAddr;

use uturn_model::service::ServiceKind;
use uturn_model::{Cluster, Family, Outcome, Service, Share};
use uturn_path::Engine;

use super::object_faults::about;
use crate::Code;
use crate::clients::Clients;
use crate::finding::Finding;

pub(crate) fn find(engine: &Engine<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    let is_dual = |node: &uturn_model::Node| has_both(&node.internal_ips);
    if cluster.nodes.is_empty() || !cluster.nodes.values().all(is_dual) {
        return Vec::new();
    }
    cluster.services.values().filter_map(|service| of_service(cluster, service)).collect()
}

fn has_both(addresses: &[IpAddr]) -> bool {
    Family::BOTH.iter().all(|family| addresses.iter().any(|ip| Family::of(*ip) == *family))
}

fn of_service(cluster: &Cluster, service: &Service) -> Option<Finding> {
    let is_called = matches!(service.kind, ServiceKind::NodePort | ServiceKind::LoadBalancer);
    let first = service.cluster_ips.first().filter(|_| is_called && !service.headless)?;
    let family = Family::of(*first);
    let endpoints = cluster.slices(&service.name).iter().flat_map(|slice| &slice.endpoints);
    let mut pods =
        endpoints.filter_map(|endpoint| cluster.pods.get(endpoint.pod.as_ref()?)).peekable();
    pods.peek()?;
    let are_dual = pods.all(|pod| has_both(&pod.ips));
    if !are_dual || service.cluster_ips.iter().any(|ip| Family::of(*ip) != family) {
        return None;
    }
    let other = family.other();
    let what = format!(
        "ipFamilyPolicy SingleStack, the default, gives it an address of {family} only, and \
         PreferDualStack both: nodes and its pods have {other} too, and calls of {other} from outside \
         are refused"
    );
    let mut finding = about(Code::OneFamily, service.object(), &service.origin, what);
    finding.targets = vec![format!("by {other}")];
    finding.clients = Clients::other(Clients::OUTSIDE);
    finding.share_failing = Share::ALL;
    finding.outcome = Outcome::Refused;
    Some(finding)
}
