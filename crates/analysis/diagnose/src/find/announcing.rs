//! Finds addresses of load balancers that nothing announces if a condition holds. Where nothing
//! does for certain, the load balancer has no target, which walks show.

use uturn_clouds::cloud::{self, Maker};
use uturn_model::service::ServiceKind;
use uturn_model::{Outcome, Service, Share};
use uturn_path::Engine;

use super::object_faults::about;
use crate::clients::Clients;
use crate::finding::Finding;
use crate::{Code, Severity};

pub(crate) fn find(engine: &Engine<'_>) -> Vec<Finding> {
    let services = engine.cluster().services.values();
    let balanced = services.filter(|service| service.kind == ServiceKind::LoadBalancer);
    balanced.filter_map(|service| of_service(engine, service)).collect()
}

fn of_service(engine: &Engine<'_>, service: &Service) -> Option<Finding> {
    let cluster = engine.cluster();
    let Maker::Product(product, _) = cloud::maker_of(service, &cluster.provider) else {
        return None;
    };
    let mut addresses = service.load_balancer.iter().filter_map(|entry| entry.ip);
    let (address, why) = addresses.find_map(|address| {
        Some((address, product.nothing_announces(cluster, service, address)?))
    })?;
    let condition = why.condition?;
    let mut finding = about(Code::NoTargets, service.object(), &service.origin, why.because);
    finding.severity = Severity::Warning;
    finding.conditions.push(condition.into());
    finding.targets = service.ports.iter().map(|port| format!("{address}:{}", port.port)).collect();
    finding.clients = Clients::other(Clients::SAME_NETWORK);
    finding.share_failing = Share::ALL;
    finding.outcome = Outcome::Hangs;
    Some(finding)
}
