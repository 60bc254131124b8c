//! Cures in kube-proxy's configuration: the name that it takes for its node's, whether nodes answer
//! ARP requests for addresses that it binds, and its release.

mod files;
mod release;

use uturn_document::edit::{At, Change, Tree};
use uturn_model::service::Policy;
use uturn_model::shell::{Advice, Command};
use uturn_model::{Mechanism, Node, Pod, ProxyMode, Service, Workload, WorkloadKind};

use super::facts::facts;
use super::node::{some, stated};
use super::template::Template;
use super::{Case, Proposal, way};
use files::{Config, Container};

pub(super) fn propose(case: &Case<'_>) -> Vec<Proposal> {
    let Some(service) = case.service() else { return Vec::new() };
    let (inside, outside) = (service.internal_policy, service.external_policy);
    if inside != Policy::Local && outside != Policy::Local {
        return Vec::new();
    }
    let mut all = Vec::new();
    if case.has(Mechanism::NoEndpoint) || case.has(Mechanism::VipUnknown) {
        all.extend(own_name(case));
    }
    all.extend(strict_arp(case, service));
    all.extend(release::propose(case));
    all
}

/// Proposes that each kube-proxy takes its node's own name for its node's.
pub(super) fn own_name(case: &Case<'_>) -> Vec<Proposal> {
    let is_wrong = |node: &&Node| node.proxy_name.is_some() || node.host_name.is_some();
    let wrong: Vec<&Node> = case.cluster().nodes.values().filter(is_wrong).collect();
    let Some(first) = wrong.first() else { return Vec::new() };
    let why = match (&first.proxy_name, &first.host_name) {
        (Some(name), _) => format!("kube-proxy on {} takes itself for {name}", first.name),
        (None, Some(name)) => format!("kube-proxy on {} may take itself for {name}", first.name),
        (None, None) => return Vec::new(),
    };
    let named = |made: Proposal| {
        made.when("kube-proxy has another name than its node", true, why.clone())
            .costs("kube-proxy restarts on every node, one after the other; open connections stay")
            .trial()
    };
    let mut all = Vec::new();
    if let Some(daemon) = daemon_set(case) {
        all.extend(by_argument(case, daemon).map(named));
    }
    all.extend(by_configuration(case).into_iter().map(named));
    all.extend(of_pods(case, &wrong).map(named));
    all.extend(as_stated(case, &wrong));
    all
}

/// Returns kube-proxy's DaemonSet.
fn daemon_set<'a>(case: &Case<'a>) -> Option<&'a Workload> {
    let is_it = |workload: &&Workload| {
        workload.kind == WorkloadKind::DaemonSet
            && workload.name.namespace.as_str() == files::NAMESPACE
            && (workload.name.name.as_str() == files::NAME
                || workload.template.labels.is("k8s-app", files::NAME))
    };
    case.cluster().workloads.values().find(is_it)
}

/// Proposes the argument with which the DaemonSet's kube-proxy gets the name of its node.
fn by_argument(case: &Case<'_>, daemon: &Workload) -> Option<Proposal> {
    let template = Template::of_object(daemon.object())?;
    if !case.manifests.has(&template.object) {
        return None;
    }
    let container = Container::of(case, &template.object, &["spec", "template"])?;
    let title = format!("--hostname-override=$(NODE_NAME) in {}", template.object);
    let mut made = Proposal::new("kube-proxy-name", 14, title);
    let (list, at) = container.argument(files::NAME_ARGUMENT);
    let argument = Tree::text(format!("{}=$(NODE_NAME)", files::NAME_ARGUMENT));
    let place = container.place.clone();
    let within = |more: Vec<At>| -> Vec<At> { place.iter().cloned().chain(more).collect() };
    made = match at {
        Some(at) => template.edit(case, made, &within(way![list, at]), &Change::Set(argument))?,
        None => template.edit(case, made, &within(way![list]), &Change::Append(argument))?,
    };
    if container.has_node_name {
        return Some(made);
    }
    let field = Tree::map([("fieldRef", Tree::map([("fieldPath", Tree::text("spec.nodeName"))]))]);
    let variable = Tree::map([("name", Tree::text("NODE_NAME")), ("valueFrom", field)]);
    template.edit(case, made, &within(way!["env"]), &Change::Append(variable))
}

/// Proposes a configuration that names no node, or one that is completed on each node.
fn by_configuration(case: &Case<'_>) -> Vec<Proposal> {
    let Some(config) = Config::of(case) else { return Vec::new() };
    let written = config.value("hostnameOverride");
    let mut all = Vec::new();
    if let Some((at, value)) = &written
        && !value.is_empty()
    {
        let title = format!("no hostnameOverride in {}", config.object);
        let line = "hostnameOverride: \"\"".to_owned();
        let made = Proposal::new("kube-proxy-name", 15, title)
            .ask("each host has the name of its node", "hostname on each node tells its own")
            .edit(config.object.clone(), config.place(), Change::Replace(*at, line))
            .types(files::restart());
        all.push(made);
    }
    let line = "hostnameOverride: ${NODE_NAME}".to_owned();
    let change = match written {
        Some((at, _)) => Change::Replace(at, line),
        None => Change::Line(config.text.lines().count(), line),
    };
    let title = format!(
        "hostnameOverride of {}, completed on each node with the node's name",
        config.object
    );
    all.push(
        Proposal::new("kube-proxy-name", 16, title)
            .ask(
                "an init container of kube-proxy's DaemonSet writes the configuration with the name \
                 of its node (spec.nodeName) in place of ${NODE_NAME}",
                "kube-proxy takes the text as it is",
            )
            .edit(config.object.clone(), config.place(), change),
    );
    all
}

/// Proposes the right argument for pods of kube-proxy that no DaemonSet makes.
fn of_pods(case: &Case<'_>, wrong: &[&Node]) -> Option<Proposal> {
    let mut made = Proposal::new("kube-proxy-name", 14, "");
    let mut names: Vec<&str> = Vec::new();
    for node in wrong {
        let is_proxy = |pod: &&Pod| {
            let is_daemons = pod
                .owner
                .as_ref()
                .is_some_and(|owner| owner.kind == WorkloadKind::DaemonSet.into());
            pod.node.as_ref() == Some(&node.name)
                && !is_daemons
                && pod.spec.containers.iter().any(|own| &*own.name == files::NAME)
        };
        let pod = case.cluster().pods.values().find(is_proxy);
        let Some(pod) = pod.filter(|pod| case.manifests.has(&pod.object())) else { continue };
        let container = Container::of(case, &pod.object(), &[])?;
        let (list, at) = container.argument(files::NAME_ARGUMENT);
        let mut path = container.place.clone();
        path.push(list.into());
        let change = match at {
            Some(at) => {
                path.push(at.into());
                let old = case.manifests.text_at(&pod.object(), &path)?;
                Change::Set(Tree::text(files::with_name(&old, &node.name)))
            }
            None => Change::Append(Tree::text(format!("{}={}", files::NAME_ARGUMENT, node.name))),
        };
        made = made.edit(pod.object(), path, change);
        names.push(node.name.as_str());
    }
    let title = format!("--hostname-override with the name of the node on {}", some(&names));
    let advice = "a static pod is edited in its node's own files, such as \
                  /etc/kubernetes/manifests, or in what makes the nodes";
    let made = Proposal { title, ..made };
    (!names.is_empty()).then(|| made.types(Advice::sentence(advice)))
}

/// Proposes the right name where Facts state which one kube-proxy has.
fn as_stated(case: &Case<'_>, wrong: &[&Node]) -> Option<Proposal> {
    let is_stated = |node: &&&Node| stated(case, node, "kubeProxyName").is_some();
    let wrong: Vec<&Node> = wrong.iter().filter(is_stated).copied().take(MAX_NODES).collect();
    let names: Vec<&str> = wrong.iter().map(|node| node.name.as_str()).collect();
    let title = format!("kube-proxy takes the node's own name on {}", some(&names));
    let made = Proposal::new("kube-proxy-name", 14, title)
        .costs("kube-proxy restarts on that node; open connections stay")
        .trial();
    let settled = wrong.iter().fold(made, |made, node| {
        let name = node.name.as_str();
        let command = Command::new("kube-proxy --hostname-override=").joined(name);
        made.edit(facts(), way!["nodes", name, "kubeProxyName"], Change::Set(Tree::text(name)))
            .types(Advice::on(name, &command))
    });
    (!wrong.is_empty()).then_some(settled)
}

/// The maximum number of nodes whose names Facts are to state.
const MAX_NODES: usize = 20;

/// Proposes that only the announcer answers ARP requests for an address that every node binds.
fn strict_arp(case: &Case<'_>, service: &Service) -> Option<Proposal> {
    let proxy = &case.cluster().proxy;
    let vip = case.aim.vip?.ip();
    let is_answered = proxy.arp_ranges.iter().any(|range| range.contains(&vip));
    if proxy.mode.value != ProxyMode::Ipvs
        || proxy.strict_arp
        || service.external_policy != Policy::Local
        || !is_answered
        || !service.has_address(vip)
    {
        return None;
    }
    let config = Config::of(case)?;
    let title =
        format!("strictARP: true in {}: only the announcer answers for {vip}", config.object);
    Some(
        Proposal::new("strict-arp", 13, title)
            .edit(config.object.clone(), config.place(), config.strict_arp()?)
            .types(files::restart())
            .costs("kube-proxy restarts on every node, one after the other; open connections stay")
            .trial(),
    )
}
