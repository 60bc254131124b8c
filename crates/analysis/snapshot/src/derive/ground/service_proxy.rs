//! Derives the program that serves Services: kube-proxy, or a program that runs in its place.
//!
//! Also finds programs that take over calls before either sees them: the sidecars of a mesh.

use std::net::IpAddr;

use uturn_clouds::cloud;
use uturn_model::pod::PodSpec;
use uturn_model::proxy::Translates;
use uturn_model::wording::count;
use uturn_model::{Basis, Known, Labels, ServiceProxy, Text, Version, WorkloadKind};

use super::proxy;
use crate::decode::objects::Objects;
use crate::derive::gaps::unjudged::Gaps;
use crate::derive::serve::endpoints::Slices;
use crate::derive::{Assumptions, daemon_sets};

/// Derives the program that serves Services: from Facts, or else from configurations and running
/// programs.
pub(in crate::derive) fn derive(objects: &Objects) -> Known<ServiceProxy> {
    if let Some((proxy, origin)) = &objects.facts.service_proxy {
        return Known::stated(*proxy, origin.clone());
    }
    let has_kube_proxy = proxy::image(objects).is_some();
    cilium(objects, has_kube_proxy)
        .or_else(|| calico(objects))
        .or_else(|| kube_router(objects))
        .or_else(|| ovn_kubernetes(objects, has_kube_proxy))
        .or_else(|| antrea(objects))
        .unwrap_or_else(|| Known::derived(ServiceProxy::KubeProxy, "nothing replaces it"))
}

/// The DaemonSets that run Cilium.
const CILIUM_AGENTS: [&str; 2] = ["cilium", "anetd"];

/// Returns the image of the program that replaces kube-proxy, if its DaemonSet or one of its pods
/// is known. Only Cilium's behaviour depends on its version.
pub(in crate::derive) fn image(objects: &Objects, proxy: ServiceProxy) -> Option<&str> {
    if proxy != ServiceProxy::Cilium {
        return None;
    }
    let sets = objects.workloads.0.values().filter(|set| set.kind == WorkloadKind::DaemonSet);
    let mut sets = sets.filter(|set| CILIUM_AGENTS.contains(&set.name.name.as_str()));
    let by_pod = || {
        let mut pods = objects.pods.0.values();
        Some(&pods.find(|pod| pod.spec.labels.is("k8s-app", "cilium"))?.spec)
    };
    let spec = sets.next().map(|set| &set.template).or_else(by_pod)?;
    let agent = spec.containers.iter().find(|container| &*container.name == "cilium-agent");
    Some(&agent.or(spec.containers.first())?.image)
}

fn cilium(objects: &Objects, has_kube_proxy: bool) -> Option<Known<ServiceProxy>> {
    const SWITCH: &str = "kube-proxy-replacement";
    if let Some((config, origin)) = &objects.cilium_config {
        let is_it = match config.get(SWITCH) {
            Some("true" | "strict") => true,
            // Before v1.14: as much of the replacement as the kernel allowed, beside kube-proxy or
            // without it.
            Some("partial" | "probe") => !has_kube_proxy,
            _ => false,
        };
        return is_it.then(|| Known::stated(ServiceProxy::Cilium, origin.clone()));
    }
    if has_kube_proxy {
        return None;
    }
    let agent = agent(objects, &CILIUM_AGENTS)?;
    Some(Known::derived(ServiceProxy::Cilium, format!("{agent}, and there is no kube-proxy")))
}

/// Returns whether the program that serves Services is configured to keep the source address of
/// calls that it forwards to other nodes.
pub(in crate::derive) fn keeps_source(objects: &Objects, proxy: ServiceProxy) -> bool {
    let config = objects.cilium_config.as_ref().filter(|_| proxy == ServiceProxy::Cilium);
    let mode =
        config.and_then(|(config, _)| config.get("bpf-lb-mode").or(config.get("node-port-mode")));
    mode.is_some_and(|mode| !matches!(mode, "" | "snat"))
}

fn calico(objects: &Objects) -> Option<Known<ServiceProxy>> {
    let origin = objects.calico_ebpf.as_ref()?;
    Some(Known::stated(ServiceProxy::CalicoEbpf, origin.clone()))
}

fn kube_router(objects: &Objects) -> Option<Known<ServiceProxy>> {
    let (name, spec) = specs(objects).find(|(name, _)| is_named(name, "kube-router"))?;
    let mut arguments = spec.containers.iter().flat_map(|container| &container.arguments);
    let argument = arguments.find_map(|argument| argument.strip_prefix("--run-service-proxy"))?;
    matches!(argument, "" | "=true").then(|| {
        let because = format!("--run-service-proxy of {name}");
        Known::derived(ServiceProxy::KubeRouter, because)
    })
}

fn ovn_kubernetes(objects: &Objects, has_kube_proxy: bool) -> Option<Known<ServiceProxy>> {
    if has_kube_proxy {
        return None;
    }
    let agent = agent(objects, &["ovnkube-node"])?;
    Some(Known::derived(ServiceProxy::OvnKubernetes, agent))
}

/// Recognises AntreaProxy if it is configured to serve node ports too; otherwise kube-proxy serves
/// them.
fn antrea(objects: &Objects) -> Option<Known<ServiceProxy>> {
    let is_config = |(key, _): &&(Text, Text)| &**key == "antrea-agent.conf";
    let serves_all = |text: &str| {
        text.lines().map(|line| line.split('#').next().unwrap_or_default()).any(|line| {
            let words = line.split_once(':');
            words.is_some_and(|(key, value)| key.trim() == "proxyAll" && value.trim() == "true")
        })
    };
    let (name, _) = objects.configurations.iter().find(|(_, texts)| {
        texts.iter().find(is_config).is_some_and(|(_, text)| serves_all(text))
    })?;
    let because = format!("proxyAll in ConfigMap {name}");
    Some(Known::derived(ServiceProxy::Antrea, because))
}

/// Returns AntreaProxy if it runs beside kube-proxy, takes over calls of pods, and may serve calls
/// to a load balancer's address under policy Local from the pod's own node alone. It does so before
/// v1.12, and if Antrea provides no pod network of its own, so that it does not tell the node's
/// pods from others.
pub(in crate::derive) fn beside(objects: &Objects) -> Option<ServiceProxy> {
    const AGENT: &str = "antrea-agent";
    agent(objects, &[AGENT])?;
    let mut texts = objects.configurations.values().flatten();
    let text = texts.find(|(key, _)| &**key == "antrea-agent.conf").map_or("", |(_, text)| text);
    let is_off = setting(text, Some("antreaProxy"), "enable") == Some("false")
        || setting(text, Some("featureGates"), "AntreaProxy") == Some("false")
        || setting(text, Some("antreaProxy"), "proxyLoadBalancerIPs") == Some("false");
    let (_, spec) = specs(objects).find(|(name, _)| is_named(name, AGENT))?;
    let image = spec.containers.iter().find(|container| &*container.name == AGENT);
    let version = image.and_then(|container| proxy::tag(&container.image));
    let short_circuits = version.is_some_and(|version| version >= Version::new(1, 12, 0))
        && setting(text, None, "trafficEncapMode") != Some("networkPolicyOnly");
    (!is_off && !short_circuits).then_some(ServiceProxy::Antrea)
}

/// Returns the value of a setting at the top level of a configuration, or in one of its sections.
fn setting<'t>(text: &'t str, section: Option<&str>, name: &str) -> Option<&'t str> {
    let mut current = None;
    text.lines().find_map(|line| {
        let line = line.split('#').next().unwrap_or_default();
        let (key, value) = line.split_once(':')?;
        let is_within = key.starts_with([' ', '\t']);
        if !is_within {
            current = Some(key.trim());
        }
        let is_it = match section {
            None => !is_within,
            Some(section) => is_within && current == Some(section),
        };
        (is_it && key.trim() == name).then(|| value.trim().trim_matches(['"', '\'']))
    })
}

/// Returns the DaemonSet of one of these names, which its own object or its pods state.
fn agent(objects: &Objects, names: &[&str]) -> Option<String> {
    let mut sets = daemon_sets(objects).map(|(set, _)| set);
    sets.find(|set| names.contains(&&*set.name)).map(|set| set.to_string())
}

/// Iterates over the pod specs of DaemonSets and pods, with the names of their objects.
fn specs(objects: &Objects) -> impl Iterator<Item = (String, &PodSpec)> {
    let sets = objects.workloads.0.values().filter(|set| set.kind == WorkloadKind::DaemonSet);
    let sets = sets.map(|set| (set.object().to_string(), &*set.template));
    sets.chain(objects.pods.0.values().map(|pod| (format!("Pod {}", pod.name), &*pod.spec)))
}

fn is_named(object: &str, name: &str) -> bool {
    object.rsplit('/').next().is_some_and(|own| own.starts_with(name))
}

/// Returns the trace by which the proxy was recognised.
fn trace(proxy: &Known<ServiceProxy>) -> String {
    match &proxy.basis {
        Basis::Derived(from) => from.to_string(),
        basis => basis.to_string(),
    }
}

/// Lists the program that serves Services as an assumption.
pub(in crate::derive) fn suppose(proxy: &Known<ServiceProxy>, assumptions: &mut Assumptions) {
    let how = match proxy.value.translates() {
        Translates::Nothing => "and calls of Services are not judged",
        Translates::ClusterIps => "which turns cluster IPs into endpoints on the client's own node",
        Translates::AtConnect => "which turns addresses into endpoints when a client connects",
    };
    let taken = format!("{} in place of kube-proxy, {how}", proxy.value);
    let settle = "state spec.kubeProxy.replacedBy in Facts";
    assumptions.assume("what serves Services", taken, trace(proxy), settle);
}

/// Lists the Services whose calls are not judged: those of programs that are not modelled.
pub(in crate::derive) fn find_unjudged(
    objects: &Objects,
    proxy: &Known<ServiceProxy>,
    gaps: &mut Gaps,
) {
    if proxy.value == ServiceProxy::KubeProxy || proxy.value.translates() != Translates::Nothing {
        return;
    }
    let unknown = uturn_model::Unknown::ServiceProxy(proxy.value.to_string().into());
    let settle = "state spec.kubeProxy.replacedBy: none in Facts if kube-proxy serves them";
    for service in objects.services.0.values().filter(|service| !service.cluster_ips.is_empty()) {
        gaps.add(service.object(), unknown.clone(), trace(proxy).into(), settle.into());
    }
}

/// The label with which a Service selects another proxy than kube-proxy, by name.
const PROXY_NAME: &str = "service.kubernetes.io/service-proxy-name";

/// Lists the Services that have a label for another proxy.
pub(in crate::derive) fn find_left_to_others(objects: &Objects, gaps: &mut Gaps) {
    for service in objects.services.0.values().filter(|service| !service.cluster_ips.is_empty()) {
        let Some(name) = service.labels.get(PROXY_NAME) else { continue };
        let proxy = if name.is_empty() { "another proxy" } else { name };
        let because = format!("its label {PROXY_NAME} leaves it to that");
        let unknown = uturn_model::Unknown::ServiceProxy(proxy.into());
        gaps.add(service.object(), unknown, because.into(), Text::default());
    }
}

/// Lists the Services whose only endpoint is a placeholder address: a program on nodes serves them
/// itself.
pub(in crate::derive) fn find_placeholders(objects: &Objects, slices: &Slices, gaps: &mut Gaps) {
    for service in objects.services.0.values() {
        let own = slices.get(&service.name).into_iter().flatten();
        let addresses: Vec<IpAddr> =
            own.flat_map(|slice| &slice.endpoints).map(|endpoint| endpoint.address).collect();
        let Some(address) = addresses.first() else { continue };
        let Some(program) = cloud::by_placeholder_endpoint(*address) else { continue };
        if addresses.iter().all(|other| other == address) {
            let unknown = uturn_model::Unknown::ServiceProxy(program.name().into());
            let because = format!("its only endpoint is {address}, which stands for its own proxy");
            gaps.add(service.object(), unknown, because.into(), Text::default());
        }
    }
}

/// The containers with which meshes take over the calls of a pod, and the names of the meshes.
const SIDECARS: &[(&str, &str)] = &[("istio-proxy", "Istio"), ("linkerd-proxy", "Linkerd")];

/// Lists the assumption that calls of pods of a mesh go as without it. Their sidecar picks
/// endpoints itself.
pub(in crate::derive) fn suppose_no_mesh(objects: &Objects, assumptions: &mut Assumptions) {
    for (container, mesh) in SIDECARS {
        let pods = objects.pods.0.values().filter(|pod| pod.is_alive());
        let has_it = |spec: &PodSpec| spec.containers.iter().any(|own| &*own.name == *container);
        let many = pods.filter(|pod| has_it(&pod.spec)).count();
        if many > 0 {
            let pods = format!("calls of {}", count(many, "pod"));
            let because = format!("{mesh}'s sidecar takes them over and picks endpoints itself");
            let settle = format!("look at what {container} is told");
            assumptions.assume(pods, format!("as without {mesh}"), because, settle);
        }
    }
    // In ambient mode the node's proxy does so. A label of the pod states it, or an annotation,
    // since the label may be on the namespace only.
    let is_ambient = |labels: &Labels| labels.is("istio.io/dataplane-mode", "ambient");
    let pods = objects.pods.0.values().filter(|pod| pod.is_alive());
    let by_annotation = |labels: &Labels| labels.is("ambient.istio.io/redirection", "enabled");
    let many = pods
        .filter(|pod| is_ambient(&pod.spec.labels) || by_annotation(&pod.spec.annotations))
        .count();
    if many > 0 {
        assumptions.assume(
            format!("calls of {} in ambient mode", count(many, "pod")),
            "as without Istio",
            "Istio's ztunnel takes them over and picks endpoints itself",
            "look at what ztunnel is told",
        );
    }
}
