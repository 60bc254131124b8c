//! Finds what objects leave open on the ways of the clouds' load balancers: ways to targets that
//! somebody else has to open, and load balancers that are internal because nothing asks for the other.

use std::time::Duration;

use uturn_clouds::cloud::{self, ByDefault, ClosedBy, Maker, OpenEnd};
use uturn_clouds::controller;
use uturn_model::service::ServiceKind;
use uturn_model::{Cluster, Ingress, ObjectKind, ObjectRef, Origin, Outcome, Service, Share};
use uturn_path::Engine;

use super::object_faults::about;
use super::unserved::with_hosts;
use crate::clients::Clients;
use crate::finding::Finding;
use crate::{Code, Severity};

/// The load balancer of an object, as far as its product leaves something open.
pub(crate) struct Left {
    pub(crate) end: Option<OpenEnd>,
    pub(crate) default: Option<ByDefault>,
}

pub(crate) fn find(engine: &Engine<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    let of_ingress = |ingress: &Ingress| {
        let found =
            of_ingress(cluster, ingress).map(|left| made(&ingress.object(), &ingress.origin, left));
        let all = found.into_iter().flatten();
        let with_hosts = |finding: Finding| {
            let (outcome, clients) = (finding.outcome, finding.clients.clone());
            Finding { outcome, clients, ..with_hosts(finding, ingress) }
        };
        all.map(with_hosts).collect::<Vec<Finding>>()
    };
    let of_service = |service: &Service| {
        let found =
            of_service(cluster, service).map(|left| made(&service.object(), &service.origin, left));
        let all = found.into_iter().flatten();
        let with_ports = |mut finding: Finding| {
            finding.targets = service.ports.iter().map(|port| format!(":{}", port.port)).collect();
            finding
        };
        all.map(with_ports).collect::<Vec<Finding>>()
    };
    let of_ingresses = cluster.ingresses.values().flat_map(of_ingress);
    of_ingresses.chain(cluster.services.values().flat_map(of_service)).collect()
}

/// Returns what the object of a fault leaves open.
pub(crate) fn left(cluster: &Cluster, object: &ObjectRef) -> Option<Left> {
    let name = object.namespaced_name()?;
    match object.kind {
        ObjectKind::Ingress => of_ingress(cluster, cluster.ingresses.get(&name)?),
        ObjectKind::Service => of_service(cluster, cluster.services.get(&name)?),
        _ => None,
    }
}

fn of_ingress(cluster: &Cluster, ingress: &Ingress) -> Option<Left> {
    if ingress.load_balancer.is_empty() || !controller::is_served_by_cloud(cluster, ingress) {
        return None;
    }
    let product = controller::product_of(ingress)?;
    let (end, default) = (product.open_end(cluster, ingress), product.private_by_default(ingress));
    Some(Left { end, default })
}

fn of_service(cluster: &Cluster, service: &Service) -> Option<Left> {
    if service.kind != ServiceKind::LoadBalancer || service.load_balancer.is_empty() {
        return None;
    }
    let Maker::Product(product, _) = cloud::maker_of(service, &cluster.provider) else {
        return None;
    };
    let (end, default) = (product.open_end(cluster, service), product.private_by_default(service));
    Some(Left { end, default })
}

fn made(object: &ObjectRef, origin: &Origin, left: Left) -> Vec<Finding> {
    let end = left.end.map(|end| {
        let code = match end.by {
            ClosedBy::Group => Code::SecurityGroup,
            ClosedBy::Route => Code::NoRoute,
        };
        let mut finding = about(code, object.clone(), origin, end.because);
        finding.severity = Severity::Warning;
        finding.conditions.push(end.condition.into());
        finding.outcome = match end.answer {
            Some((code, after)) => Outcome::Status { code, after: Duration::from_secs(after) },
            None => Outcome::Hangs,
        };
        finding.clients = Clients::other(match object.kind {
            ObjectKind::Ingress => Clients::OF_HOSTS,
            _ => Clients::OUTSIDE,
        });
        finding
    });
    let default = left.default.map(|default| {
        let mut finding = about(Code::NoRoute, object.clone(), origin, default.because);
        finding.severity = Severity::Info;
        finding.outcome = Outcome::Hangs;
        finding.clients = Clients::other(Clients::INTERNET);
        finding
    });
    let all = end.into_iter().chain(default);
    all.map(|finding| Finding { share_failing: Share::ALL, ..finding }).collect()
}
