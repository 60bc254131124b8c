//! Cures of loopback at a Service's load balancer: by annotation, by version, by policy.

use std::net::IpAddr;

use uturn_lb::cloud::{KubeProxyBuilds, Maker, Setting, SettingOf};
use uturn_model::lb::{StatedProbeSource, TargetKind};
use uturn_model::service::{IpMode, Policy, ServiceKind};
use uturn_model::{
    Family, Mechanism, NamespacedName, ObjectKind, ObjectRef, ProxyMode, Service, Variant,
    WorkloadKind,
};
use uturn_snapshot::edit::{At, Change, Tree};

use super::case::basis_of;
use super::{Case, Proposal, way};
use crate::cloud;

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
    }
    if case.has(Mechanism::VipUnknown) && !is_loop {
        all.extend(ip_mode(case));
    }
    if case.has(Mechanism::TlsBypassed) || case.has(Mechanism::WrongPort) {
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

/// Services at an address that do not ask for it yet.
fn unasked<'c>(case: &Case<'c>, vip: IpAddr, request: &str) -> Vec<&'c Service> {
    let services = case.cluster().services.values();
    let has = |service: &&Service| {
        service.kind == ServiceKind::LoadBalancer
            && service.load_balancer.iter().any(|lb| lb.ip == Some(vip))
            && !service.annotations.is(request, "true")
    };
    services.filter(has).collect()
}

/// The conditions that no version of kube-proxy changes, and the edits.
fn bound(case: &Case<'_>, builds: &KubeProxyBuilds, mut made: Proposal) -> Proposal {
    let Some(vip) = case.aim.vip.map(|vip| vip.ip()) else { return made };
    let cluster = case.cluster();
    let mode = &cluster.proxy.mode;
    let found = format!("mode {} ({})", mode.value, basis_of(mode));
    let what = "kube-proxy runs in IPVS mode";
    made = match mode.value == ProxyMode::Ipvs || !mode.is_supposed() {
        true => made.when(what, mode.value == ProxyMode::Ipvs, found),
        false => made.ask(what, found),
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
    let ends_tls = case.engine.balancers().iter().filter(|balancer| balancer.vip == vip);
    let mut ends_tls =
        ends_tls.flat_map(|balancer| &balancer.listeners).filter(|own| own.protocol.ends_tls());
    let tls = ends_tls.next();
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
        .costs("traffic of the cluster's own goes past the load balancer: its weights, limits and logs do not see it")
        .costs(format!("the controller moves the health checks to {}: a node firewall has to let it in", cloud::probe_range(case.cluster())));
    for service in unasked(case, vip, builds.request) {
        made = made.edit(
            service.object(),
            annotation(builds.request),
            Change::Set(Tree::text("true")),
        );
    }
    probes_follow(case, vip, made)
}

/// The controller moves the source of health checks along.
fn probes_follow(case: &Case<'_>, vip: IpAddr, made: Proposal) -> Proposal {
    let fact = case.cluster().load_balancers.iter().find(|fact| fact.vip == vip);
    if fact.is_none_or(|fact| fact.probe_source != Some(StatedProbeSource::Vip)) {
        return made;
    }
    let reserved = Change::Set(Tree::text("reserved"));
    made.follow(facts(), probe_source_path(vip), reserved)
}

pub(super) fn probe_source_path(vip: IpAddr) -> Vec<At> {
    way!["loadBalancers", At::Where("vip".into(), vip.to_string()), "probeSource"]
}

/// The Facts document.
pub(super) fn facts() -> ObjectRef {
    ObjectRef::global(ObjectKind::Facts, "facts")
}

fn prevent_loopback(case: &Case<'_>) -> Option<Proposal> {
    let builds = cloud::builds(case.cluster())?;
    // The load balancer of a product has no such annotation.
    let maker = uturn_lb::cloud::maker_of(case.service()?, &case.cluster().provider);
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
        match honours {
            true => format!("{} ({})", proxy.version.value, basis_of(&proxy.version)),
            false => format!(
                "{} does not ({}); {} is the first of its line",
                proxy.version.value,
                basis_of(&proxy.version),
                (builds.first_honouring)(proxy.version.value)
                    .map_or("none".to_owned(), |version| version.to_string())
            ),
        },
    );
    Some(made)
}

/// A newer image of kube-proxy, where the one that runs does not know the annotation.
fn newer_kube_proxy(case: &Case<'_>) -> Option<Proposal> {
    let proxy = &case.cluster().proxy;
    let old = proxy.version.value;
    let builds = uturn_lb::cloud::builds_of(proxy.variant.value)?;
    if proxy.mode.value != ProxyMode::Ipvs || proxy.address_binding.honours_request() {
        return None;
    }
    let new = (builds.first_honouring)(old)?;
    let title = format!("kube-proxy {new} instead of {old}, and prevent-loopback");
    let mut made = bound(case, builds, Proposal::new("kube-proxy-image", 60, title))
        .costs("kube-proxy starts anew on every node, one after the other; connections that are open stay")
        .costs("all that changed between the two versions changes too");
    let name = NamespacedName::new("kube-system", "kube-proxy").ok()?;
    let daemon = ObjectRef::namespaced(ObjectKind::DaemonSet, &name);
    let image = case
        .cluster()
        .workloads
        .get(&(WorkloadKind::DaemonSet, name))
        .and_then(|set| set.template.containers.iter().find(|own| &*own.name == "kube-proxy"))
        .map(|container| container.image.to_string());
    if let Some(image) = image.filter(|_| case.manifests.has(&daemon)) {
        let (repository, _) = image.rsplit_once(':').unwrap_or((&image, ""));
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
        made = made.types(format!(
            "kubectl -n kube-system set image ds/kube-proxy kube-proxy=REPOSITORY/kube-proxy:{new}"
        ));
    }
    if case.manifests.text_at(&facts(), &["kubeProxy", "version"].map(At::from)).is_some() {
        let to = Change::Set(Tree::text(new.to_string()));
        made = made.follow(facts(), way!["kubeProxy", "version"], to);
    }
    Some(made)
}

/// Let nodes serve the address, where `ipMode: Proxy` keeps them from it.
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
            .types(format!(
                "kubectl -n {} patch svc {} --subresource=status --type=json -p '[{{\"op\":\"replace\",\"path\":\"/status/loadBalancer/ingress/{at}/ipMode\",\"value\":\"VIP\"}}]'",
                service.name.namespace, service.name.name
            ))
            .costs("whatever set ipMode may set it again: change it there for good")
            .costs("what the load balancer does on the way (TLS, PROXY protocol, headers, source ranges) falls away for pods"),
    )
}

/// Only nodes with a server, and no client on them.
fn policy_local(case: &Case<'_>) -> Option<Proposal> {
    let service = case.service()?;
    let (_, listener) = case.listener()?;
    let targets = listener.rules.iter().flat_map(|rule| &rule.targets);
    if !targets.clone().any(|target| matches!(target.kind, TargetKind::NodePort(_))) {
        return None;
    }
    let model = uturn_lb::cloud::model(case.cluster())?;
    let only_with_pods = model.annotation(Setting::NodesWithPods, SettingOf::Service)?;
    let is_whole =
        service.external_policy == Policy::Local && service.annotations.is(only_with_pods, "true");
    if is_whole {
        return None;
    }
    let home = case.client_node();
    let slices = case.cluster().slices(&service.name);
    let endpoints =
        slices.iter().flat_map(|slice| &slice.endpoints).filter(|endpoint| endpoint.ready);
    let beside = endpoints
        .clone()
        .find(|endpoint| endpoint.node.is_some() && endpoint.node.as_ref() == home);
    let title = format!(
        "policy Local for svc/{}, only nodes with its pods, clients on others",
        service.name
    );
    let mut made = Proposal::new("policy-local", 70, title)
        .when(
            "the client's node has no pod of the Service",
            beside.is_none(),
            match (beside, home) {
                (Some(endpoint), Some(node)) => format!(
                    "{} on {node} is one: with policy Local that node stays a target, and the call still comes back to it; move one of them first",
                    endpoint
                        .pod
                        .as_ref()
                        .map_or_else(|| endpoint.address.to_string(), ToString::to_string)
                ),
                (_, Some(node)) => format!("none on {node}"),
                _ => "no client on a node".to_owned(),
            },
        )
        .edit(service.object(), way!["spec", "externalTrafficPolicy"], Change::Set(Tree::text("Local")))
        .edit(service.object(), annotation(only_with_pods), Change::Set(Tree::text("true")))
        .costs("load is shared by node, not by pod: nodes with fewer pods give each more")
        .costs("clients and servers have to stay on different nodes from now on: anti-affinity, or it loops again")
        .costs("a call to the NodePort of a node without a pod gets no answer");
    made = made.costs("the Service's own pods, and processes on their nodes, cannot call it through its load balancer any more");
    made.gives_up = Some(service.name.clone());
    if let Some((workload, term)) = apart(case, service) {
        let way = way![
            "spec",
            "template",
            "spec",
            "affinity",
            "podAntiAffinity",
            "requiredDuringSchedulingIgnoredDuringExecution"
        ];
        made = made.edit(workload, way, Change::Append(term));
    }
    Some(made)
}

/// Anti-affinity of the servers' workload to the client's labels.
fn apart(case: &Case<'_>, service: &Service) -> Option<(ObjectRef, Tree)> {
    let cluster = case.cluster();
    let slices = cluster.slices(&service.name);
    let pod = slices
        .iter()
        .flat_map(|slice| &slice.endpoints)
        .find_map(|endpoint| endpoint.pod.as_ref())?;
    let owner = cluster.pods.get(pod)?.owner.clone()?;
    if !case.manifests.has(&owner) {
        return None;
    }
    let uturn_model::Client::Pod(client) = &case.walked()?.from else { return None };
    let client = cluster.pods.get(client)?;
    let labels = match &client.owner {
        Some(owner) => {
            let of = cluster.workloads.values().find(|workload| workload.object() == *owner)?;
            of.template.labels.clone()
        }
        None => client.spec.labels.clone(),
    };
    let own = &cluster.pods.get(pod)?.spec.labels;
    let labels: Vec<(String, Tree)> = labels
        .iter()
        .filter(|(key, value)| own.get(key) != Some(value))
        .map(|(key, value)| (key.to_owned(), Tree::text(value)))
        .collect();
    if labels.is_empty() {
        return None;
    }
    let term = Tree::map([
        ("labelSelector", Tree::map([("matchLabels", Tree::Map(labels))])),
        ("topologyKey", Tree::text("kubernetes.io/hostname")),
    ]);
    Some((owner, term))
}

fn policy_cluster(case: &Case<'_>) -> Option<Proposal> {
    let service = case.service()?;
    if service.external_policy != Policy::Local || case.aim.vip.is_none() {
        return None;
    }
    let nodes = case.cluster().nodes.values();
    let nodes =
        nodes.filter(|node| node.address(Family::V4).or(node.address(Family::V6)).is_some());
    let many = nodes.count();
    Some(
        Proposal::new("policy-cluster", 80, format!("policy Cluster for svc/{}", service.name))
            .when("there is a node beside the client's", many > 1, format!("{many} in all"))
            .edit(
                service.object(),
                way!["spec", "externalTrafficPolicy"],
                Change::Set(Tree::text("Cluster")),
            )
            .costs("servers see a node's address instead of the client's")
            .costs("a call may take a second hop, to a pod on another node"),
    )
}

/// Lead the call through the load balancer again.
fn undo_bypass(case: &Case<'_>) -> Option<Proposal> {
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
