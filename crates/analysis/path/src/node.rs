//! The kernel of a node: read from the node's capture if there is one, else derived.

mod interfaces;
pub(crate) mod refusal;
pub(crate) mod switches;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use ipnet::IpNet;
use uturn_clouds::local_addresses;
use uturn_kubeproxy::{Program, host_ports, pod_network};
use uturn_model::capture::CaptureFile;
use uturn_model::network::NetworkMode;
use uturn_model::node::RpFilter;
use uturn_model::{Capture, Cluster, Family, Name, Node, ProxyMode, RulesPart, SourceName, Text};
use uturn_netfilter::{
    CaptureGap, Kernel, NodeState, ParseError, RouteEntry, RouteKind, ipset, iptables, ipvs, nft,
};

use crate::error::WalkError;
use crate::node::switches::{BRIDGE_RULES, shows_rules};
use interfaces::{MAIN, POD_CARD, UPLINK, bind, interfaces, own_addresses, usual_rules};

/// The sysctls that make a node forward.
const FORWARDING: [&str; 2] = ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"];

/// A node's kernel, and where the node's interfaces lead.
pub struct NodeRuntime {
    /// The kernel.
    pub kernel: Kernel,
    /// The interface that leads to the fabric.
    pub uplink: Text,
    /// The interface that leads to the fabric for pods, if it is not the node's.
    pub card: Option<Text>,
    /// Whether the links and routes come from a capture.
    pub has_captured_links: bool,
    /// The interface that encapsulates packets to other nodes' pods, if no capture names it.
    tunnel: Option<Text>,
    /// The interface of each pod; none means [`NodeRuntime::usual_link`].
    links: HashMap<IpAddr, Text>,
    usual_link: Text,
    /// The kernel with forwarding turned on, if the node does not forward.
    forwarding: OnceLock<Option<Kernel>>,
}

impl NodeRuntime {
    /// Compiles a node from its capture. Derives from the cluster what the capture lacks, or
    /// everything if there is no capture.
    ///
    /// # Errors
    /// Returns an error if the node's rules cannot be compiled or read.
    pub fn new(cluster: &Cluster, node: &Node) -> Result<Self, WalkError> {
        Self::of(cluster, cluster, node, cluster.captures.get(&node.name))
    }

    /// Derives a node from the cluster, with kube-proxy's rules for another cluster.
    ///
    /// # Errors
    /// Returns an error if the node's rules cannot be compiled.
    pub(crate) fn with_rules_of(
        other: &Cluster,
        cluster: &Cluster,
        node: &Node,
    ) -> Result<Self, WalkError> {
        Self::of(other, cluster, node, None)
    }

    /// Derives a node from the cluster and ignores its capture.
    ///
    /// # Errors
    /// Returns an error if the node's rules cannot be compiled.
    pub fn without_capture(cluster: &Cluster, node: &Node) -> Result<Self, WalkError> {
        Self::of(cluster, cluster, node, None)
    }

    /// Returns whether nodes without captures get the same rules in two clusters that have the same
    /// settings.
    pub fn have_same_rules(cluster: &Cluster, other: &Cluster) -> bool {
        cluster.services == other.services && cluster.endpoints == other.endpoints
    }

    /// Returns whether a node has the same addresses, forwarded ports and links to its pods in two
    /// clusters that have the same settings: with the same rules, its kernel is the same in both.
    pub fn has_same_links(name: &Name, cluster: &Cluster, other: &Cluster) -> bool {
        let is_one_bridge = cluster.network.mode.value == NetworkMode::GlobalRouter;
        let own = |cluster: &Cluster| {
            let node = cluster.nodes.get(name)?;
            let forwarded = Family::BOTH.map(|family| host_ports::rules(cluster, node, family));
            Some((local_addresses::on(cluster, node), forwarded))
        };
        own(cluster) == own(other)
            && (is_one_bridge || own_addresses(cluster, name) == own_addresses(other, name))
    }

    /// Compiles a node with kube-proxy's rules for `served`, which is the cluster or a part of it.
    fn of(
        served: &Cluster,
        cluster: &Cluster,
        node: &Node,
        capture: Option<&Capture>,
    ) -> Result<Self, WalkError> {
        let has = |file| capture.is_some_and(|state| state.files.contains_key(&file));
        let mut state = match capture {
            Some(capture) => {
                NodeState::from_capture(capture).map_err(|faults| unreadable(&faults))?
            }
            None => NodeState::default(),
        };
        if !has(CaptureFile::Rules) {
            state.rules = usual_rules();
        }
        let mut sysctls = sysctls(node);
        let has_rules = |family| capture.is_some_and(|state| state.has_rules(family));
        let programmed = served.programmed_on(node);
        let mut bound = Vec::new();
        let knows_links = capture.is_some_and(Capture::has_links);
        let in_files = [CaptureFile::Ipset, CaptureFile::Ipvs].map(has);
        let lacks_servers = capture.is_some()
            && cluster.proxy.mode.value == ProxyMode::Ipvs
            && in_files != [true; 2];
        let knows_all = knows_links && has(CaptureFile::Sysctls) && !lacks_servers;
        for family in Family::BOTH {
            if node.address(family).is_none() || (has_rules(family) && knows_all) {
                continue;
            }
            let program = uturn_kubeproxy::compile(&programmed, &node.name, &cluster.proxy, family)
                .map_err(|why| WalkError::Compile(node.name.clone(), why))?;
            if !has_rules(family) {
                load(&mut state, node, family, &program).map_err(|faults| unreadable(&faults))?;
            } else if lacks_servers {
                load_servers(&mut state, node, &program, in_files)
                    .map_err(|faults| unreadable(&faults))?;
            }
            for (key, value) in program.sysctls {
                sysctls.push((key.into(), value.into()));
            }
            bound.extend(program.bound);
        }
        if let Some((key, value)) = host_ports::sysctl(cluster, node) {
            sysctls.push((key.into(), value.into()));
        }
        for family in Family::BOTH {
            let pods = pod_network::rules(cluster, node, family);
            let Some(text) = pods.filter(|_| !has_rules(family)) else { continue };
            let source = SourceName::Generated(node.name.clone(), RulesPart::PodNetwork);
            let rules = match family {
                Family::V4 => &mut state.iptables,
                Family::V6 => &mut state.ip6tables,
            };
            *rules = iptables::parse_fragment(std::mem::take(rules), source, &text, family)
                .map_err(|faults| unreadable(&faults))?;
        }
        if let (Some(own), false) = (&node.firewall, has_rules(Family::V4)) {
            let source = SourceName::Embedded(Arc::new(own.origin.clone()));
            let base = std::mem::take(&mut state.iptables);
            state.iptables = iptables::parse_fragment(base, source, &own.text, Family::V4)
                .map_err(|faults| unreadable(&faults))?;
        }
        // Both names are of one sysctl.
        if let Some(all) = state.sysctls.get("net.ipv4.conf.all.forwarding").map(str::to_owned) {
            sysctls.retain(|(key, _)| **key != *FORWARDING[0] || all == "1");
        }
        for (key, value) in sysctls {
            if state.sysctls.get(&key).is_none() {
                state.sysctls.set(&key, &value);
            }
        }
        if !knows_links {
            interfaces(cluster, node, &mut state);
            bind(&mut state, &bound, &node.origin);
        }
        let uplink = if knows_links { uplink(&state) } else { UPLINK.into() };
        let links = if knows_links { links(cluster, node, &state) } else { HashMap::new() };
        let card = match (cluster.network.mode.value, knows_links) {
            (NetworkMode::GlobalRouter | NetworkMode::Routed, _) => None,
            (NetworkMode::VpcCni, true) => card(&state, &uplink),
            (NetworkMode::VpcCni, false) => Some(POD_CARD.into()),
        };
        let usual_link = pod_network::link(cluster);
        // The code above derives what else is missing, and `uncaptured` reports it.
        if let Some(capture) = capture {
            state.gaps = CaptureGap::all_of(capture, &state);
            state.gaps.retain(|gap| match gap {
                CaptureGap::Sets => true,
                CaptureGap::Virtual => state.ipvs.0.is_empty(),
                _ => false,
            });
        }
        let kernel = Kernel::new(state).map_err(|faults| unreadable(&faults))?;
        let forwarding = OnceLock::new();
        let is_wrapped = cluster.network.has_tunnels();
        let tunnel = (is_wrapped && !knows_links).then(|| pod_network::TUNNEL.into());
        let has_captured_links = knows_links;
        Ok(Self { kernel, uplink, card, has_captured_links, tunnel, links, usual_link, forwarding })
    }

    /// Returns the number of entries of the kernel.
    pub(crate) fn entries(&self) -> usize {
        let state = self.kernel.state();
        // A node that does not forward has a second kernel for bridged frames.
        let forwards = Family::BOTH.iter().all(|family| state.sysctls.ip_forward(*family));
        if forwards { state.entries() } else { 2 * state.entries() }
    }

    /// Returns whether an interface leads to the fabric.
    pub fn leads_to_fabric(&self, out: Option<&str>) -> bool {
        out.is_some_and(|out| *out == *self.uplink || self.card.as_deref() == Some(out))
    }

    /// Returns the interface that receives encapsulated packets of another node, for any source
    /// address: the interface that leads to that node's pods.
    pub(crate) fn tunnel_from(&self, cluster: &Cluster, peer: &Node, src: IpAddr) -> Text {
        if let Some(tunnel) = &self.tunnel {
            return tunnel.clone();
        }
        let ranges = peer.pod_cidrs.iter().map(IpNet::network);
        let of_peer = own_addresses(cluster, &peer.name).into_iter().chain(ranges);
        let known = peer.tunnel_ips.iter().copied().chain(of_peer).chain([src]);
        let towards = |ip: IpAddr| {
            let routes = self.kernel.state().routes.iter();
            let of_ip = |route: &&RouteEntry| {
                route.kind == RouteKind::Unicast && route.table == MAIN && route.dst.contains(&ip)
            };
            let best = routes.filter(of_ip).max_by_key(|route| route.dst.prefix_len());
            best.and_then(|route| route.dev.clone())
        };
        let mut links = known.filter_map(towards);
        links.find(|link| *link != self.uplink).unwrap_or_else(|| self.uplink.clone())
    }

    /// Returns the interface by which packets for an address come in from the fabric.
    pub(crate) fn card_for(&self, address: IpAddr) -> Text {
        let is_own = || {
            let all = &self.kernel.state().interfaces;
            all.iter().any(|interface| interface.addresses.iter().any(|(ip, _)| *ip == address))
        };
        let card = self.card.as_ref().filter(|_| !is_own());
        card.unwrap_or(&self.uplink).clone()
    }

    /// Returns the kernel that evaluates frames which the bridge passes from pod to pod: rules see
    /// them as forwarded, whether the node forwards or not.
    pub(crate) fn bridging(&self) -> &Kernel {
        let forwarding = self.forwarding.get_or_init(|| {
            let mut state = self.kernel.state().clone();
            if Family::BOTH.iter().all(|family| state.sysctls.ip_forward(*family)) {
                return None;
            }
            for switch in FORWARDING {
                state.sysctls.set(switch, "1");
            }
            Kernel::new(state).ok()
        });
        forwarding.as_ref().unwrap_or(&self.kernel)
    }

    /// Returns whether rules see bridged frames (br_netfilter), as Kubernetes requires. Without a
    /// stated value, they do.
    pub fn bridge_shows_rules(&self, family: Family) -> bool {
        self.kernel.state().sysctls.get(shows_rules(family)) != Some("0")
    }

    /// Returns whether a pod's interface is a bridge, which other pods share.
    pub fn is_bridge(&self, link: &Text, pod: IpAddr) -> bool {
        let is_own = |net: &IpNet| net.prefix_len() == net.max_prefix_len();
        self.kernel.state().routes.iter().any(|route| {
            route.dev.as_ref() == Some(link)
                && *link != self.uplink
                && route.via.is_none()
                && route.kind == RouteKind::Unicast
                && route.dst.contains(&pod)
                && !is_own(&route.dst)
        })
    }

    /// Returns the interface through which a pod of this node sends.
    pub fn pod_link(&self, pod: IpAddr) -> Text {
        self.links.get(&pod).unwrap_or(&self.usual_link).clone()
    }
}

/// Returns the sysctls that are known of a node without a capture.
fn sysctls(node: &Node) -> Vec<(Text, Text)> {
    let forwards = if node.forwards == Some(false) { "0" } else { "1" };
    let mut sysctls: Vec<(Text, Text)> =
        FORWARDING.map(|switch| (switch.into(), forwards.into())).into();
    if let Some(sees) = node.bridge_rules {
        let value = if sees { "1" } else { "0" };
        sysctls.extend(BRIDGE_RULES.map(|switch| (switch.into(), value.into())));
    }
    if let Some(rp_filter) = node.rp_filter {
        let value = match rp_filter {
            RpFilter::Off => "0",
            RpFilter::Strict => "1",
            RpFilter::Loose => "2",
        };
        sysctls.push(("net.ipv4.conf.all.rp_filter".into(), value.into()));
    }
    sysctls
}

/// Returns the interface of the best default route in a capture.
fn uplink(state: &NodeState) -> Text {
    let default = state
        .routes
        .iter()
        .filter(|route| route.dst.prefix_len() == 0 && route.kind == RouteKind::Unicast)
        .min_by_key(|route| (route.table != MAIN, route.metric));
    default.and_then(|route| route.dev.clone()).unwrap_or_else(|| UPLINK.into())
}

/// Returns another interface with a default route in a capture: the one that pods use.
fn card(state: &NodeState, uplink: &Text) -> Option<Text> {
    let mut all = state.routes.iter();
    let is_other = |dev: &Text| dev != uplink;
    let default = all.find(|route| {
        route.dst.prefix_len() == 0
            && route.kind == RouteKind::Unicast
            && route.dev.as_ref().is_some_and(is_other)
    });
    default.and_then(|route| route.dev.clone())
}

/// Returns the interface by which each pod of the node is reached, in a capture.
fn links(cluster: &Cluster, node: &Node, state: &NodeState) -> HashMap<IpAddr, Text> {
    let towards = |ip: &IpAddr| {
        state
            .routes
            .iter()
            .filter(|route| route.kind == RouteKind::Unicast && route.dst.contains(ip))
            .filter(|route| route.dst.prefix_len() > 0)
            .max_by_key(|route| route.dst.prefix_len())
            .and_then(|route| Some((*ip, route.dev.clone()?)))
    };
    let own = cluster.pods_on(&node.name).filter(|pod| !pod.spec.host_network);
    own.flat_map(|pod| &pod.ips).filter_map(towards).collect()
}

/// Parses kube-proxy's program as the kernel would load it.
///
/// `rules/n1:212` is line 212 of what `uturn rules --node n1` prints.
fn load(
    state: &mut NodeState,
    node: &Node,
    family: Family,
    program: &Program,
) -> Result<(), Vec<ParseError>> {
    let source = |part| SourceName::Generated(node.name.clone(), part);
    let iptables = iptables::parse(source(RulesPart::Iptables), &program.iptables, family)?;
    match family {
        Family::V4 => state.iptables = iptables,
        Family::V6 => state.ip6tables = iptables,
    }
    state.sets.0.extend(ipset::parse(source(RulesPart::Ipset), &program.ipset)?.0);
    state.nft.tables.extend(nft::parse(source(RulesPart::Nftables), &program.nft)?.tables);
    state.ipvs.0.extend(ipvs::parse(source(RulesPart::Ipvs), &program.ipvs)?.0);
    Ok(())
}

/// Adds the sets and the IPVS servers of the program that a capture lacks; those it has stay.
fn load_servers(
    state: &mut NodeState,
    node: &Node,
    program: &Program,
    [has_sets, has_servers]: [bool; 2],
) -> Result<(), Vec<ParseError>> {
    let source = |part| SourceName::Generated(node.name.clone(), part);
    if !has_sets {
        state.sets.0.extend(ipset::parse(source(RulesPart::Ipset), &program.ipset)?.0);
    }
    if !has_servers {
        state.ipvs.0.extend(ipvs::parse(source(RulesPart::Ipvs), &program.ipvs)?.0);
    }
    Ok(())
}

fn unreadable(faults: &[ParseError]) -> WalkError {
    WalkError::Read(faults.iter().map(ToString::to_string).collect())
}
