//! Cures by addresses that kube-proxy binds: the annotation that requests it, and versions that
//! know the annotation.

use std::net::IpAddr;

use uturn_clouds::cloud::{KubeProxyBuilds, Maker};
use uturn_document::edit::{At, Change, Tree};
use uturn_model::lb::StatedProbeSource;
use uturn_model::service::ServiceKind;
use uturn_model::shell::Command;
use uturn_model::{
    Mechanism, NamespacedName, ObjectKind, ObjectRef, ProxyMode, Service, Variant, WorkloadKind,
    image,
};

use super::annotation;
use crate::cloud;
use crate::cure::case::basis_of;
use crate::cure::facts::{facts, probe_source_path};
use crate::cure::{Case, Proposal, way};

/// Returns the Services at an address that do not have the annotation yet.
fn unasked<'c>(case: &Case<'c>, vip: IpAddr, request: &str) -> Vec<&'c Service> {
    let services = case.cluster().services.values();
    let has = |service: &&Service| {
        service.kind == ServiceKind::LoadBalancer
            && service.load_balancer.iter().any(|lb| lb.ip == Some(vip))
            && !service.annotations.is(request, "true")
    };
    services.filter(has).collect()
}

/// Adds the conditions that no version of kube-proxy changes, and the edits.
fn bound(case: &Case<'_>, builds: &KubeProxyBuilds, mut made: Proposal) -> Proposal {
    let Some(vip) = case.aim.vip.map(|vip| vip.ip()) else { return made };
    let cluster = case.cluster();
    let mode = &cluster.proxy.mode;
    let found = format!("mode {} ({})", mode.value, basis_of(mode));
    let what = "kube-proxy runs in IPVS mode";
    made = if mode.value == ProxyMode::Ipvs || !mode.is_supposed() {
        made.when(what, mode.value == ProxyMode::Ipvs, found)
    } else {
        made.ask(what, found)
    };
    let others: Vec<String> = case
        .sharers(vip)
        .into_iter()
        .filter(|sharer| sharer.kind == ObjectKind::Ingress)
        .map(|sharer| sharer.to_string())
        .collect();
    made = made.when(
        "the address is shared with no Ingress",
        others.is_empty(),
        match others.as_slice() {
            [] => format!("{vip} has Services only"),
            some => format!(
                "{} is at {vip} too: its ports would end on the node, where no process listens",
                some.join(", ")
            ),
        },
    );
    let mut listeners = case.engine.balancer_at(vip).into_iter().flat_map(|own| &own.listeners);
    let tls = listeners.find(|own| own.protocol.ends_tls());
    made = made.when(
        "no listener at the address ends TLS",
        tls.is_none(),
        match tls {
            None => "none does".to_owned(),
            Some(listener) => format!(
                "port {} speaks {}: https clients in the cluster would reach a backend that does not",
                listener.port, listener.protocol
            ),
        },
    );
    made = made
        .costs(
            "the cluster's own traffic bypasses the load balancer: its weights, limits and logs \
             do not cover it",
        )
        .costs(format!(
            "the controller moves the health checks to {}: a node firewall has to let \
             it in",
            cloud::probe_range(case.cluster())
        ));
    for service in unasked(case, vip, builds.request) {
        made = made.edit(
            service.object(),
            annotation(builds.request),
            Change::Set(Tree::text("true")),
        );
    }
    probes_follow(case, vip, made)
}

/// Adds that the controller changes the source of health checks as well.
fn probes_follow(case: &Case<'_>, vip: IpAddr, made: Proposal) -> Proposal {
    let fact = case.cluster().load_balancers.iter().find(|fact| fact.vip == vip);
    if fact.is_none_or(|fact| fact.probe_source != Some(StatedProbeSource::Vip)) {
        return made;
    }
    let reserved = Change::Set(Tree::text("reserved"));
    made.follow(facts(), probe_source_path(vip), reserved)
}

pub(super) fn prevent_loopback(case: &Case<'_>) -> Option<Proposal> {
    let builds = cloud::builds(case.cluster())?;
    // The load balancer of a product has no such annotation.
    let maker = uturn_clouds::cloud::maker_of(case.service()?, &case.cluster().provider);
    if matches!(maker, Maker::Product(..)) {
        return None;
    }
    let name = case.aim.service.as_ref().map(ToString::to_string).unwrap_or_default();
    let title = format!("annotate svc/{name} with prevent-loopback");
    let mut made = bound(case, builds, Proposal::new("prevent-loopback", 20, title));
    let proxy = &case.cluster().proxy;
    if proxy.mode.value != ProxyMode::Ipvs {
        return Some(made);
    }
    let variant = proxy.variant.value;
    made = made.when(
        format!("kube-proxy is {}", builds.owner),
        variant != Variant::Upstream,
        match variant {
            Variant::Cloud(_) => basis_of(&proxy.variant),
            Variant::Upstream => "upstream's binds every address without being asked".to_owned(),
        },
    );
    let honours = (builds.binding)(proxy.version.value).honours_request();
    made = made.when(
        "kube-proxy's version knows the annotation",
        honours,
        if honours {
            format!("{} ({})", proxy.version.value, basis_of(&proxy.version))
        } else {
            format!(
                "{} does not ({}); {} is the first of its line",
                proxy.version.value,
                basis_of(&proxy.version),
                (builds.first_honouring)(proxy.version.value)
                    .map_or("none".to_owned(), |version| version.to_string())
            )
        },
    );
    Some(made)
}

/// Proposes a newer image of kube-proxy, if the running one does not know the annotation.
pub(super) fn newer_kube_proxy(case: &Case<'_>) -> Option<Proposal> {
    let proxy = &case.cluster().proxy;
    let old = proxy.version.value;
    let builds = uturn_clouds::cloud::builds_of(proxy.variant.value)?;
    if proxy.mode.value != ProxyMode::Ipvs || proxy.address_binding.honours_request() {
        return None;
    }
    let new = (builds.first_honouring)(old)?;
    let title = format!("kube-proxy {new} instead of {old}, and prevent-loopback");
    let mut made = bound(case, builds, Proposal::new("kube-proxy-image", 60, title))
        .costs("kube-proxy restarts on every node, one after the other; open connections stay")
        .costs("all that changed between the two versions changes too");
    let name = NamespacedName::new("kube-system", "kube-proxy").ok()?;
    let daemon = ObjectRef::namespaced(WorkloadKind::DaemonSet.into(), &name);
    let own = case
        .cluster()
        .workloads
        .get(&(WorkloadKind::DaemonSet, name))
        .and_then(|set| set.template.containers.iter().find(|own| &*own.name == "kube-proxy"))
        .map(|container| container.image.to_string());
    if let Some(own) = own.filter(|_| case.manifests.has(&daemon)) {
        let repository = image::repository(&own);
        let way = way![
            "spec",
            "template",
            "spec",
            "containers",
            At::Where("name".into(), "kube-proxy".into()),
            "image"
        ];
        made = made.edit(daemon, way, Change::Set(Tree::text(format!("{repository}:{new}"))));
    } else {
        made = made.types(
            Command::new("kubectl -n kube-system set image ds/kube-proxy")
                .words("kube-proxy=REPOSITORY/kube-proxy:")
                .joined(new),
        );
    }
    if case.manifests.text_at(&facts(), &["kubeProxy", "version"].map(At::from)).is_some() {
        let to = Change::Set(Tree::text(new.to_string()));
        made = made.follow(facts(), way!["kubeProxy", "version"], to);
    }
    Some(made)
}

/// Proposes to lead the call through the load balancer again.
pub(super) fn undo_bypass(case: &Case<'_>) -> Option<Proposal> {
    let vip = case.aim.vip?.ip();
    let services = case.cluster().services.values();
    let request = cloud::builds(case.cluster())?.request;
    let asks = |service: &&Service| {
        service.annotations.is(request, "true")
            && service.load_balancer.iter().any(|entry| entry.ip == Some(vip))
    };
    let asking: Vec<&Service> = services.filter(asks).collect();
    if asking.is_empty() || case.cluster().proxy.mode.value != ProxyMode::Ipvs {
        let service = case.service().filter(|_| case.has(Mechanism::TlsBypassed))?;
        let at = service.load_balancer.iter().position(|entry| entry.ip == Some(vip))?;
        let way = way!["status", "loadBalancer", "ingress", at, "ipMode"];
        return Some(
            Proposal::new("ip-mode-proxy", 65, format!("ipMode Proxy for svc/{}: calls go to the load balancer", service.name))
                .edit(service.object(), way, Change::Set(Tree::text("Proxy")))
                .costs("the load balancer may send the call back to the client's own node: some calls hang"),
        );
    }
    let names: Vec<String> = asking.iter().map(|service| format!("svc/{}", service.name)).collect();
    let mut made = Proposal::new(
        "undo-prevent-loopback",
        65,
        format!("take prevent-loopback from {}", names.join(", ")),
    )
    .costs(
        "calls go to the load balancer again, which may send them back to the client's own node",
    );
    for service in asking {
        made = made.edit(service.object(), annotation(request), Change::Set(Tree::text("false")));
    }
    Some(made)
}
