//! The network between the nodes: which node or which load balancer gets a packet.
//!
//! A packet that a load balancer sent out with the client's address kept has its reply return to
//! the load balancer when the reply crosses the fabric, and only then.

use uturn_model::addr::is_private;
use uturn_model::known::Basis;
use uturn_model::lb::Scope;
use uturn_model::route::{Direction, Leg, Place, Step, StepKind};
use uturn_model::{Evidence, FabricPart, Family, Mechanism, Node};
use uturn_netfilter::Entry;

use super::at_node;
use crate::engine::walk::Walk;
use crate::error::WalkError;
use crate::journey::{
    addresses, frontend, interface, lost_node, on_arrival, public_address, security_groups, tunnel,
};
use crate::packet::{Arrival, PacketState, Peer, Stop, lost};
use crate::resolve::any_client;
use crate::{services, unjudged};

/// Follows a packet that is in the VPC, and came out of a node if one is given.
pub(super) fn enter<'w>(
    walk: &'w Walk<'_, '_>,
    out_of: Option<&'w Node>,
    mut state: PacketState,
) -> Result<Vec<Arrival<'w>>, WalkError> {
    let leg = state.packet.leg();
    let groups = out_of.and_then(|node| node.security_groups.as_deref());
    if let Some(step) =
        groups.and_then(|groups| security_groups::denied_outbound(walk.cluster, groups, &state))
    {
        state.note(Place::Fabric, step);
        return Ok(vec![lost(state, Mechanism::SecurityGroup)]);
    }
    let answered = state.legs.iter().find(|(_, sent)| sent.src == leg.dst && sent.dst == leg.src);
    if let Some(balancer) = answered.and_then(|(sender, _)| walk.engine.balancer_at(*sender)) {
        return Ok(vec![Arrival { state, stop: Stop::At(Peer::Balancer(balancer)) }]);
    }
    public_address::leave_by_public_address(&mut state);
    let mut dst = state.packet.dst;
    if let Some(name) = state.handed_to.take() {
        return match walk.cluster.nodes.get(&name) {
            Some(node) if lost_node::takes(node, &state) => Ok(vec![lost_node::end(node, state)]),
            // The program that serves Services in place of kube-proxy knows the address.
            Some(node) if walk.cluster.proxy.replaced_by().is_some() => {
                on_arrival::handed_over(walk, node, state)
            }
            // The packet is sent to the node's own address, whatever its destination.
            Some(node) => {
                interface::at_interface(walk, node, &walk.engine.runtime(&name)?.uplink, state)
            }
            None => Ok(vec![lost(state, Mechanism::NoRoute)]),
        };
    }
    walk.check_destination(state.packet.leg().dst)?;
    if let Some(balancer) = walk.engine.balancer_at(dst) {
        if state.direction == Direction::Out && state.legs.iter().any(|(sender, _)| *sender == dst)
        {
            let protocol = state.packet.connection_protocol();
            // A rule has the address, but no endpoint to send to.
            let elsewhere = out_of.and_then(|node| {
                let service = services::served_elsewhere(walk.cluster, node, leg.dst, protocol)?;
                let lacks = services::lacks_endpoints(walk.cluster, node, leg.dst, protocol);
                lacks.then_some((node, service))
            });
            let (why, mechanism) = match elsewhere {
                Some((node, service)) => (
                    format!(
                        "{} has policy Local, and kube-proxy on {} knows no endpoint there: it goes \
                         back where it came from; {}",
                        service.object(),
                        node.name,
                        services::places(walk.cluster, service)
                    ),
                    Mechanism::NoEndpoint,
                ),
                None => (
                    format!("no rule on the node has {dst}: it goes back where it came from"),
                    Mechanism::VipUnknown,
                ),
            };
            let by = Evidence::fabric(FabricPart::Routes);
            state.note(Place::Fabric, Step::new(StepKind::Drop, why, by).seeing(leg));
            return Ok(vec![lost(state, mechanism)]);
        }
        if out_of.is_none() && balancer.scope == Scope::Private && is_of_internet(walk, &state) {
            let why =
                format!("{dst} is a private address: no client on the internet has a route to it");
            let by = Evidence::fabric(FabricPart::Routes);
            state.note(Place::Fabric, Step::new(StepKind::Drop, why, by).seeing(leg));
            return Ok(vec![lost(state, Mechanism::NoRoute)]);
        }
        if balancer.scope == Scope::Public {
            if let Some(step) = out_of.and_then(|node| stays_inside(node, leg)) {
                state.note(Place::Fabric, step);
                return Ok(vec![lost(state, Mechanism::NoBandwidth)]);
            }
            public_address::go_public(walk.engine, &mut state);
        }
        return Ok(vec![Arrival { state, stop: Stop::At(Peer::Balancer(balancer)) }]);
    }
    if let Some(unjudged) = unjudged::balancer(walk.engine, dst) {
        return Ok(vec![unjudged.arrival(state)]);
    }
    if let Some((node, own)) = public_address::behind_public_address(walk.engine, dst) {
        if state.direction == Direction::Back {
            let why = "the address translation knows no connection with these addresses";
            let by = Evidence::fabric(FabricPart::Translation);
            state.note(Place::Fabric, Step::new(StepKind::Drop, why, by).seeing(leg));
            return Ok(vec![lost(state, Mechanism::AsymmetricReturn)]);
        }
        if let Some(step) = out_of.and_then(|node| stays_inside(node, leg)) {
            state.note(Place::Fabric, step);
            return Ok(vec![lost(state, Mechanism::NoBandwidth)]);
        }
        public_address::enter_by_public_address(walk.engine, node, own, &mut state);
        dst = own;
    }
    if let Some(node) = walk.engine.node_at(dst).filter(|node| lost_node::takes(node, &state)) {
        return Ok(vec![lost_node::end(node, state)]);
    }
    if state.direction == Direction::Out
        && let Some(node) = walk.engine.node_at(dst)
        && let Some(arrivals) = on_arrival::serve(walk, node, &state)?
    {
        return Ok(arrivals);
    }
    if state.direction == Direction::Out
        && let Some(unjudged) = frontend::unjudged(
            walk.engine,
            state.packet.leg().dst,
            state.packet.connection_protocol(),
        )
    {
        return Ok(vec![unjudged.arrival(state)]);
    }
    let arrivals = match addresses::node_towards(walk.engine, dst) {
        Some(node)
            if node.routed == Some(false) && addresses::needs_route(walk.cluster, node, dst) =>
        {
            let why = format!("the VPC has no route to the pods of node {}", node.name);
            let by =
                Evidence::Fabric { part: FabricPart::Routes, origin: Some(node.origin.clone()) };
            state.note(Place::Fabric, Step::new(StepKind::Drop, why, by).seeing(leg));
            vec![lost(state, Mechanism::CrossNode)]
        }
        Some(node) if addresses::is_own_pod(walk.engine, out_of, node, dst)? => {
            let why = "the node has no route to its own pod: no other host has one";
            let by = Evidence::fabric(FabricPart::PodNetwork);
            state.note(Place::Fabric, Step::new(StepKind::Drop, why, by).seeing(leg));
            vec![lost(state, Mechanism::NoRoute)]
        }
        Some(node) if addresses::is_hidden(walk.cluster, node, dst) => {
            let why = "the network around the nodes is not told of pods' addresses";
            let by = Evidence::fabric(FabricPart::PodNetwork);
            let transport = walk.cluster.network.transport_of(Family::of(dst));
            if let Basis::Stated(_) = transport.basis {
                state.note(Place::Fabric, Step::new(StepKind::Drop, why, by).seeing(leg));
                return Ok(vec![lost(state, Mechanism::NoRoute)]);
            }
            state.note(Place::Fabric, Step::new(StepKind::Unknown, why, by).seeing(leg));
            vec![Arrival { state, stop: Stop::Unknown(Mechanism::NotModelled) }]
        }
        Some(node) => interface::at_card(walk, node, state)?,
        None if addresses::is_cluster_address(walk.cluster, dst) => {
            let protocol = state.packet.connection_protocol();
            let has_port = services::has_port(walk.cluster, leg.dst, protocol);
            let (why, mechanism) = match (has_port, out_of) {
                // Old releases reject only calls of the node itself.
                (true, Some(node))
                    if !services::lacks_rules(
                        walk.cluster,
                        Peer::Host(node, None),
                        leg.dst,
                        protocol,
                    ) && services::lacks_endpoints(walk.cluster, node, leg.dst, protocol) =>
                {
                    (
                        "it has no endpoint, and no rule on the node rejects it",
                        Mechanism::NoEndpoint,
                    )
                }
                (true, Some(_)) => ("only rules on a node know it", Mechanism::RuleMissing),
                (true, None) => {
                    ("only nodes know it, and it is called from outside", Mechanism::NoRoute)
                }
                (false, _) => ("it has no such port, so no rule knew it", Mechanism::WrongPort),
            };
            let step = Step::new(
                StepKind::Drop,
                format!("{} is a Service's address: {why}", leg.dst),
                Evidence::fabric(FabricPart::Routes),
            );
            state.note(Place::Fabric, step);
            vec![lost(state, mechanism)]
        }
        // The client may be in the network around the nodes.
        None if state.direction == Direction::Back
            && state.outside == Some(dst)
            && addresses::is_inside(walk.cluster, dst) =>
        {
            let why = "goes to the host that asked, in the same network";
            let step = Step::new(StepKind::Route, why, Evidence::fabric(FabricPart::Routes));
            state.note(Place::Fabric, step.seeing(state.packet.leg()));
            vec![Arrival { state, stop: Stop::At(Peer::Outside) }]
        }
        None if state.direction == Direction::Out
            && let Some(service) = addresses::has_external_ip(walk.cluster, dst) =>
        {
            let why = format!(
                "{dst} is an external IP of {}: which node the network brings it to is not given",
                service.object()
            );
            let by = Evidence::object(service.object(), service.origin.clone());
            state.note(Place::Fabric, Step::new(StepKind::Unknown, why, by).seeing(leg));
            return Ok(vec![Arrival { state, stop: Stop::Unknown(Mechanism::NotGiven) }]);
        }
        None if addresses::is_of_missing_pod(walk.cluster, dst) => {
            vec![unknown_pod(Place::Fabric, state)]
        }
        None if addresses::is_inside(walk.cluster, dst)
            && !addresses::is_endpoint(walk.cluster, dst) =>
        {
            let (why, by) = addresses::nothing_at(walk.cluster, dst);
            if !addresses::is_known_unused(walk.cluster, dst) {
                let why = format!("{why} that is given: which host has it is not known");
                state.note(Place::Fabric, Step::new(StepKind::Unknown, why, by).seeing(leg));
                return Ok(vec![Arrival { state, stop: Stop::Unknown(Mechanism::NotGiven) }]);
            }
            state.note(Place::Fabric, Step::new(StepKind::Drop, why, by).seeing(leg));
            vec![lost(state, Mechanism::NoRoute)]
        }
        None => {
            if let Some(step) = out_of.and_then(|node| stays_inside(node, leg)) {
                state.note(Place::Fabric, step);
                return Ok(vec![lost(state, Mechanism::NoBandwidth)]);
            }
            let step = Step::new(
                StepKind::Route,
                "leaves the cluster's network",
                Evidence::fabric(FabricPart::Routes),
            );
            state.note(Place::Fabric, step.seeing(state.packet.leg()));
            vec![Arrival { state, stop: Stop::At(Peer::Outside) }]
        }
    };
    Ok(arrivals)
}

/// Follows a packet that leaves a node by an interface that leads neither to one of its pods nor to
/// the fabric. If the packet is for another node's pod, the interface is a tunnel, which carries it
/// there unchanged.
pub(super) fn leave_for_pods<'w>(
    walk: &'w Walk<'_, '_>,
    from: &'w Node,
    mut state: PacketState,
) -> Result<Vec<Arrival<'w>>, WalkError> {
    let leg = state.packet.leg();
    walk.check_destination(leg.dst)?;
    let target =
        addresses::node_towards(walk.engine, leg.dst.ip()).filter(|node| node.name != from.name);
    if let Some(node) = target {
        let step = || {
            let why = format!("goes through the tunnel to node {}", node.name);
            Step::new(StepKind::Route, why, Evidence::fabric(FabricPart::PodNetwork))
        };
        if let Some(step) = security_groups::blocked_tunnel(walk.cluster, from, node, leg) {
            state.note(Place::Fabric, step);
            return Ok(vec![lost(state, Mechanism::SecurityGroup)]);
        }
        if let Some((place, step)) = tunnel::stopped(walk, from, node, &mut state)? {
            state.note(place, step);
            return Ok(vec![lost(state, Mechanism::Firewall)]);
        }
        state.note_unless_brief(|| Place::Fabric, || step().seeing(leg));
        let runtime = walk.engine.runtime(&node.name)?;
        let link = runtime.tunnel_from(walk.cluster, from, leg.src.ip());
        return at_node(walk, node, &Entry::Interface(link), state);
    }
    if addresses::is_of_missing_pod(walk.cluster, leg.dst.ip()) {
        return Ok(vec![unknown_pod(Place::Node(from.name.clone()), state)]);
    }
    if addresses::is_endpoint(walk.cluster, leg.dst.ip()) {
        return Ok(vec![Arrival { state, stop: Stop::At(Peer::Outside) }]);
    }
    let is_given = walk.cluster.extent.pods;
    let mechanism = if is_given { Mechanism::NoEndpoint } else { Mechanism::NotGiven };
    let why = format!("no pod that is given has the address {}", leg.dst.ip());
    let kind = if is_given { StepKind::Drop } else { StepKind::Unknown };
    let by = Evidence::fabric(FabricPart::PodNetwork);
    state.note(Place::Node(from.name.clone()), Step::new(kind, why, by).seeing(leg));
    Ok(if is_given {
        vec![lost(state, mechanism)]
    } else {
        vec![Arrival { state, stop: Stop::Unknown(mechanism) }]
    })
}

/// Returns whether a packet comes from a client at a stated address of the internet, and goes to an
/// address that the internet does not route. The address that stands for any client says nothing.
fn is_of_internet(walk: &Walk<'_, '_>, state: &PacketState) -> bool {
    let leg = state.packet.leg();
    let (src, dst) = (leg.src.ip(), leg.dst.ip());
    state.direction == Direction::Out
        && state.outside == Some(src)
        && src != any_client(Family::of(src))
        && !is_private(src)
        && is_private(dst)
        && !addresses::is_inside(walk.cluster, src)
}

/// Returns the end of a packet to an endpoint that belongs to a pod which is not given.
fn unknown_pod<'a>(place: Place, mut state: PacketState) -> Arrival<'a> {
    let leg = state.packet.leg();
    let why = format!("which pod has the address {} is not given", leg.dst.ip());
    let by = Evidence::fabric(FabricPart::PodNetwork);
    state.note(place, Step::new(StepKind::Unknown, why, by).seeing(leg));
    Arrival { state, stop: Stop::Unknown(Mechanism::NotGiven) }
}

/// Returns the drop of a node's packet to the internet, if the node has no bandwidth there.
fn stays_inside(node: &Node, leg: Leg) -> Option<Step> {
    (node.public_bandwidth == Some(false)).then(|| {
        let why = format!("node {} has no bandwidth to the internet", node.name);
        let by = Evidence::object(node.object(), node.origin.clone());
        Step::new(StepKind::Drop, why, by).seeing(leg)
    })
}
