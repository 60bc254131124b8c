//! Derives the settings of kube-proxy: from Facts, then its ConfigMap, then its command line, then
//! defaults.

use ipnet::IpNet;
use uturn_clouds::cloud;
use uturn_model::cluster::Provider;
use uturn_model::proxy::{LocalDetector, NodePortAddresses};
use uturn_model::{Known, Origin, ProxyMode, ProxySettings, ServiceProxy, Text, Variant, Version};

use super::kube_proxy::{self, container, tag};
use super::service_proxy;
use crate::decode::objects::Objects;
use crate::decode::proxy_config::{self, ProxyConfig};
use crate::derive::Assumptions;

/// The version that is assumed if nothing states a version.
const USUAL: Version = Version::new(1, 34, 0);

/// Derives all settings of the Service proxy.
pub(super) fn derive(
    objects: &Objects,
    provider: &Known<Provider>,
    assumptions: &mut Assumptions,
) -> ProxySettings {
    let served_by = service_proxy::derive(objects);
    if served_by.value != ServiceProxy::KubeProxy {
        let because = format!("{} serves Services, and kube-proxy does not run", served_by.value);
        let mode = Known::derived(ProxyMode::Iptables, because.as_str());
        let mut proxy = ProxySettings::new(mode, Known::derived(USUAL, because.as_str()));
        proxy.variant = Known::derived(Variant::Upstream, because.as_str());
        proxy.detector = Known::derived(LocalDetector::None, because.as_str());
        if needs_proxy(objects) && objects.facts.service_proxy.is_none() {
            service_proxy::suppose(&served_by, assumptions);
        }
        proxy.replacement_version = service_proxy::image(objects, served_by.value).and_then(tag);
        proxy.replacement_keeps_source = service_proxy::keeps_source(objects, served_by.value);
        proxy.served_by = served_by;
        return proxy;
    }
    let container = container(objects);
    let arguments = container
        .as_ref()
        .map(|(_, arguments, origin)| proxy_config::from_arguments(arguments, origin));
    let k3s = k3s(objects);
    let configs: Vec<&ProxyConfig> =
        objects.proxy_config.iter().chain(arguments.as_ref()).chain(k3s.as_ref()).collect();
    let needed = needs_proxy(objects);

    let mode = mode(objects, &configs, needed, assumptions);
    let version = version(objects, needed, assumptions);
    let mut proxy = ProxySettings::new(mode, version);
    proxy.served_by = served_by;
    proxy.beside = service_proxy::beside(objects);
    proxy.variant = variant(objects, provider, &proxy.version);
    cloud::set_address_binding(&mut proxy);
    proxy.detector = detector(objects, &configs);
    if proxy.mode.value == ProxyMode::Nftables {
        proxy.node_port_addresses = NodePortAddresses::Primary;
    }
    // Later assignments win, so the ConfigMap overrides the command line.
    for config in configs.into_iter().rev() {
        let ProxyConfig {
            mode: _,
            cluster_cidrs: _,
            detector: _,
            node_port_addresses,
            masquerade_all,
            masquerade_bit,
            localhost_node_ports,
            ipvs_scheduler,
            strict_arp,
            conntrack_tcp_be_liberal,
            ip_mode_gate,
            hostname_override: _,
            config_map: _,
        } = config.clone();
        set(&mut proxy.node_port_addresses, node_port_addresses);
        set(&mut proxy.masquerade_all, masquerade_all);
        set(&mut proxy.masquerade_bit, masquerade_bit);
        set(&mut proxy.localhost_node_ports, localhost_node_ports);
        set(&mut proxy.ipvs_scheduler, ipvs_scheduler);
        set(&mut proxy.strict_arp, strict_arp);
        set(&mut proxy.conntrack_tcp_be_liberal, conntrack_tcp_be_liberal);
        proxy.ip_mode_gate = ip_mode_gate.or(proxy.ip_mode_gate);
    }
    proxy
}

/// Returns whether the given configuration has nodes answer ARP requests for the addresses that IPVS
/// binds: it sets IPVS mode, or sets strictARP to false.
pub(super) fn answers_arp(objects: &Objects, proxy: &ProxySettings) -> bool {
    let container = container(objects);
    let arguments =
        container.map(|(_, arguments, origin)| proxy_config::from_arguments(arguments, origin));
    let k3s = k3s(objects);
    let mut configs = objects.proxy_config.iter().chain(arguments.as_ref()).chain(k3s.as_ref());
    let sets_it = |config: &ProxyConfig| {
        matches!(config.mode, Some((ProxyMode::Ipvs, _))) || config.strict_arp == Some(false)
    };
    let is_ipvs = proxy.mode.value == ProxyMode::Ipvs && proxy.replaced_by().is_none();
    is_ipvs && !proxy.strict_arp && configs.any(sets_it)
}

/// The annotation in which k3s and RKE2 record the arguments of a node's own agent or server, of
/// which kube-proxy is a part.
const K3S_ARGUMENTS: &str = "k3s.io/node-args";

/// The range of pods if k3s has no argument with another.
const K3S_RANGE: &str = "10.42.0.0/16";

/// Returns the arguments of k3s on its first server, or else on any node. The annotation has them
/// as a JSON list of words.
pub(super) fn k3s_arguments(objects: &Objects) -> Option<(Vec<String>, &Origin)> {
    let all = || {
        objects.nodes.0.values().filter_map(|node| {
            let words = serde_json::from_str::<Vec<String>>(node.annotations.get(K3S_ARGUMENTS)?);
            Some((words.ok()?, &node.origin))
        })
    };
    all().find(|(words, _)| words.first().is_some_and(|word| word == "server")).or(all().next())
}

/// Returns the configuration that k3s gives to its kube-proxy.
fn k3s(objects: &Objects) -> Option<ProxyConfig> {
    let (words, origin) = k3s_arguments(objects)?;
    let values = |flag: &str| -> Vec<Text> {
        let mut found = Vec::new();
        for (at, word) in words.iter().enumerate() {
            match word.strip_prefix(flag) {
                Some("") => found.extend(words.get(at + 1).map(|value| Text::from(&**value))),
                Some(rest) => found.extend(rest.strip_prefix('=').map(Text::from)),
                None => {}
            }
        }
        found
    };
    let written = values("--cluster-cidr").first().cloned();
    // A node's range outside of the usual one was set by other means than these arguments.
    let is_usual = || {
        let usual: IpNet = K3S_RANGE.parse().ok()?;
        let mut own = objects.nodes.0.values().flat_map(|node| &node.pod_cidrs);
        own.all(|net| usual.contains(net)).then(|| Text::from(K3S_RANGE))
    };
    let ranges = written.or_else(is_usual).map(|ranges| format!("--cluster-cidr={ranges}"));
    let mut arguments: Vec<Text> = ranges.into_iter().map(Text::from).collect();
    let own = values("--kube-proxy-arg").into_iter();
    arguments
        .extend(own.map(|argument| Text::from(format!("--{}", argument.trim_start_matches('-')))));
    Some(proxy_config::from_arguments(&arguments, origin))
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

fn mode(
    objects: &Objects,
    configs: &[&ProxyConfig],
    needed: bool,
    assumptions: &mut Assumptions,
) -> Known<ProxyMode> {
    if let Some((mode, origin)) = &objects.facts.proxy_mode {
        return Known::stated(*mode, origin.clone());
    }
    if let Some((mode, origin)) = configs.iter().find_map(|config| config.mode.as_ref()) {
        return Known::stated(*mode, origin.clone());
    }
    if objects.proxy_config.is_some() {
        let from = "kube-proxy's configuration, which names no mode: its default";
        return Known::derived(ProxyMode::Iptables, from);
    }
    if has_all_flags(objects) {
        let from = "kube-proxy's arguments, which name no mode: its default";
        return Known::derived(ProxyMode::Iptables, from);
    }
    if k3s_arguments(objects).is_some() {
        let from = "k3s's arguments, which name no mode of kube-proxy: its default";
        return Known::derived(ProxyMode::Iptables, from);
    }
    let because = "not stated; iptables is kube-proxy's default";
    if needed {
        assumptions.assume(
            "kube-proxy mode",
            "iptables",
            because,
            "state spec.kubeProxy.mode in Facts",
        );
    }
    Known::supposed(ProxyMode::Iptables, because)
}

fn version(objects: &Objects, needed: bool, assumptions: &mut Assumptions) -> Known<Version> {
    if let Some((version, origin)) = &objects.facts.proxy_version {
        return Known::stated(*version, origin.clone());
    }
    let image = kube_proxy::image(objects);
    if let Some((image, version)) = image.and_then(|image| Some((image, tag(image)?))) {
        return Known::derived(version, format!("kube-proxy's image {image}"));
    }
    let nodes = objects.nodes.0.values();
    // Nodes may differ during an upgrade; the oldest has the fewest abilities.
    let oldest = nodes
        .filter_map(|node| Some((node.kube_proxy_version?, &node.name)))
        .min_by_key(|(version, _)| *version);
    if let Some((version, node)) = oldest {
        return Known::derived(version, format!("status.nodeInfo of node {node}"));
    }
    let because = "neither an image of kube-proxy nor a node says it";
    if needed {
        let settle = "state spec.kubeProxy.version in Facts";
        assumptions.assume("kube-proxy version", USUAL.to_string(), because, settle);
    }
    Known::supposed(USUAL, because)
}

fn variant(
    objects: &Objects,
    provider: &Known<Provider>,
    version: &Known<Version>,
) -> Known<Variant> {
    if let Some((variant, origin)) = &objects.facts.proxy_variant {
        return Known::stated(*variant, origin.clone());
    }
    if let Some(cloud) = cloud::builder_of(version.value) {
        return Known::derived(Variant::Cloud(cloud), format!("its version {}", version.value));
    }
    match provider.value {
        Provider::Cloud(cloud) => {
            let has_builds = cloud::entry(cloud).is_some_and(|entry| entry.kube_proxy.is_some());
            let variant = if has_builds { Variant::Cloud(cloud) } else { Variant::Upstream };
            Known::derived(variant, format!("the cloud is {}", cloud.word()))
        }
        // Clouds leave traces on their nodes, and name their builds in versions.
        Provider::Unknown if !version.is_supposed() || has_nodes(objects) => {
            Known::derived(Variant::Upstream, "nothing names a cloud that has a build of its own")
        }
        Provider::Unknown => Known::supposed(Variant::Upstream, "nothing names a cloud"),
        Provider::None => Known::derived(Variant::Upstream, "no cloud has its own build"),
    }
}

fn has_nodes(objects: &Objects) -> bool {
    objects.nodes.0.values().any(|node| !node.supposed)
}

fn detector(objects: &Objects, configs: &[&ProxyConfig]) -> Known<LocalDetector> {
    if let Some((detector, origin)) = configs.iter().find_map(|config| config.detector.as_ref()) {
        return Known::stated(detector.clone(), origin.clone());
    }
    if let Some((nets, origin)) = configs.iter().find_map(|config| config.cluster_cidrs.as_ref()) {
        return Known::stated(LocalDetector::ClusterCidr(nets.clone()), origin.clone());
    }
    if let Some((nets, _)) = &objects.facts.pod_cidrs {
        let from = "spec.network.podCIDRs of Facts";
        return Known::derived(LocalDetector::ClusterCidr(nets.clone()), from);
    }
    if objects.proxy_config.is_some() {
        return Known::derived(
            LocalDetector::None,
            "kube-proxy's configuration names no clusterCIDR",
        );
    }
    if has_all_flags(objects) {
        return Known::derived(LocalDetector::None, "kube-proxy's arguments name no cluster CIDR");
    }
    Known::supposed(LocalDetector::None, NO_CIDR)
}

/// Returns the ranges of pods that kube-proxy's configuration or arguments state, and their place.
pub(in crate::derive) fn cluster_cidrs(objects: &Objects) -> Option<(Vec<IpNet>, Origin)> {
    let of = |config: &ProxyConfig| config.cluster_cidrs.clone();
    let arguments = || {
        let (_, arguments, origin) = container(objects)?;
        of(&proxy_config::from_arguments(arguments, origin))
    };
    let of_k3s = || k3s(objects).as_ref().and_then(of);
    objects.proxy_config.as_ref().and_then(of).or_else(arguments).or_else(of_k3s)
}

/// The reason why kube-proxy's cluster CIDR is assumed.
pub(in crate::derive) const NO_CIDR: &str = "nothing names a cluster CIDR for kube-proxy";

/// Returns whether kube-proxy is configured by its arguments alone, and all of them are known.
/// Arguments with shell or environment variables are not known.
fn has_all_flags(objects: &Objects) -> bool {
    let Some((_, arguments, _)) = container(objects) else { return false };
    let is_flag = |word: &&str| word.starts_with("--");
    let mut flags = arguments.iter().flat_map(|text| text.split_whitespace()).filter(is_flag);
    let is_partial = |word: &str| word.starts_with("--config") || word.contains('$');
    flags.clone().next().is_some() && !flags.any(is_partial)
}

pub(in crate::derive) fn needs_proxy(objects: &Objects) -> bool {
    objects.services.0.values().any(|service| !service.ports.is_empty())
}
