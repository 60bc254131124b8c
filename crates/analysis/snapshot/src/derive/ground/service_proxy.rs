//! Derives the program that serves Services: kube-proxy, or a program that runs in its place.
//!
//! Also finds programs that take over calls before either sees them: the sidecars of a mesh.

use uturn_model::pod::PodSpec;
use uturn_model::proxy::Translates;
use uturn_model::{Basis, Known, ServiceProxy, Text, Version, WorkloadKind};

use super::{daemon_sets, kube_proxy};
use crate::decode::objects::Objects;
use crate::derive::Assumptions;

/// Derives the program that serves Services: from Facts, or else from configurations and running
/// programs.
pub(super) fn derive(objects: &Objects) -> Known<ServiceProxy> {
    if let Some((proxy, origin)) = &objects.facts.service_proxy {
        return Known::stated(*proxy, origin.clone());
    }
    let has_kube_proxy = kube_proxy::image(objects).is_some();
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
pub(super) fn image(objects: &Objects, proxy: ServiceProxy) -> Option<&str> {
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
pub(super) fn keeps_source(objects: &Objects, proxy: ServiceProxy) -> bool {
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
pub(super) fn beside(objects: &Objects) -> Option<ServiceProxy> {
    const AGENT: &str = "antrea-agent";
    agent(objects, &[AGENT])?;
    let mut texts = objects.configurations.values().flatten();
    let text = texts.find(|(key, _)| &**key == "antrea-agent.conf").map_or("", |(_, text)| text);
    let is_off = setting(text, Some("antreaProxy"), "enable") == Some("false")
        || setting(text, Some("featureGates"), "AntreaProxy") == Some("false")
        || setting(text, Some("antreaProxy"), "proxyLoadBalancerIPs") == Some("false");
    let (_, spec) = specs(objects).find(|(name, _)| is_named(name, AGENT))?;
    let image = spec.containers.iter().find(|container| &*container.name == AGENT);
    let version = image.and_then(|container| kube_proxy::tag(&container.image));
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
pub(in crate::derive) fn trace(proxy: &Known<ServiceProxy>) -> String {
    match &proxy.basis {
        Basis::Derived(from) => from.to_string(),
        basis => basis.to_string(),
    }
}

/// Lists the program that serves Services as an assumption.
pub(super) fn suppose(proxy: &Known<ServiceProxy>, assumptions: &mut Assumptions) {
    let how = match proxy.value.translates() {
        Translates::Nothing => "and calls of Services are not judged",
        Translates::ClusterIps => "which turns cluster IPs into endpoints on the client's own node",
        Translates::AtConnect => "which turns addresses into endpoints when a client connects",
    };
    let taken = format!("{} in place of kube-proxy, {how}", proxy.value);
    let settle = "state spec.kubeProxy.replacedBy in Facts";
    assumptions.assume("what serves Services", taken, trace(proxy), settle);
}
