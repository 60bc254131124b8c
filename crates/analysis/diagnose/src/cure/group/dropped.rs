//! Rules for exactly the packets that a security group dropped, as the walk of the flow shows them.

use std::net::IpAddr;

use uturn_document::edit::{Change, Tree};
use uturn_kubeproxy::pod_network;
use uturn_model::network::Transport;
use uturn_model::shell::Advice;
use uturn_model::{Client, Family, IpNet, Text};
use uturn_path::stands_for_public_address;

use super::accept;
use crate::cloud;
use crate::cure::case::DroppedPacket;
use crate::cure::facts::facts;
use crate::cure::{Case, Proposal, way};

/// The maximum number of dropped packets for which rules are tried.
const MAX_PACKETS: usize = 4;

/// The maximum number of nodes whose addresses are let in one by one.
const MAX_NODES: usize = 8;

/// The rank of a rule for the range that fits best.
const RANK: u8 = 16;

/// The rank of a rule for health checks. Another source of these is better where the cloud has one.
const RANK_OF_PROBES: u8 = 22;

pub(super) fn propose(case: &Case<'_>) -> Vec<Proposal> {
    let mut all = Vec::new();
    for packet in case.dropped.iter().take(MAX_PACKETS) {
        let known = &case.cluster().security_groups;
        let Some(group) = packet.groups.iter().find(|name| known.contains_key(*name)) else {
            continue;
        };
        let (port, protocol) = (packet.leg.dst.port(), packet.protocol.lower());
        let called = Traffic { protocol, port, what: "" };
        for (at, peer) in peers(case, packet, group).iter().enumerate() {
            let best = if packet.is_probe { RANK_OF_PROBES } else { RANK };
            let rank = if at == 0 { best } else { best + 1 };
            all.extend(called.proposals(case, group, (peer, rank), packet.leg.dst.ip()));
        }
        for wrapping in wrappings(case, packet) {
            let ranges = case.cluster().network.vpc_cidrs.value.iter();
            for range in ranges.take(MAX_RANGES) {
                let peer = (&Peer::range(*range), RANK + 1);
                all.extend(wrapping.proposals(case, group, peer, range.network()));
            }
        }
    }
    all
}

/// The maximum number of ranges of nodes that are tried for wrapped packets.
const MAX_RANGES: usize = 2;

/// The other side of a rule.
struct Peer {
    /// The ranges in words.
    shown: String,
    ranges: Vec<String>,
}

impl Peer {
    fn range(net: IpNet) -> Self {
        let net = net.to_string();
        Self { shown: net.clone(), ranges: vec![net] }
    }
}

/// Returns the ranges from which the dropped packet may be let in, the one that fits best first: a
/// range that the group names already, a range of the cluster that contains the source, the source.
fn peers(case: &Case<'_>, packet: &DroppedPacket, group: &Text) -> Vec<Peer> {
    let cluster = case.cluster();
    let source = packet.leg.src.ip();
    // A load balancer's address stands for the range of which it is, or for the network's.
    let model = uturn_clouds::cloud::model(cluster).map(|model| model.replaced_source());
    if let Some(range) = model.filter(|range| range.contains(&source)) {
        return vec![Peer::range(range)];
    }
    if uturn_clouds::cloud::stands_for_balancer(source) {
        let own = |net: &&IpNet| Family::of(net.addr()) == Family::of(source);
        let ranges = cluster.network.vpc_cidrs.value.iter().filter(own);
        return ranges.take(MAX_RANGES).copied().map(Peer::range).collect();
    }
    // A node's public address that is not given cannot be named.
    if stands_for_public_address(source) {
        let shown = "anywhere (the nodes' public addresses are not given)".into();
        return vec![Peer { shown, ranges: vec!["all".into()] }];
    }
    let is_its = |net: &&IpNet| net.contains(&source) && net.prefix_len() > 0;
    let own = cluster.security_groups.get(group);
    let named = own.into_iter().flat_map(|own| own.inbound.iter().chain(&own.outbound));
    let named = named.filter_map(|rule| rule.peer.as_ref()).filter(is_its);
    let named = named.filter(|net| net.prefix_len() < IpNet::from(source).prefix_len());
    let network = &cluster.network;
    let ranges = network.vpc_cidrs.value.iter().chain(&network.pod_cidrs.value).filter(is_its);
    let ranges: Vec<&IpNet> = ranges.collect();
    let from = case.walked().map(|flow| &flow.from);
    // Any address stands for a client that is not named.
    if from == Some(&Client::Outside(None)) && ranges.is_empty() {
        return vec![Peer { shown: "anywhere".into(), ranges: vec!["all".into()] }];
    }
    let mut all: Vec<Peer> = Vec::new();
    all.extend(named.max_by_key(|net| net.prefix_len()).copied().map(Peer::range));
    if ranges.is_empty() {
        all.extend(addresses_like(case, source));
    }
    let is_outside = matches!(from, Some(Client::Outside(Some(_))));
    // A load balancer keeps its address.
    let is_balancer =
        cluster.dns.balancer_at(source).is_some() || case.engine.balancer_at(source).is_some();
    let is_own = (is_outside || is_balancer) && !ranges.is_empty();
    let own = is_own.then(|| Peer::range(IpNet::from(source)));
    all.extend(ranges.into_iter().copied().map(Peer::range));
    all.extend(own);
    let mut seen: Vec<String> = Vec::new();
    all.retain(|peer| {
        let is_new = !seen.contains(&peer.shown);
        seen.push(peer.shown.clone());
        is_new
    });
    all
}

/// Returns the addresses of all nodes, if the source is a node's address; otherwise the source.
fn addresses_like(case: &Case<'_>, source: IpAddr) -> Option<Peer> {
    let nodes = case.cluster().nodes.values();
    let is_public = nodes.clone().any(|node| node.external_ips.contains(&source));
    let is_private = nodes.clone().any(|node| node.internal_ips.contains(&source));
    let lists = nodes.map(|node| if is_public { &node.external_ips } else { &node.internal_ips });
    let alike = |ip: &&IpAddr| Family::of(**ip) == Family::of(source);
    let all: Vec<String> =
        lists.flatten().filter(alike).map(|ip| IpNet::from(*ip).to_string()).collect();
    match all.as_slice() {
        [_, _, ..] if (is_public || is_private) && all.len() <= MAX_NODES => {
            Some(Peer { shown: format!("the nodes ({})", all.join(", ")), ranges: all })
        }
        _ => Some(Peer::range(IpNet::from(source))),
    }
}

/// Returns the UDP in which nodes wrap packets for the pods of other nodes, if the dropped packet was
/// wrapped.
fn wrappings(case: &Case<'_>, packet: &DroppedPacket) -> Vec<Traffic> {
    let cluster = case.cluster();
    let to = packet.leg.dst.ip();
    let is_wrapped = cluster.network.transport_of(Family::of(to)).value == Transport::Tunnel
        && cluster.pods.values().any(|pod| pod.address(Family::of(to)) == Some(to))
        && !cluster.nodes.values().any(|node| node.has_address(to));
    let ways = pod_network::wrappings(cluster.network.plugin.value).iter();
    let ways = ways.filter(|way| is_wrapped && way.is_udp());
    ways.map(|way| Traffic {
        protocol: "udp",
        port: way.port,
        what: ", in which nodes wrap what pods send,",
    })
    .collect()
}

/// The traffic that a rule lets through.
struct Traffic {
    protocol: &'static str,
    port: u16,
    /// What it carries, to follow its name.
    what: &'static str,
}

impl Traffic {
    /// Proposes to let the traffic in, and also out where the group limits that.
    fn proposals(
        &self,
        case: &Case<'_>,
        group: &Text,
        (peer, rank): (&Peer, u8),
        destination: IpAddr,
    ) -> Vec<Proposal> {
        let traffic = format!("{} {}{}", self.protocol.to_uppercase(), self.port, self.what);
        let from = &peer.shown;
        let place = cloud::at_place(case.cluster());
        let add = |made: Proposal, direction: &str, range: &str| {
            let rule = accept(self.protocol, Tree::number(self.port), range);
            let path = way!["securityGroups", &**group, direction];
            made.edit(facts(), path, Change::Prepend(rule))
        };
        let into = |made: Proposal| {
            let sentence = format!(
                "{place}security group {group}, inbound: let {traffic} from {from} in, before any \
                 rule that drops it"
            );
            let made = peer.ranges.iter().fold(made, |made, range| add(made, "inbound", range));
            made.types(Advice::sentence(&sentence))
        };
        let network = &case.cluster().network;
        let mut ranges = network.vpc_cidrs.value.iter().chain(&network.pod_cidrs.value);
        let range = ranges.find(|net| net.contains(&destination));
        let to = range.copied().unwrap_or_else(|| IpNet::from(destination)).to_string();
        let out = |made: Proposal| {
            let sentence = format!(
                "{place}security group {group}, outbound: let {traffic} to {to} out, before any \
                 rule that drops it"
            );
            add(made, "outbound", &to).types(Advice::sentence(&sentence))
        };
        let in_cost = "every client in that range reaches that port of what is in the group";
        let out_cost = "what is in the group reaches that port of everything in that range";
        let new = |rank: u8, title: String, cost: &str| {
            Proposal::new("security-group", rank, title).costs(cost).trial()
        };
        let mut all =
            vec![into(new(rank, format!("let {traffic} from {from} in, in {group}"), in_cost))];
        let own = case.cluster().security_groups.get(group);
        if own.is_some_and(|own| !own.outbound.is_empty()) {
            all.push(out(new(rank, format!("let {traffic} to {to} out, in {group}"), out_cost)));
            let title = if *from == to {
                format!("let {traffic} in from {from} and out to it, in {group}")
            } else {
                format!("let {traffic} in from {from} and out to {to}, in {group}")
            };
            all.push(out(into(new(rank + 1, title, in_cost))));
        }
        all
    }
}
