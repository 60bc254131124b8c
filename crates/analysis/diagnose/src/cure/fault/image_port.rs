//! Cures of target ports at which the program of an image does not listen.

use uturn_document::edit::{Change, Tree};
use uturn_model::service::TargetPort;
use uturn_model::{Port, Service};

use super::super::{Case, Proposal, endpoints, way};
use super::service_of;
use crate::Finding;
use crate::find::image_ports::{SilentPort, silent_port};

/// Proposes the first port at which the image listens.
pub(super) fn propose(case: &Case<'_>, fault: &Finding) -> Vec<Proposal> {
    let service = service_of(case, fault);
    service.and_then(|service| of_service(case, service)).into_iter().collect()
}

fn of_service(case: &Case<'_>, service: &Service) -> Option<Proposal> {
    let mut pods = case.cluster().selected(service);
    pods.retain(|pod| pod.is_alive());
    let SilentPort { at, wanted, usual } = silent_port(service, &pods)?;
    let number = Port::new(*usual.first()?)?;
    let (image, port) = (&pods.first()?.spec.containers.first()?.image, service.ports[at].port);
    let title =
        format!("targetPort {number} instead of {wanted} for svc/{} port {port}", service.name);
    let made = Proposal::new("target-port", 10, title)
        .when(
            format!("the pods listen on {number}"),
            true,
            format!("image {image} does, unless a file in it says otherwise"),
        )
        .costs(format!(
            "or let the pods listen on {wanted}, and declare it as a containerPort: this changes them"
        ))
        .edit(
            service.object(),
            way!["spec", "ports", at, "targetPort"],
            Change::Set(Tree::number(number.number())),
        );
    let mut after = service.clone();
    after.ports[at].target = TargetPort::Number(number);
    Some(endpoints::follow(case, made, &after, &pods))
}
