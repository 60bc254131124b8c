//! Security groups: which packets they allow into nodes and load balancers, and out of nodes.

use std::net::IpAddr;

use uturn_clouds::cloud;
use uturn_kubeproxy::pod_network;
use uturn_model::network::{SecurityGroup, SecurityRule};
use uturn_model::route::{Direction, Leg, Step, StepKind};
use uturn_model::{Assumption, Cluster, Evidence, Family, Node, Origin, Protocol, Text};
use uturn_netfilter::IpProtocol;

use crate::add_missing::add_missing;
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
    // Which rule lets in the load balancer, if any, is not given with its address.
    if cloud::stands_for_balancer(leg.src.ip()) {
        add_missing(&mut state.supposed, admission_of_balancer(cluster, groups, asked));
        return None;
    }
    let stop = judge(cluster, groups, asked, |group| &group.inbound, leg.src.ip())?;
    let what = format!("{} port {} from {}", stop.what, leg.dst.port(), leg.src.ip());
    Some(stop.step(what, leg))
}

/// Returns whether the cloud's own health checks come from an address: security groups always allow
/// those in.
fn is_prober(cluster: &Cluster, address: IpAddr) -> bool {
    let model = cloud::model(cluster);
    model.is_some_and(|model| model.probe_ranges().prober(Family::of(address)) == address)
}

/// Returns the assumption that groups let in a load balancer whose own address is not given. Returns
/// `None` if they let in every address at this port, or if the rules of one are not given.
fn admission_of_balancer(
    cluster: &Cluster,
    groups: &[Text],
    (number, port): (IpProtocol, u16),
) -> Option<Assumption> {
    let protocol = spoken(number);
    let known: Vec<_> =
        groups.iter().filter_map(|name| cluster.security_groups.get(name)).collect();
    if known.is_empty() || known.len() != groups.len() {
        return None;
    }
    let mut ranges: Vec<String> = Vec::new();
    let all = known.iter().flat_map(|group| &group.inbound);
    for rule in all.filter(|rule| rule.is_about(protocol, port)) {
        match rule.peer.filter(|net| net.prefix_len() > 0) {
            None if rule.accept && ranges.is_empty() => return None,
            None => break,
            Some(net) if rule.accept => ranges.push(net.to_string()),
            // That some addresses are kept out says nothing about the load balancer's.
            Some(_) => {}
        }
    }
    let (names, protocol) = (groups.join(", "), spoken_name(number));
    let let_in = if ranges.is_empty() { "no address".to_owned() } else { ranges.join(", ") };
    Some(Assumption {
        subject: format!("security group {names} and the load balancer").into(),
        assumed: format!("it lets the load balancer in at {protocol} port {port}").into(),
        because: format!(
            "the load balancer's own address is not given; of what is stated, the group lets in \
             {let_in} there"
        )
        .into(),
        settle: "look for a rule with the load balancer's subnets or its own group".into(),
    })
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
