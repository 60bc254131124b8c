//! NetworkPolicies: whether a packet that arrived was allowed to leave its pod, and to enter the
//! other.
//!
//! Policies see packets beside the pods: what a pod sends with the address that its own node's rules
//! made of the called one, and what it gets with the source that the packet has by then. Where rules
//! replaced the source, it is not known which one the network plugin goes by.

use std::net::{IpAddr, Ipv4Addr};

use uturn_model::network_policy::verdict::{CalledPort, Denial, Doubt, Lack, PolicyVerdict, Side};
use uturn_model::network_policy::{NetworkPolicies, PolicyPeer, Way};
use uturn_model::route::{Leg, Place, Step, StepKind};
use uturn_model::{Assumption, Evidence, IpNet, Ipv4Net, Mechanism, Outcome, Pod, Protocol};
use uturn_netfilter::IpProtocol;

use crate::add_missing::add_missing;
use crate::engine::walk::Walk;
use crate::packet::{Arrival, PacketState, Peer, Refused, Stop};

/// The range for documentation, of which addresses are made up.
const MADE_UP: (Ipv4Addr, u8) = (Ipv4Addr::new(203, 0, 113, 0), 24);

/// Returns what becomes of a packet that a peer sent with these addresses and that arrived, if
/// policies are enforced.
pub(super) fn applied<'w>(
    walk: &'w Walk<'_, '_>,
    from: Peer<'w>,
    sent: Leg,
    arrival: Arrival<'w>,
) -> Arrival<'w> {
    let policies = &walk.cluster.network_policies;
    let rejects = policies.enforcement.value.stops();
    let (Some(rejects), false, Stop::At(at)) = (rejects, policies.is_empty(), &arrival.stop) else {
        return arrival;
    };
    let (at, mut state) = (*at, arrival.state);
    let leg = state.packet.leg();
    let Some(protocol) = spoken(state.packet.protocol()) else {
        return Arrival { state, stop: Stop::At(at) };
    };
    let leaving = seen_by_sender(walk, from, sent, &state);
    let judged = [
        of_pod(walk, from).map(|pod| {
            let to = side_at(walk, at, leaving.dst.ip());
            let called = (protocol, leaving.dst.port());
            (pod, policies.egress(Side::Pod(pod, sent.src.ip()), to, called), (to, called, leaving))
        }),
        of_pod(walk, at).map(|pod| {
            let (side, called) = (caller(from, pod, sent, leg), (protocol, leg.dst.port()));
            let own = Side::Pod(pod, leg.dst.ip());
            let verdict = match side {
                // What a pod sends to its own address does not leave it.
                Side::Pod(other, _) if other.name == pod.name && sent.dst != leg.dst => {
                    policies.itself(pod, leg.dst.ip(), called, rejects)
                }
                side => policies.ingress(own, side, called),
            };
            (pod, verdict, (side, called, leg))
        }),
    ];
    for (pod, verdict, (other, called, leg)) in judged.into_iter().flatten() {
        match verdict {
            PolicyVerdict::Allowed => {}
            PolicyVerdict::Depends(doubt) => add_missing(&mut state.supposed, [assumed(&doubt)]),
            PolicyVerdict::Denied(denial) => {
                let opened = rejects.then(|| opened_otherwise(policies, &denial, from, at, &state));
                if let Some(doubt) = opened.flatten() {
                    add_missing(&mut state.supposed, [assumed(&doubt)]);
                    continue;
                }
                let why = reason(&denial, pod, other, called);
                return stopped(state, from, pod, (&denial, why, leg), rejects);
            }
        }
    }
    Arrival { state, stop: Stop::At(at) }
}

/// Returns the policy by which kube-router, which is what rejects calls, allows a denied one between two
/// pods.
fn opened_otherwise<'w>(
    policies: &'w NetworkPolicies,
    denial: &Denial<'_>,
    from: Peer<'_>,
    at: Peer<'_>,
    state: &PacketState,
) -> Option<Doubt<'w>> {
    let (Peer::Pod(sender), Peer::Pod(called)) = (from, at) else { return None };
    let leg = state.packet.leg();
    let port = (spoken(state.packet.protocol())?, leg.dst.port());
    let (from, to) = (Side::Pod(sender, leg.src.ip()), Side::Pod(called, leg.dst.ip()));
    policies.opened_otherwise(denial.way, from, to, port)
}

/// Returns the pod whose policies apply to a peer. Rules of a captured node have the plugin's own.
fn of_pod<'w>(walk: &Walk<'_, '_>, peer: Peer<'w>) -> Option<&'w Pod> {
    let Peer::Pod(pod) = peer else { return None };
    walk.cluster.network_policies.are_judged_for(pod).then_some(pod)
}

fn spoken(number: IpProtocol) -> Option<Protocol> {
    let all = [Protocol::Tcp, Protocol::Udp, Protocol::Sctp];
    all.into_iter().find(|protocol| IpProtocol::from(*protocol) == number)
}

/// Returns the addresses of the packet as the sender's own node made them.
fn seen_by_sender(walk: &Walk<'_, '_>, from: Peer<'_>, sent: Leg, state: &PacketState) -> Leg {
    let leg = state.packet.leg();
    if walk.cluster.proxy.replaced_by().is_some() {
        return Leg { src: sent.src, dst: leg.dst };
    }
    let own = from.node();
    let known =
        state.nodes.iter().find(|(node, known)| Some(node) == own && known.original == sent);
    let dst = match known {
        Some((_, known)) => match &known.scheduled {
            Some(scheduled) => scheduled.real,
            None => known.reply.src,
        },
        None => sent.dst,
    };
    Leg { src: sent.src, dst }
}

/// Returns the side that a pod connects to.
fn side_at<'w>(walk: &'w Walk<'_, '_>, at: Peer<'w>, ip: IpAddr) -> Side<'w> {
    if let Some(pod) = walk.engine.pod_at(ip) {
        return Side::Pod(pod, ip);
    }
    match (walk.engine.node_at(ip), at) {
        (Some(node), Peer::Host(at, pod)) if at.name == node.name => {
            Side::Node(&node.name, ip, pod)
        }
        (Some(node), _) => Side::Node(&node.name, ip, None),
        (None, _) => Side::Outside(Some(ip).filter(|ip| !is_made_up(*ip))),
    }
}

/// Returns the side that connects to a pod, as the packet shows it by then.
fn caller<'w>(from: Peer<'w>, called: &Pod, sent: Leg, leg: Leg) -> Side<'w> {
    match from {
        // A pod that calls itself, with whatever address.
        Peer::Pod(pod) if pod.name == called.name => Side::Pod(pod, leg.src.ip()),
        Peer::Host(node, pod) => Side::Node(&node.name, leg.src.ip(), pod),
        _ if leg.src.ip() != sent.src.ip() => Side::Hidden,
        Peer::Pod(pod) => Side::Pod(pod, leg.src.ip()),
        // Which addresses clients and load balancers have is not given.
        Peer::Balancer(_) | Peer::Outside => Side::Outside(None),
    }
}

fn is_made_up(ip: IpAddr) -> bool {
    let (base, length) = MADE_UP;
    Ipv4Net::new(base, length).is_ok_and(|net| IpNet::from(net).contains(&ip))
}

/// Ends a packet that policies do not allow, beside the pod that they restrict.
fn stopped<'w>(
    mut state: PacketState,
    from: Peer<'w>,
    pod: &Pod,
    (denial, why, leg): (&Denial<'_>, String, Leg),
    rejects: bool,
) -> Arrival<'w> {
    let place = match &pod.node {
        Some(node) => Place::Node(node.clone()),
        None => Place::Pod(pod.name.clone()),
    };
    if denial.way == Way::Egress {
        // The packet never left the pod's node.
        let is_sent = |step: &Step| {
            step.kind == StepKind::Send && step.after.map(|sent| sent.src) == Some(leg.src)
        };
        let sent = state.hops.iter().rposition(|hop| hop.steps.iter().any(is_sent));
        if let Some(sent) = sent {
            let here = state.hops[sent..].iter().position(|hop| hop.place == place);
            state.hops.truncate(sent + here.unwrap_or(0) + 1);
        }
    }
    let by = Evidence::object(denial.policy.object(), denial.policy.origin.clone());
    let kind = if rejects { StepKind::Reject } else { StepKind::Drop };
    state.note(place, Step::new(kind, why, by).seeing(leg));
    let why = Mechanism::NetworkPolicy;
    let stop = if rejects {
        // kube-router's ICMP error has no rule to pass but the node's own.
        Stop::Refused(Refused { why, by: from, outcome: Outcome::Refused, notice: None })
    } else {
        Stop::Lost(why)
    };
    Arrival { state, stop }
}

/// Describes why policies do not allow a connection.
fn reason(denial: &Denial<'_>, pod: &Pod, other: Side<'_>, (protocol, port): CalledPort) -> String {
    let Denial { policy, others, way, lack } = *denial;
    let others = match others {
        0 => String::new(),
        1 => " and another".to_owned(),
        many => format!(" and {many} more"),
    };
    let what = match way {
        Way::Ingress => format!("nothing lets this in to pod/{}", pod.name),
        Way::Egress => format!("nothing lets pod/{} call this", pod.name),
    };
    let whom = match other {
        Side::Pod(other, _) => format!("pod/{}", other.name),
        Side::Node(_, _, Some(other)) => format!("pod/{}", other.name),
        Side::Node(node, ip, None) => format!("node {node} ({ip})"),
        Side::Outside(Some(ip)) => ip.to_string(),
        Side::Outside(None) => "what is outside".to_owned(),
        Side::Hidden => "this caller".to_owned(),
    };
    let peers = way.peers();
    let lack = match lack {
        Lack::Rules => format!("has no {} rules", way.field()),
        Lack::Peer | Lack::Labels => format!("has no rule with {whom} in its `{peers}`"),
        Lack::PeerAtPort => {
            format!("has no rule for {protocol} port {port} with {whom} in its `{peers}`")
        }
        Lack::Namespace => {
            let namespace = &policy.name.namespace;
            let is_alone = |peer: &PolicyPeer| {
                matches!(peer, PolicyPeer::Pods { namespaces: None, pods: Some(_) })
            };
            let rules = policy.rules(way).unwrap_or_default();
            let mut peers = rules.iter().flat_map(|rule| &rule.peers);
            if peers.any(is_alone) {
                format!(
                    "has {whom} by a podSelector alone, which means pods of namespace {namespace}"
                )
            } else {
                format!("has no rule with the namespace of {whom}")
            }
        }
        Lack::Port => format!("has no rule with {protocol} port {port} for {whom}"),
    };
    format!("{what}: NetworkPolicy {}{others} {lack}", policy.name)
}

fn assumed(doubt: &Doubt<'_>) -> Assumption {
    let (field, name) = (doubt.way.field(), &doubt.policy.name);
    Assumption {
        subject: format!("{field} of NetworkPolicy {name}").into(),
        assumed: "it allows the call".into(),
        because: doubt.why.as_str().into(),
        settle: "look whether the call arrives".into(),
    }
}
