//! Cures of the addresses in a Service's status, for load balancers of which no cloud's folder
//! states an annotation.

use uturn_clouds::cloud::{self, Maker, Want};
use uturn_document::edit::{Change, Tree};
use uturn_model::service::IpMode;
use uturn_model::shell::Command;
use uturn_model::{Destination, Mechanism, Service};

use super::{Case, Proposal, way};

/// Proposes that nodes leave a load balancer's address alone, so that calls from inside go through
/// the load balancer.
pub(super) fn propose(case: &Case<'_>) -> Vec<Proposal> {
    let bypasses = [Mechanism::TlsBypassed, Mechanism::ProxyHeader];
    let is_bypassed = bypasses.into_iter().any(|mechanism| case.has(mechanism));
    let Some(service) = balanced(case).filter(|_| is_bypassed && case.is_from_inside()) else {
        return Vec::new();
    };
    let is_to_service =
        matches!(case.walked().map(|flow| &flow.to), Some(Destination::Service(..)));
    let remedies = match cloud::maker_of(service, &case.cluster().provider) {
        Maker::Product(product, _) => cloud::remedies_of(product),
        _ => None,
    };
    let has_annotation =
        remedies.is_some_and(|remedies| !remedies(service, Want::CallsFromInside, "").is_empty());
    if is_to_service || has_annotation {
        return Vec::new();
    }
    // Where calls lack TLS, undoing the bypass is another cure.
    let mode = mode_proxy(service).filter(|_| !case.has(Mechanism::TlsBypassed));
    host_name(service).into_iter().chain(mode).collect()
}

/// Returns the called Service, or the one in whose status the called address is.
fn balanced<'a>(case: &Case<'a>) -> Option<&'a Service> {
    let vip = case.aim.vip.map(|vip| vip.ip());
    let has = |service: &&Service| service.load_balancer.iter().any(|entry| entry.ip == vip);
    let of_address = || case.cluster().services.values().find(has).filter(|_| vip.is_some());
    case.service().or_else(of_address)
}

/// Returns the index and the address of the entry whose address nodes serve.
fn served(service: &Service) -> Option<(usize, std::net::IpAddr)> {
    let mut entries = service.load_balancer.iter().enumerate();
    entries.find_map(|(at, entry)| Some((at, entry.ip.filter(|_| entry.mode != IpMode::Proxy)?)))
}

/// Proposes a host name in place of the address.
fn host_name(service: &Service) -> Option<Proposal> {
    let (at, ip) = served(service)?;
    let name = format!("{}.{}.example.com", service.name.name, service.name.namespace);
    let entry = Tree::map([("hostname", Tree::text(&*name))]);
    let path = way!["status", "loadBalancer", "ingress", at];
    let title = format!("a host name in place of {ip} in the status of svc/{}", service.name);
    let made = Proposal::new("name-in-status", 30, title)
        .ask(
            "the load balancer's controller can write a host name",
            "most have an annotation for one, such as …/hostname: look in its manual",
        )
        .edit(service.object(), path, Change::Set(entry));
    let mut made = shared(made, service, &format!(
        "[{{\"op\":\"replace\",\"path\":\"/status/loadBalancer/ingress/{at}\",\"value\":{{\"hostname\":\"{name}\"}}}}]"
    ))
    .costs("the name is one of yours, and DNS has to know it");
    made.resolves = vec![(name, ip)];
    Some(made)
}

/// Proposes `ipMode: Proxy`, which kube-proxy heeds from 1.30 on.
fn mode_proxy(service: &Service) -> Option<Proposal> {
    let (at, ip) = served(service)?;
    let path = way!["status", "loadBalancer", "ingress", at, "ipMode"];
    let title = format!("ipMode Proxy for svc/{}: nodes leave {ip} alone", service.name);
    let made = Proposal::new("ip-mode-proxy", 31, title).edit(
        service.object(),
        path,
        Change::Set(Tree::text("Proxy")),
    );
    Some(shared(
        made,
        service,
        &format!(
            "[{{\"op\":\"add\",\"path\":\"/status/loadBalancer/ingress/{at}/ipMode\",\"value\":\"Proxy\"}}]"
        ),
    ))
}

/// Adds the command that changes the status, and the effects of both ways.
fn shared(made: Proposal, service: &Service, patch: &str) -> Proposal {
    let command = Command::new("kubectl -n")
        .value(&service.name.namespace)
        .words("patch svc")
        .value(&service.name.name)
        .words("--subresource=status --type=json -p")
        .value(patch);
    made.types(command)
        .costs("the controller that wrote the status may write it again: change it there for good")
        .costs("calls from inside leave the cluster and come back through the load balancer")
        .trial()
}
