//! Derives the plugin that provides the pod network, and how that plugin works.
//!
//! A stated plugin comes first, then the plugins' agents and what they write on nodes and pods,
//! then the cloud and the addresses. A wrong guess must not break a healthy cluster: where nothing
//! states the plugin, each pod is assumed to have a link and a route of its own, which holds for
//! any addresses.

use std::net::IpAddr;

use uturn_clouds::cloud;
use uturn_model::network::{NetworkMode, Plugin, Transport, first_host};
use uturn_model::pod::Container;
use uturn_model::{Family, IpNet, Known, Labels, Node, ObjectRef, Pod, ProxySettings, Text};

use super::{daemon_sets, seen_addresses};
use crate::decode::objects::Objects;
use crate::derive::Assumptions;

/// The DaemonSets of plugins by name, which are searched after those of clouds' own networks. Where
/// several run, the first of this list provides the network: the others add policies or a Service
/// proxy to it.
const AGENTS: &[(&str, Plugin)] = &[
    ("aws-node", Plugin::AwsVpcCni),
    ("terway-eniip", Plugin::Terway),
    ("terway-eni", Plugin::Terway),
    ("terway", Plugin::Terway),
    ("canal", Plugin::Canal),
    ("rke2-canal", Plugin::Canal),
    ("kube-flannel-ds", Plugin::Flannel),
    ("kube-flannel", Plugin::Flannel),
    ("ovnkube-node", Plugin::OvnKubernetes),
    ("antrea-agent", Plugin::Antrea),
    ("weave-net", Plugin::Weave),
    ("kube-router", Plugin::KubeRouter),
    ("kindnet", Plugin::Kindnet),
    ("cilium", Plugin::Cilium),
    ("anetd", Plugin::Gke),
    ("netd", Plugin::Gke),
    ("calico-node", Plugin::Calico),
];

/// The prefixes of the keys of annotations and labels that plugins write on nodes.
const NODE_KEYS: &[(&str, Plugin)] = &[
    ("flannel.alpha.coreos.com/", Plugin::Flannel),
    ("k8s.ovn.org/", Plugin::OvnKubernetes),
    ("node.antrea.io/", Plugin::Antrea),
    ("kube-router.io/", Plugin::KubeRouter),
    ("network.cilium.io/", Plugin::Cilium),
    ("io.cilium.network.", Plugin::Cilium),
    ("projectcalico.org/", Plugin::Calico),
];

/// The prefixes of the keys of annotations that plugins write on pods.
const POD_KEYS: &[(&str, Plugin)] = &[
    ("k8s.ovn.org/pod-networks", Plugin::OvnKubernetes),
    ("cni.projectcalico.org/", Plugin::Calico),
];

/// The annotations in which Calico records the addresses of a node's tunnel interfaces.
pub(in crate::derive) const CALICO_TUNNELS: [&str; 3] =
    [CALICO_TUNNELS_V4[0], CALICO_TUNNELS_V4[1], CALICO_TUNNEL_V6];
const CALICO_TUNNELS_V4: [&str; 2] =
    ["projectcalico.org/IPv4IPIPTunnelAddr", "projectcalico.org/IPv4VXLANTunnelAddr"];
const CALICO_TUNNEL_V6: &str = "projectcalico.org/IPv6VXLANTunnelAddr";

/// The annotations in which Cilium records a node's address in its pod range.
pub(in crate::derive) const CILIUM_HOSTS: [&str; 3] = [
    "network.cilium.io/ipv4-cilium-host",
    "network.cilium.io/ipv6-cilium-host",
    "io.cilium.network.ipv4-cilium-host",
];

/// Returns the plugin that provides the pod network.
pub(super) fn derive(objects: &Objects, assumptions: &mut Assumptions) -> Known<Plugin> {
    if let Some((plugin, origin)) = &objects.facts.network_plugin {
        return Known::stated(*plugin, origin.clone());
    }
    if let Some((mode, origin)) = &objects.facts.network_mode {
        return Known::stated(cloud::usual_network(*mode), origin.clone());
    }
    let traces = [by_request, by_agent, by_node, by_pod, by_configuration, by_addresses];
    if let Some((plugin, trace)) = traces.iter().find_map(|find| find(objects)) {
        return Known::derived(plugin, trace);
    }
    let because = "neither nodes nor pods say it";
    if objects.need_nodes() {
        assumptions.assume("network", "global-router", because, "state spec.network.mode in Facts");
    }
    Known::supposed(cloud::usual_network(NetworkMode::GlobalRouter), because)
}

/// Returns the cloud's network whose annotations pods or pod templates have.
fn by_request(objects: &Objects) -> Option<(Plugin, String)> {
    let pods = objects.pods.0.values().map(|pod| (&pod.spec.annotations, &pod.name));
    let workloads = objects.workloads.0.values();
    let templates = workloads.map(|workload| (&workload.template.annotations, &workload.name));
    pods.chain(templates).find_map(|(annotations, name)| {
        let asked = |(key, part): &&(&'static str, &str)| {
            annotations.get(key).is_some_and(|value| value.contains(part))
        };
        cloud::networks().find_map(|network| {
            let (key, _) = network.pod_annotations.iter().find(asked)?;
            Some((Plugin::OfCloud(network.network), format!("{key} of {name}")))
        })
    })
}

/// Returns the plugin whose DaemonSet, or a pod of it, is in the cluster.
fn by_agent(objects: &Objects) -> Option<(Plugin, String)> {
    let on_hosts = daemon_sets(objects).filter(|(_, spec)| spec.host_network);
    let mut found: Vec<ObjectRef> = on_hosts.map(|(set, _)| set).collect();
    found.sort();
    found.dedup();
    let of_clouds = cloud::networks().flat_map(|network| {
        network.agents.iter().map(|agent| (*agent, Plugin::OfCloud(network.network)))
    });
    let agents: Vec<(&str, Plugin)> = of_clouds.chain(AGENTS.iter().copied()).collect();
    let of = |name: &str| {
        agents.iter().find(|(agent, _)| {
            // flannel has a DaemonSet for each architecture.
            name == *agent || name.strip_prefix(agent).is_some_and(|rest| rest.starts_with('-'))
        })
    };
    agents.iter().find_map(|(agent, plugin)| {
        let set = found.iter().find(|set| of(&set.name).is_some_and(|(own, _)| own == agent))?;
        let plugin = match plugin {
            Plugin::Calico if has_flannel(objects) => Plugin::Canal,
            Plugin::Cilium if is_azure(objects) => by_azure(objects),
            plugin => *plugin,
        };
        Some((plugin, set.to_string()))
    })
}

fn has_flannel(objects: &Objects) -> bool {
    let mut nodes = objects.nodes.0.values();
    nodes.any(|node| node.annotations.key_from("flannel.alpha.coreos.com/").is_some())
}

/// Returns the plugin or cloud whose annotation or label a node has.
fn by_node(objects: &Objects) -> Option<(Plugin, String)> {
    let nodes = objects.nodes.0.values();
    let of = |node: &Node| {
        let labels = |labels: &Labels, keys: &[(&str, Plugin)]| {
            keys.iter().find_map(|(begins, plugin)| {
                let key = labels.key_from(begins)?;
                Some((*plugin, format!("{key} of Node {}", node.name)))
            })
        };
        labels(&node.annotations, NODE_KEYS).or_else(|| labels(&node.labels, NODE_KEYS))
    };
    let (plugin, trace) = nodes.clone().find_map(of)?;
    Some((
        if plugin == Plugin::Flannel && has_calico(objects) { Plugin::Canal } else { plugin },
        trace,
    ))
}

fn has_calico(objects: &Objects) -> bool {
    let mut pods = objects.pods.0.values();
    pods.any(|pod| pod.spec.annotations.key_from("cni.projectcalico.org/").is_some())
}

/// Returns the plugin whose annotation a pod has.
fn by_pod(objects: &Objects) -> Option<(Plugin, String)> {
    objects.pods.0.values().find_map(|pod| {
        POD_KEYS.iter().find_map(|(begins, plugin)| {
            let key = pod.spec.annotations.key_from(begins)?;
            Some((*plugin, format!("{key} of Pod {}", pod.name)))
        })
    })
}

/// Returns flannel if a configuration of its CNI plugin is in the cluster.
fn by_configuration(objects: &Objects) -> Option<(Plugin, String)> {
    let of_flannel = objects.bridges.iter().find(|bridge| bridge.by_flannel)?;
    Some((Plugin::Flannel, format!("flannel's CNI configuration, {}", of_flannel.origin)))
}

/// Returns the plugin that the nodes' provider IDs, their podCIDRs and the addresses of pods
/// suggest.
fn by_addresses(objects: &Objects) -> Option<(Plugin, String)> {
    let nodes = &objects.nodes.0;
    let written = || nodes.values().filter(|node| !node.supposed);
    let Some(first) = written().next() else {
        return seen_addresses::without_bridge(objects).map(|trace| (Plugin::Unknown, trace));
    };
    let are_ranged = written().all(|node| !node.pod_cidrs.is_empty());
    let scheme = first.provider_id.as_deref().and_then(|id| Some(id.split_once("://")?.0));
    let id = || format!("providerID {} of Node {}", scheme.unwrap_or_default(), first.name);
    match scheme {
        Some("aws") if !are_ranged => return Some((Plugin::AwsVpcCni, id())),
        Some("azure") => return Some((by_azure(objects), id())),
        Some("gce") if are_ranged && is_gke(nodes.values().filter(|node| !node.supposed)) => {
            return Some((Plugin::Gke, id()));
        }
        Some("kind") => return Some((Plugin::Kindnet, id())),
        _ => {}
    }
    let stranger = outside_of_range(objects).next();
    if are_ranged && stranger.is_none() {
        let plugin = cloud::usual_network(NetworkMode::GlobalRouter);
        return Some((plugin, "the podCIDRs of the nodes".into()));
    }
    let is_known = objects.pods.0.values().any(has_own_address);
    if !are_ranged && !is_known {
        return None;
    }
    let trace = match stranger {
        Some(pod) => format!("the address of Pod {}, which is not of its node's podCIDR", pod.name),
        None => "nodes without a podCIDR, and pods with addresses".into(),
    };
    Some((Plugin::Unknown, trace))
}

/// Returns whether nodes are those of GKE, or their labels are not given. Other clusters on the same
/// machines, such as kops', have a network of their own.
fn is_gke<'n>(mut nodes: impl Iterator<Item = &'n Node> + Clone) -> bool {
    let marked = |node: &Node| {
        let mut managed = cloud::ALL.into_iter().filter_map(|entry| entry.label_with_cluster_cidr);
        managed.any(|begins| node.labels.key_from(begins).is_some())
            || node.name.as_str().starts_with("gke-")
    };
    nodes.clone().any(marked) || !nodes.any(Node::has_all_labels)
}

fn is_azure(objects: &Objects) -> bool {
    let is_it =
        |node: &Node| node.provider_id.as_deref().is_some_and(|id| id.starts_with("azure:"));
    objects.nodes.0.values().any(is_it)
}

/// Returns the one of Azure's networks that is used: only with the overlay and kubenet do pods have
/// addresses of their node's range.
fn by_azure(objects: &Objects) -> Plugin {
    let nodes = || objects.nodes.0.values();
    let is_overlay = |node: &Node| {
        node.labels.is("kubernetes.azure.com/azure-cni-overlay", "true")
            || node.labels.is("kubernetes.azure.com/podnetwork-type", "overlay")
    };
    if nodes().any(is_overlay) {
        return Plugin::AzureCniOverlay;
    }
    let has_cns = objects.workloads.0.keys().any(|(_, name)| name.name.as_str() == "azure-cns")
        || objects
            .pods
            .0
            .values()
            .any(|pod| pod.owner.as_ref().is_some_and(|owner| &*owner.name == "azure-cns"));
    let are_ranged = nodes().all(|node| !node.pod_cidrs.is_empty());
    match (are_ranged && outside_of_range(objects).next().is_none(), has_cns) {
        (true, true) => Plugin::AzureCniOverlay,
        (true, false) => Plugin::Kubenet,
        (false, _) => Plugin::AzureCni,
    }
}

fn has_own_address(pod: &Pod) -> bool {
    !pod.spec.host_network && !pod.supposed && !pod.ips.is_empty()
}

/// Iterates over pods with an address that is in no range of their node.
pub(super) fn outside_of_range(objects: &Objects) -> impl Iterator<Item = &Pod> {
    objects.pods.0.values().filter(|pod| has_own_address(pod)).filter(|pod| {
        let node = pod.node.as_ref().and_then(|name| objects.nodes.0.get(name));
        let is_outside = |node: &Node, ip: &IpAddr| {
            let of_family = |net: &&IpNet| Family::of(net.addr()) == Family::of(*ip);
            let mut nets = node.pod_cidrs.iter().filter(of_family).peekable();
            nets.peek().is_some() && !nets.any(|net| net.contains(ip))
        };
        node.is_some_and(|node| pod.ips.iter().any(|ip| is_outside(node, ip)))
    })
}

/// Returns a pod with the first address of its node's range, which a bridge would have.
fn has_first_address(objects: &Objects) -> Option<&Pod> {
    let is_first = |net: &IpNet, pod: &Pod| first_host(net).is_some_and(|ip| pod.ips.contains(&ip));
    objects.pods.0.values().filter(|pod| has_own_address(pod)).find(|pod| {
        let node = pod.node.as_ref().and_then(|name| objects.nodes.0.get(name));
        node.is_some_and(|node| node.pod_cidrs.iter().any(|net| is_first(net, pod)))
    })
}

/// Derives how pods are connected to their node.
pub(super) fn mode(objects: &Objects, plugin: &Known<Plugin>) -> Known<NetworkMode> {
    if let Some((mode, origin)) = &objects.facts.network_mode {
        return Known::stated(*mode, origin.clone());
    }
    let usual = plugin.value.usual_mode();
    // A bridge has its node's range, and the first address of the range.
    if usual == NetworkMode::GlobalRouter {
        if outside_of_range(objects).next().is_some() {
            return Known::derived(NetworkMode::Routed, "pods with addresses of no podCIDR");
        }
        if let Some(pod) = has_first_address(objects) {
            let from = format!("Pod {}, which has the first address of a podCIDR", pod.name);
            return Known::derived(NetworkMode::Routed, from);
        }
    }
    Known { value: usual, basis: plugin.basis.clone() }
}

/// How packets reach the pods of another node.
#[derive(Clone)]
pub(in crate::derive) struct Transports {
    pub(in crate::derive) usual: Known<Transport>,
    /// The transport of IPv6 packets, if it differs.
    pub(in crate::derive) v6: Option<Known<Transport>>,
}

impl Transports {
    /// Derives them from the nodes and pods, which have to be complete.
    pub(in crate::derive) fn of(objects: &Objects, plugin: &Known<Plugin>) -> Self {
        let usual = transport(objects, plugin);
        Self { v6: transport_v6(objects, plugin, &usual), usual }
    }
}

/// Derives how packets reach the pods of another node.
fn transport(objects: &Objects, plugin: &Known<Plugin>) -> Known<Transport> {
    if let Some((transport, origin)) = &objects.facts.transport {
        return Known::stated(*transport, origin.clone());
    }
    let first = |key: &str| first_note(objects, key);
    match plugin.value {
        Plugin::Flannel | Plugin::Canal => {
            if let Some((backend, trace)) = first("flannel.alpha.coreos.com/backend-type") {
                return Known::derived(flannel_transport(backend), trace);
            }
            if let Some((backend, origin)) = &objects.flannel_backend {
                return Known::stated(flannel_transport(backend), origin.clone());
            }
        }
        Plugin::Calico => {
            if let Some((_, trace)) = CALICO_TUNNELS_V4.into_iter().find_map(first) {
                return Known::derived(Transport::Tunnel, trace);
            }
            if let Some((_, trace)) = first("projectcalico.org/IPv4Address") {
                let because = format!("{trace}, and none has the address of a tunnel");
                return Known::derived(Transport::Underlay, because);
            }
            if let Some((_, trace)) = first(CALICO_TUNNEL_V6) {
                return Known::derived(Transport::Tunnel, trace);
            }
        }
        Plugin::Cilium => {
            if let Some(stated) = cilium_transport(objects) {
                return stated;
            }
        }
        _ => {}
    }
    let usual = plugin.value.usual_transport();
    if plugin.is_supposed() {
        Known::supposed(usual, "the network is supposed")
    } else {
        Known::derived(usual, format!("{} usually does it so", plugin.value))
    }
}

fn flannel_transport(backend: &str) -> Transport {
    match backend {
        "host-gw" | "ali-vpc" | "alloc" | "extension" => Transport::Underlay,
        _ => Transport::Tunnel,
    }
}

/// Derives how IPv6 packets reach the pods of another node. Returns `None` if they do so like IPv4
/// packets. Calico encapsulates by pool, and every node has the address of a tunnel of each family
/// that is encapsulated.
fn transport_v6(
    objects: &Objects,
    plugin: &Known<Plugin>,
    transport: &Known<Transport>,
) -> Option<Known<Transport>> {
    if plugin.value != Plugin::Calico || objects.facts.transport.is_some() {
        return None;
    }
    let first = |key: &str| first_note(objects, key);
    let known = match first(CALICO_TUNNEL_V6) {
        Some((_, trace)) => Known::derived(Transport::Tunnel, trace),
        None if !has_v6(objects) => return None,
        None => {
            let mut notes = ["projectcalico.org/IPv6Address"].into_iter().chain(CALICO_TUNNELS_V4);
            let (_, trace) = notes.find_map(first)?;
            let because = format!("{trace}, and none has {CALICO_TUNNEL_V6}");
            Known::derived(Transport::Underlay, because)
        }
    };
    (known.value != transport.value).then_some(known)
}

/// Returns the value of this annotation on the first node that has it, and its place in words.
fn first_note<'o>(objects: &'o Objects, key: &str) -> Option<(&'o str, String)> {
    objects
        .nodes
        .0
        .values()
        .find_map(|node| Some((node.annotations.get(key)?, format!("{key} of Node {}", node.name))))
}

/// Returns whether a node or a pod has an IPv6 address.
fn has_v6(objects: &Objects) -> bool {
    let of_nodes = objects.nodes.0.values().flat_map(|node| &node.internal_ips);
    let of_pods = objects.pods.0.values().flat_map(|pod| &pod.ips);
    of_nodes.chain(of_pods).any(IpAddr::is_ipv6)
}

/// Returns the transport that Cilium's ConfigMap states. Older releases use the key `tunnel`.
fn cilium_transport(objects: &Objects) -> Option<Known<Transport>> {
    let (config, origin) = objects.cilium_config.as_ref()?;
    let mode = config.get("routing-mode").filter(|mode| !mode.is_empty());
    let transport = match mode.or_else(|| config.get("tunnel"))? {
        "native" | "disabled" => Transport::Underlay,
        _ => Transport::Tunnel,
    };
    Some(Known::stated(transport, origin.clone()))
}

/// Derives whether packets from pods to destinations outside of the pod network are masqueraded.
pub(in crate::derive) fn masquerades(objects: &Objects, plugin: &Known<Plugin>) -> Known<bool> {
    if let Some((masquerades, origin)) = &objects.facts.masquerade {
        return Known::stated(*masquerades, origin.clone());
    }
    let stated = objects.facts.non_masquerade_cidrs.as_ref().or(objects.non_masquerade.as_ref());
    if let Some((_, origin)) = stated.filter(|(nets, _)| !nets.is_empty()) {
        return Known::stated(true, origin.clone());
    }
    match (plugin.value, flanneld(objects)) {
        (Plugin::Flannel | Plugin::Canal, Some((set, Some(true)))) => {
            return Known::derived(true, format!("{set}, whose flanneld has {IP_MASQ}"));
        }
        // Canal has a variable for it.
        (Plugin::Flannel, Some((set, Some(false)))) => {
            return Known::derived(false, format!("{set}, whose flanneld has no {IP_MASQ}"));
        }
        _ => {}
    }
    let usual = plugin.value.usually_masquerades();
    if plugin.is_supposed() {
        Known::supposed(usual, "the network is supposed")
    } else {
        Known::derived(usual, format!("{} usually does it so", plugin.value))
    }
}

/// Derives whether nodes masquerade packets to other nodes' pods that no pod sent.
pub(in crate::derive) fn masquerades_to_pods(
    objects: &Objects,
    plugin: &Known<Plugin>,
    masquerades: &Known<bool>,
) -> Known<bool> {
    match (plugin.value, flanneld(objects)) {
        (Plugin::Flannel, Some((set, None))) if objects.facts.masquerade.is_none() => {
            Known::supposed(true, format!("{set} states no arguments of flanneld"))
        }
        (Plugin::Flannel | Plugin::Canal | Plugin::Weave, _) => masquerades.clone(),
        (other, _) => Known::derived(false, format!("{other} has no such rules")),
    }
}

/// The argument with which flanneld masquerades.
const IP_MASQ: &str = "--ip-masq";

/// Returns flannel's DaemonSet and whether its flanneld masquerades; `None` for that if its arguments
/// are not given.
fn flanneld(objects: &Objects) -> Option<(ObjectRef, Option<bool>)> {
    daemon_sets(objects).find_map(|(set, spec)| {
        let is_it = |own: &&Container| {
            let program = own.program();
            program.contains("flannel") && !program.contains("cni")
        };
        let words = &spec.containers.iter().find(is_it)?.arguments;
        // A script of somebody's own may add what it likes.
        let are_flags = words.iter().any(|word| word.contains("flanneld"))
            || words.first().is_some_and(|word| word.starts_with('-'));
        let asks = |word: &Text| word.contains("ip-masq") && !word.contains("ip-masq=false");
        Some((set, are_flags.then(|| words.iter().any(asks))))
    })
}

/// Returns why nodes forward no ports of their own to pods: Cilium only does as part of its
/// replacement of kube-proxy, unless another plugin that does is chained to it.
pub(in crate::derive) fn host_ports_off(
    objects: &Objects,
    plugin: &Known<Plugin>,
    proxy: &ProxySettings,
) -> Option<Text> {
    const SWITCH: &str = "kube-proxy-replacement";
    if plugin.value != Plugin::Cilium || proxy.replaced_by().is_some() {
        return None;
    }
    let (config, _) = objects.cilium_config.as_ref()?;
    let value = config.get(SWITCH).filter(|value| matches!(*value, "false" | "disabled"))?;
    let chained = config.get("cni-chaining-mode").unwrap_or_default();
    let own = ["read-cni-conf", "custom-cni-conf"];
    let has_own = own
        .into_iter()
        .any(|key| config.get(key).is_some_and(|value| !matches!(value, "" | "false")));
    (matches!(chained, "" | "none") && !has_own).then(|| {
        format!(
            "ConfigMap cilium-config has {SWITCH}: {value}, without which Cilium forwards no host \
             ports, and no cni-chaining-mode that adds portmap"
        )
        .into()
    })
}
