//! Cures of loopback at a Service's load balancer: by annotation, by version, by policy.

mod kube_proxy;
mod policy;

use uturn_document::edit::{At, Change, Tree};
use uturn_model::service::IpMode;
use uturn_model::shell::Command;
use uturn_model::{Mechanism, ObjectKind};

use kube_proxy::{newer_kube_proxy, prevent_loopback, undo_bypass};
use policy::{policy_cluster, policy_local};

use super::{Case, Proposal, way};

pub(super) fn propose(case: &Case<'_>) -> Vec<Proposal> {
    let mut all = Vec::new();
    let loops = [
        Mechanism::AsymmetricReturn,
        Mechanism::NoCandidate,
        Mechanism::ReversePathFilter,
        Mechanism::LocalSourceDrop,
    ];
    let is_loop = loops.into_iter().any(|mechanism| case.has(mechanism)) && case.walked().is_some();
    let is_services =
        case.aim.owner.as_ref().is_some_and(|owner| owner.kind == ObjectKind::Service);
    if is_loop && case.is_from_inside() {
        if is_services {
            all.extend(prevent_loopback(case));
            all.extend(newer_kube_proxy(case));
            all.extend(ip_mode(case));
        }
        all.extend(policy_local(case));
        all.extend(policy_cluster(case));
    } else if is_loop || case.has(Mechanism::Firewall) || case.has(Mechanism::ProxyFilter) {
        // Under policy Local, a node without an endpoint may receive a call and not its reply, and
        // kube-proxy's own filter may refuse it.
        all.extend(policy_cluster(case).map(Proposal::trial));
    }
    if case.has(Mechanism::VipUnknown) && !is_loop {
        all.extend(ip_mode(case));
    }
    let bound = [Mechanism::TlsBypassed, Mechanism::WrongPort, Mechanism::AddressTaken];
    if bound.into_iter().any(|mechanism| case.has(mechanism)) {
        all.extend(undo_bypass(case));
    }
    if case.has(Mechanism::NoEndpoint) && !is_loop {
        all.extend(policy_cluster(case));
    }
    all
}

fn annotation(key: &str) -> Vec<At> {
    way!["metadata", "annotations", key]
}

/// Proposes that nodes serve the address, if `ipMode: Proxy` prevents them.
fn ip_mode(case: &Case<'_>) -> Option<Proposal> {
    let (service, vip) = (case.service()?, case.aim.vip?.ip());
    let at = service.load_balancer.iter().position(|entry| entry.ip == Some(vip))?;
    if service.load_balancer[at].mode != IpMode::Proxy {
        return None;
    }
    let tls = case.listener().is_some_and(|(_, listener)| listener.protocol.ends_tls());
    let way = way!["status", "loadBalancer", "ingress", at, "ipMode"];
    Some(
        Proposal::new("ip-mode-vip", 30, format!("ipMode VIP for svc/{}: nodes serve {vip}", service.name))
            .when("the listener does not end TLS", !tls, if tls { "it does" } else { "it does not" })
            .edit(service.object(), way, Change::Set(Tree::text("VIP")))
            .types(
                Command::new("kubectl -n")
                    .value(&service.name.namespace)
                    .words("patch svc")
                    .value(&service.name.name)
                    .words("--subresource=status --type=json -p")
                    .value(format!(
                        "[{{\"op\":\"replace\",\"path\":\"/status/loadBalancer/ingress/{at}/ipMode\",\"value\":\"VIP\"}}]"
                    )),
            )
            .costs("the controller that set ipMode may set it again: change it there permanently")
            .costs("pods lose what the load balancer does on the way (TLS, PROXY protocol, \
                    headers, source ranges)"),
    )
}
