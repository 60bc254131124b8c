//! Security groups: which packets they allow into nodes and load balancers, and out of nodes.

use std::net::IpAddr;

use uturn_clouds::cloud::{self, Maker};
use uturn_kubeproxy::pod_network;
use uturn_model::network::{SecurityGroup, SecurityRule};
use uturn_model::route::{Direction, Leg, Step, StepKind};
use uturn_model::service::ServiceKind;
use uturn_model::{
    Assumption, Cluster, Evidence, Family, Ingress, IpNet, Node, Origin, Protocol, Text,
};
use uturn_netfilter::IpProtocol;

use crate::add_missing::add_missing;
use crate::journey::public_address::stands_for_public_address;
use crate::packet::PacketState;

/// Returns the drop of an inbound packet by security groups, if they deny it. Adds an assumption to
/// the packet if it depends on a load balancer's address that is not given.
pub(crate) fn denied_inbound(
    cluster: &Cluster,
    groups: &[Text],
    state: &mut PacketState,
) -> Option<Step> {
    let leg = state.packet.leg();
    if is_prober(cluster, leg.src.ip()) {
        return None;
    }
    let asked = asked(state)?;
    let vip = state.legs.last().filter(|(_, sent)| sent.src == leg.src).map(|(vip, _)| *vip);
    let stop = match admission(cluster, groups, asked, (leg.src.ip(), vip)) {
        Admission::Passes => return None,
        Admission::Denied(stop) => stop,
        Admission::Depends(assumption) => {
            add_missing(&mut state.supposed, [assumption]);
            return None;
        }
    };
    let from = if cloud::stands_for_balancer(leg.src.ip()) {
        "the load balancer".to_owned()
    } else if stands_for_public_address(leg.src.ip()) {
        "the node's public address, which is not given".to_owned()
    } else {
        leg.src.ip().to_string()
    };
    let what = format!("{} port {} from {from}", stop.what, leg.dst.port());
    Some(stop.step(what, leg))
}

/// Returns whether the cloud's own health checks come from an address: security groups always allow
/// those in.
fn is_prober(cluster: &Cluster, address: IpAddr) -> bool {
    let model = cloud::model(cluster);
    model.is_some_and(|model| model.probe_ranges().prober(Family::of(address)) == address)
}

/// Whether security groups let in a packet.
enum Admission {
    Passes,
    Denied(Stopped),
    /// A rule that is not given decides.
    Depends(Assumption),
}

/// Returns whether groups let in a packet from a source; `vip` is the address at which clients call the
/// load balancer that sent it, if one did.
fn admission(
    cluster: &Cluster,
    groups: &[Text],
    asked: (IpProtocol, u16),
    (source, vip): (IpAddr, Option<IpAddr>),
) -> Admission {
    // Which rule lets in the load balancer, if any, is not given with its address.
    if cloud::stands_for_balancer(source) {
        return admission_of_balancer(cluster, groups, asked, (source, vip));
    }
    let Some(probers) = cloud::probers_at(source) else {
        return match judge(cluster, groups, asked, |group| &group.inbound, source) {
            Some(stop) => Admission::Denied(stop),
            None => Admission::Passes,
        };
    };
    let (number, port) = asked;
    let known = groups.iter().filter_map(|name| cluster.security_groups.get(name));
    let mut rules = known.flat_map(|group| &group.inbound);
    match rules.find(|rule| rule.matches(source, spoken(number), port)) {
        Some(rule) if rule.accept => Admission::Passes,
        Some(rule) => Admission::Denied(Stopped::new(groups, "drops", number, &rule.origin)),
        None if probers.are_let_in => Admission::Passes,
        // The cloud's controller may add a rule.
        None => {
            let stand_in = cloud::stand_in(Family::of(source));
            admission_of_balancer(cluster, groups, asked, (stand_in, None))
        }
    }
}

/// Returns whether groups let in a load balancer whose own address is not given. One that is called at a
/// private address has its own in the same network.
fn admission_of_balancer(
    cluster: &Cluster,
    groups: &[Text],
    (number, port): (IpProtocol, u16),
    (stand_in, vip): (IpAddr, Option<IpAddr>),
) -> Admission {
    let protocol = spoken(number);
    let known: Vec<_> =
        groups.iter().filter_map(|name| cluster.security_groups.get(name)).collect();
    let Some(last) = known.last().filter(|_| known.len() == groups.len()) else {
        return Admission::Passes;
    };
    let mut ranges: Vec<String> = Vec::new();
    let vpc = &cluster.network.vpc_cidrs.value;
    let vpc = vpc.iter().filter(|net| Family::of(net.addr()) == Family::of(stand_in));
    let holds_vpc =
        |net: IpNet| vpc.clone().next().is_some() && vpc.clone().all(|own| net.contains(own));
    let private = vip.filter(|vip| is_private(*vip));
    let is_around = |net: IpNet| private.is_some_and(|vip| net.contains(&vip) || holds_vpc(net));
    let (mut keeps_out_some, mut is_shut, mut is_for_vpc) = (false, false, false);
    let all = known.iter().flat_map(|group| &group.inbound);
    for rule in all.filter(|rule| rule.is_about(protocol, port)) {
        match rule.peer.filter(|net| net.prefix_len() > 0) {
            None if rule.accept && !keeps_out_some => return Admission::Passes,
            None => break,
            Some(net) if is_of(net, stand_in) && rule.accept => return Admission::Passes,
            // A rule of another group may accept every address.
            Some(net) if is_of(net, stand_in) => is_shut = true,
            Some(net) if rule.accept && !keeps_out_some && is_around(net) => {
                return Admission::Passes;
            }
            Some(net) if rule.accept => {
                is_for_vpc |= !keeps_out_some && holds_vpc(net);
                ranges.push(net.to_string());
            }
            // That some addresses are kept out says nothing about the load balancer's.
            Some(_) => keeps_out_some = true,
        }
    }
    // Most load balancers have addresses of the VPC.
    if is_shut && !is_for_vpc {
        let why = "has no rule that accepts";
        return Admission::Denied(Stopped::new(groups, why, number, &last.origin));
    }
    let (names, protocol) = (groups.join(", "), spoken_name(number));
    let let_in = if ranges.is_empty() { "no address".to_owned() } else { ranges.join(", ") };
    Admission::Depends(Assumption {
        subject: format!("security group {names} and the load balancer").into(),
        assumed: format!("it lets the load balancer in at {protocol} port {port}").into(),
        because: format!(
            "the load balancer's own address is not given; of what is stated, the group lets in \
             {let_in} there"
        )
        .into(),
        settle: "look for a rule with the load balancer's subnets or its own group; a rule in Facts with \
                 peer: load-balancers states it"
            .into(),
    })
}

/// Returns whether the internet routes no packets to an address.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(ip) => ip.is_private(),
        IpAddr::V6(ip) => ip.is_unique_local(),
    }
}

/// Returns whether a rule is about the address that stands for load balancers' own.
fn is_of(net: IpNet, stand_in: IpAddr) -> bool {
    net.addr() == stand_in && net.prefix_len() == net.max_prefix_len()
}

/// Returns whether it is not given what the nodes' groups do with load balancers whose own address is
/// not given either.
pub(crate) fn are_open_to_balancers(cluster: &Cluster) -> bool {
    let names = cluster.nodes.values().filter_map(|node| node.security_groups.as_ref()).flatten();
    let mut groups = names.filter_map(|name| cluster.security_groups.get(name));
    let is_settled = |group: &SecurityGroup| {
        group.inbound.iter().any(|rule| match rule.peer {
            None => rule.accept && rule.protocol.is_none() && rule.ports.is_none(),
            Some(net) => Family::BOTH.iter().any(|own| is_of(net, cloud::stand_in(*own))),
        })
    };
    // The sources of the modelled cloud's load balancers are known.
    cloud::model(cluster).is_none()
        && groups.any(|group| !is_settled(group))
        && !are_opened_for_all(cluster)
}

/// Returns whether controllers add the rules for all load balancers to the nodes' groups.
fn are_opened_for_all(cluster: &Cluster) -> bool {
    let is_of_cloud = |ingress: &Ingress| ingress.product.is_some();
    if !cluster.load_balancers.is_empty() || cluster.ingresses.values().any(is_of_cloud) {
        return false;
    }
    let all = cluster.services.values();
    let mut balanced = all.filter(|service| service.kind == ServiceKind::LoadBalancer);
    balanced.all(|service| match cloud::maker_of(service, &cluster.provider) {
        Maker::Product(product, _) => product.opens_groups_of_nodes(service),
        _ => false,
    })
}

/// Makes the groups let in no load balancer by rules that are not given.
pub(crate) fn shut_to_balancers(cluster: &mut Cluster) {
    for group in cluster.security_groups.values_mut() {
        let origin = group.origin.clone();
        group.inbound.extend(Family::BOTH.map(|family| SecurityRule {
            accept: false,
            protocol: None,
            ports: None,
            peer: Some(IpNet::from(cloud::stand_in(family))),
            origin: origin.clone(),
        }));
    }
}

fn spoken(number: IpProtocol) -> Option<Protocol> {
    let all = [Protocol::Tcp, Protocol::Udp, Protocol::Sctp];
    all.into_iter().find(|protocol| IpProtocol::from(*protocol) == number)
}

fn spoken_name(number: IpProtocol) -> String {
    spoken(number).map_or_else(|| number.to_string(), |protocol| protocol.to_string())
}

/// Returns the drop of an outbound packet by security groups, if they deny it. Groups without
/// outbound rules allow everything.
pub(super) fn denied_outbound(
    cluster: &Cluster,
    groups: &[Text],
    state: &PacketState,
) -> Option<Step> {
    let leg = state.packet.leg();
    let asked = asked(state)?;
    let stop = judge_outbound(cluster, groups, asked, leg.dst.ip())?;
    let what = format!("{} to {}", stop.what, leg.dst);
    Some(stop.step(what, leg))
}

/// Returns the drop of what a load balancer sends by its own groups, if they deny it. Those of the
/// modelled cloud judge only what clients send.
pub(crate) fn denied_by_own(
    cluster: &Cluster,
    groups: &[Text],
    state: &PacketState,
) -> Option<Step> {
    match cloud::model(cluster) {
        Some(_) => None,
        None => denied_outbound(cluster, groups, state),
    }
}

/// Returns the drop by security groups of packets that one node encapsulates for another, if they
/// deny it: they see what is sent from node to node, and each direction begins anew. If a plugin
/// has several encapsulations, one that passes is enough.
pub(super) fn blocked_tunnel(cluster: &Cluster, from: &Node, to: &Node, leg: Leg) -> Option<Step> {
    let family = from.internal_ips.first().map(|ip| Family::of(*ip))?;
    let (src, dst) = (from.address(family)?, to.address(family)?);
    let (from, to) = (cluster.nodes.get(&from.name)?, cluster.nodes.get(&to.name)?);
    let stops = pod_network::wrappings(cluster.network.plugin.value).iter().map(|way| {
        let asked = (IpProtocol(way.protocol), way.port);
        let out = judge_outbound(cluster, groups_of(from), asked, dst);
        out.or_else(|| judge(cluster, groups_of(to), asked, |group| &group.inbound, src))
    });
    let stop = stops.collect::<Option<Vec<_>>>()?.into_iter().next()?;
    let what = format!("{}, which wraps what goes from {src} to {dst}", stop.what);
    Some(stop.step(what, leg))
}

fn groups_of(node: &Node) -> &[Text] {
    node.security_groups.as_deref().unwrap_or_default()
}

fn judge_outbound(
    cluster: &Cluster,
    groups: &[Text],
    asked: (IpProtocol, u16),
    peer: IpAddr,
) -> Option<Stopped> {
    let mut known = groups.iter().filter_map(|name| cluster.security_groups.get(name));
    if known.all(|group| group.outbound.is_empty()) {
        None
    } else {
        judge(cluster, groups, asked, |group| &group.outbound, peer)
    }
}

/// Returns why the groups deny a packet. The rules of several groups add up, in their order.
fn judge(
    cluster: &Cluster,
    groups: &[Text],
    (number, port): (IpProtocol, u16),
    rules: impl Fn(&SecurityGroup) -> &[SecurityRule],
    peer: IpAddr,
) -> Option<Stopped> {
    let protocol = spoken(number);
    let known: Vec<_> =
        groups.iter().filter_map(|name| cluster.security_groups.get(name)).collect();
    // An unknown group is assumed to allow everything.
    let last = known.last().filter(|_| known.len() == groups.len())?;
    let rule =
        known.iter().flat_map(|group| rules(group)).find(|rule| rule.matches(peer, protocol, port));
    let (why, origin) = match rule {
        Some(rule) if rule.accept => return None,
        Some(rule) => ("drops", &rule.origin),
        None => ("has no rule that accepts", &last.origin),
    };
    Some(Stopped::new(groups, why, number, origin))
}

/// Returns the protocol and port that security groups judge. The groups are stateful: an answer
/// passes wherever its request did.
fn asked(state: &PacketState) -> Option<(IpProtocol, u16)> {
    let is_judged = state.direction != Direction::Back;
    is_judged.then(|| (state.packet.connection_protocol(), state.packet.leg().dst.port()))
}

/// The reason why a security group stops a packet.
struct Stopped {
    what: String,
    by: Evidence,
}

impl Stopped {
    fn new(groups: &[Text], why: &str, number: IpProtocol, origin: &Origin) -> Self {
        let names = groups.join(", ");
        Self {
            what: format!("security group {names} {why} {}", spoken_name(number)),
            by: Evidence::SecurityGroups { names: groups.into(), origin: origin.clone() },
        }
    }

    fn step(self, what: String, leg: Leg) -> Step {
        Step::new(StepKind::Drop, what, self.by).seeing(leg)
    }
}
