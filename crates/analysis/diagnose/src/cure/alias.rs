//! Cures of rules that lead to a Service of type ExternalName which the controller does not take: a
//! setting of the controller, or the port that it looks for.

use uturn_document::edit::{Change, Tree};
use uturn_model::controller::{Aliases, IngressController};
use uturn_model::ingress::BackendPort;
use uturn_model::service::ServiceKind;
use uturn_model::{Mechanism, Pod, Service};

use super::template::Template;
use super::{Case, Proposal, controller, way};

/// The argument of Traefik with which Ingresses may lead to such Services.
const ALLOWED: &str = "--providers.kubernetesingress.allowExternalNameServices=true";

pub(super) fn propose(case: &Case<'_>) -> Option<Proposal> {
    if !case.has(Mechanism::NoEndpoint) {
        return None;
    }
    let routed = controller::routed(case)?;
    let service = case.cluster().services.get(&routed.service)?;
    let ServiceKind::ExternalName(outside) = &service.kind else { return None };
    let made = match routed.behaviour.aliases {
        Aliases::Dropped => allowed(case, routed.controller)?,
        Aliases::FollowedByPort => with_port(service, &routed.port)?,
        Aliases::Followed => return None,
    };
    let mut made = made.costs(format!(
        "requests then go to {outside}: what answers there is not known, and it has to know the \
         host that clients ask for"
    ));
    made.leads_out = Some(service.name.clone());
    Some(made)
}

/// Proposes that the controller takes such Services.
fn allowed(case: &Case<'_>, controller: &IngressController) -> Option<Proposal> {
    if &*controller.product != "Traefik" {
        return None;
    }
    let mut pods = case.cluster().pods.values();
    let pod: &Pod = pods.find(|pod| pod.is_alive() && controller.has_pod(pod))?;
    let template = Template::of_pod(case, pod)?;
    let title = format!("{ALLOWED} for {}", template.object);
    let made = Proposal::new("external-name", 12, title)
        .costs(template.cost())
        .costs("whoever may write a Service may let it lead to any host that its pods reach");
    template.with_argument(case, made, ALLOWED, |argument| {
        argument.to_ascii_lowercase().starts_with("--providers.kubernetesingress")
    })
}

/// Proposes that the Service has the port that the rule names.
fn with_port(service: &Service, port: &BackendPort) -> Option<Proposal> {
    let BackendPort::Number(number) = port else { return None };
    let title = format!("port {number} in svc/{}, which the rule names", service.name);
    let mut entries = vec![("port".to_owned(), Tree::number(number.number()))];
    // Of several ports, each needs a name.
    if !service.ports.is_empty() {
        entries.insert(0, ("name".to_owned(), Tree::text(format!("port-{number}"))));
    }
    let path = way!["spec", "ports"];
    let object = service.object();
    let change = if service.ports.is_empty() {
        Change::Set(Tree::List(vec![Tree::Map(entries)]))
    } else {
        Change::Append(Tree::Map(entries))
    };
    Some(Proposal::new("external-name-port", 10, title).edit(object, path, change))
}
