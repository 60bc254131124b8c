//! What a node's kernel knows: from its capture where there is one, else worked out.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;
use uturn_kubeproxy::Program;
use uturn_model::network::NetworkMode;
use uturn_model::node::RpFilter;
use uturn_model::{Cluster, Family, Node, Origin, Text};
use uturn_netfilter::{
    Interface, Kernel, NodeState, ParseError, PolicyRule, RouteEntry, RouteKind, RuleAction,
    Sysctls, ipset, iptables, ipvs, nft,
};

use crate::engine::Cannot;

/// The interface that leads to the fabric.
pub(crate) const UPLINK: &str = "eth0";
/// The bridge that pods hang off on a Global Router node.
pub(crate) const BRIDGE: &str = "cbr0";
/// Stands for all the interfaces of single pods on a VPC-CNI node.
pub(crate) const POD_LINKS: &str = "pods";

/// The device that kube-proxy binds addresses on in IPVS mode.
const IPVS_DEVICE: &str = "kube-ipvs0";

const LOCAL: u32 = 255;
const MAIN: u32 = 254;
const DEFAULT: u32 = 253;

/// The kernel of one node.
pub(crate) fn kernel(cluster: &Cluster, node: &Node) -> Result<Kernel, Cannot> {
    let mut state = NodeState { rules: usual_rules(), ..NodeState::default() };
    let mut sysctls: Vec<(Text, Text)> = vec![
        ("net.ipv4.ip_forward".into(), "1".into()),
        ("net.ipv6.conf.all.forwarding".into(), "1".into()),
    ];
    if let Some(rp_filter) = node.rp_filter {
        let value = match rp_filter {
            RpFilter::Off => "0",
            RpFilter::Strict => "1",
            RpFilter::Loose => "2",
        };
        sysctls.push(("net.ipv4.conf.all.rp_filter".into(), value.into()));
    }
    let mut bound = Vec::new();
    for family in Family::BOTH {
        if node.address(family).is_none() {
            continue;
        }
        let program = uturn_kubeproxy::compile(cluster, &node.name, &cluster.proxy, family)
            .map_err(|why| Cannot::Compile(node.name.clone(), why))?;
        load(&mut state, node, family, &program).map_err(|faults| unreadable(&faults))?;
        for (key, value) in program.sysctls {
            sysctls.push((key.into(), value.into()));
        }
        bound.extend(program.bound);
    }
    state.sysctls = Sysctls::from_iter(sysctls);
    interfaces(cluster, node, &mut state);
    bind(&mut state, &bound, &node.origin);
    Kernel::new(state).map_err(|faults| unreadable(&faults))
}

/// Reads what kube-proxy programs, as the kernel would load it.
///
/// `rules/n1:212` is line 212 of what `uturn rules --node n1` prints.
fn load(
    state: &mut NodeState,
    node: &Node,
    family: Family,
    program: &Program,
) -> Result<(), Vec<ParseError>> {
    let source = |format: &str| Text::from(format!("rules/{}{format}", node.name));
    let iptables = iptables::parse(source(""), &program.iptables, family)?;
    match family {
        Family::V4 => state.iptables = iptables,
        Family::V6 => state.ip6tables = iptables,
    }
    state.sets.0.extend(ipset::parse(source(" ipset"), &program.ipset)?.0);
    state.nft.tables.extend(nft::parse(source(" nft"), &program.nft)?.tables);
    state.ipvs.0.extend(ipvs::parse(source(" ipvs"), &program.ipvs)?.0);
    Ok(())
}

fn unreadable(faults: &[ParseError]) -> Cannot {
    Cannot::Read(faults.iter().map(ToString::to_string).collect())
}

/// Binds addresses as kube-proxy does in IPVS mode: on a device that carries no traffic.
fn bind(state: &mut NodeState, bound: &[IpAddr], origin: &Origin) {
    if bound.is_empty() {
        return;
    }
    let addresses = bound.iter().map(|ip| (*ip, Family::of(*ip).bits())).collect();
    state.interfaces.push(Interface { name: IPVS_DEVICE.into(), addresses, up: false });
    for ip in bound {
        local(state, *ip, IPVS_DEVICE, origin);
    }
}

fn interfaces(cluster: &Cluster, node: &Node, state: &mut NodeState) {
    let origin = &node.origin;
    let mut uplink = Vec::new();
    let mut loopback = vec![(IpAddr::V4(Ipv4Addr::LOCALHOST), 8)];
    state.routes.push(route("127.0.0.0/8", "lo", LOCAL, RouteKind::Local, origin));
    if node.address(Family::V6).is_some() {
        loopback.push((IpAddr::V6(std::net::Ipv6Addr::LOCALHOST), 128));
        state.routes.push(route("::1/128", "lo", LOCAL, RouteKind::Local, origin));
    }
    for ip in &node.internal_ips {
        uplink.push((*ip, Family::of(*ip).bits()));
        local(state, *ip, UPLINK, origin);
    }
    for family in Family::BOTH {
        if let Some(ip) = node.address(family) {
            let all = match family {
                Family::V4 => "0.0.0.0/0",
                Family::V6 => "::/0",
            };
            let mut default = route(all, UPLINK, MAIN, RouteKind::Unicast, origin);
            default.src = Some(ip);
            state.routes.push(default);
        }
    }
    let mut links = vec![("lo", loopback), (UPLINK, uplink)];
    match cluster.network.mode.value {
        NetworkMode::GlobalRouter => {
            let mut bridge = Vec::new();
            for net in &node.pod_cidrs {
                let Some(gateway) = net.hosts().next() else { continue };
                bridge.push((gateway, net.prefix_len()));
                local(state, gateway, BRIDGE, origin);
                let mut pods = route_to(*net, BRIDGE, MAIN, RouteKind::Unicast, origin);
                pods.src = Some(gateway);
                state.routes.push(pods);
            }
            links.push((BRIDGE, bridge));
        }
        NetworkMode::VpcCni => {
            for pod in cluster.pods_on(&node.name).filter(|pod| !pod.spec.host_network) {
                for ip in &pod.ips {
                    let net = IpNet::from(*ip);
                    state.routes.push(route_to(net, POD_LINKS, MAIN, RouteKind::Unicast, origin));
                }
            }
            links.push((POD_LINKS, Vec::new()));
        }
    }
    state.interfaces = links
        .into_iter()
        .map(|(name, addresses)| Interface { name: name.into(), addresses, up: true })
        .collect();
}

fn local(state: &mut NodeState, ip: IpAddr, dev: &str, origin: &Origin) {
    state.routes.push(route_to(IpNet::from(ip), dev, LOCAL, RouteKind::Local, origin));
}

fn route(dst: &str, dev: &str, table: u32, kind: RouteKind, origin: &Origin) -> RouteEntry {
    route_to(dst.parse().expect("a constant range"), dev, table, kind, origin)
}

fn route_to(dst: IpNet, dev: &str, table: u32, kind: RouteKind, origin: &Origin) -> RouteEntry {
    RouteEntry {
        dst,
        via: None,
        dev: Some(dev.into()),
        table,
        kind,
        src: None,
        metric: 0,
        origin: origin.clone(),
    }
}

/// The policy rules that every Linux has.
fn usual_rules() -> Vec<PolicyRule> {
    [(0, LOCAL), (32766, MAIN), (32767, DEFAULT)]
        .into_iter()
        .map(|(priority, table)| PolicyRule {
            priority,
            from: None,
            to: None,
            iif: None,
            oif: None,
            mark: None,
            invert: false,
            action: RuleAction::Lookup(table),
            origin: Origin::file("kernel"),
        })
        .collect()
}
