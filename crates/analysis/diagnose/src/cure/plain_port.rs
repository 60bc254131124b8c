//! A cure of load balancers that end TLS and call the port of a controller that expects TLS.

use uturn_document::edit::{Change, Tree};
use uturn_model::Mechanism;
use uturn_model::controller::ControllerListener;
use uturn_model::service::TargetPort;

use super::service::{title, with_target};
use super::{Case, Proposal, controller, endpoints, way};

/// Proposes the controller's port without TLS as the target of a Service's port, if a client that
/// ends or does not speak TLS is led to the port that expects it.
pub(super) fn propose(case: &Case<'_>) -> Vec<Proposal> {
    if !case.has(Mechanism::WrongPort) {
        return Vec::new();
    }
    let (Some(controller), Some(service)) = (controller::behind(case), case.service()) else {
        return Vec::new();
    };
    let (Some(listener), Some(port)) =
        (controller::called_listener(case, controller), &case.aim.port)
    else {
        return Vec::new();
    };
    let Some(at) = service.ports.iter().position(|own| own == port) else { return Vec::new() };
    let pods = case.cluster().selected(service);
    let is_plain = |own: &&ControllerListener| !own.tls && own.takes.has_requests();
    if !listener.tls || !case.ends_tls() {
        return Vec::new();
    }
    let made = controller.listeners.iter().filter(is_plain).map(|plain| {
        let number = plain.port;
        let mut declared = pods.iter().flat_map(|pod| pod.spec.ports());
        let name = declared.find(|own| own.port == number).and_then(|own| own.name.clone());
        // The target keeps its form: a name, or a number.
        let name = name.filter(|_| matches!(port.target, TargetPort::Name(_)));
        let (value, tree, target) = match name {
            Some(name) => {
                (format!("{name} ({number})"), Tree::text(&*name), TargetPort::Name(name))
            }
            None => {
                (number.to_string(), Tree::number(number.number()), TargetPort::Number(number))
            }
        };
        let made = Proposal::new("target-port", 10, title(service, port, &value))
            .edit(service.object(), way!["spec", "ports", at, "targetPort"], Change::Set(tree))
            .costs(
                "the controller does not see TLS on these calls any more: the load balancer ends it",
            )
            .trial();
        endpoints::follow(case, made, &with_target(service, at, target), &pods)
    });
    made.collect()
}
