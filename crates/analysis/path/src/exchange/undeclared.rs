//! Ports of pods that no container declares.
//!
//! Declaring a port is voluntary: a program may listen at any other port. Two objects show more
//! than the pod: a Service that leads to the port, and a headless Service that has the port as its
//! own and leads to another. A call of a headless Service is not translated, so its port has to be
//! the pods'.

use std::net::SocketAddr;

use uturn_model::pod::ContainerPort;
use uturn_model::service::ServicePort;
use uturn_model::{Assumption, Cluster, Evidence, Mechanism, Pod, Port, Service, gateway_ports};
use uturn_netfilter::IpProtocol;

use crate::engine::Engine;
use crate::exchange::listening;
use crate::packet::{PacketState, Peer};
use crate::services;

/// The information of a pod's object about one of its ports.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Declared {
    /// A container declares the port, or the kubelet probes it.
    Yes,
    /// The pod declares only other ports.
    Others,
    /// The pod declares no ports.
    Nothing,
}

pub(super) fn declared(pod: &Pod, to: SocketAddr, protocol: IpProtocol) -> Declared {
    let mut ports = pod.spec.ports().peekable();
    let same = |port: &ContainerPort| {
        port.port.number() == to.port() && IpProtocol::from(port.protocol) == protocol
    };
    // A program that answers the kubelet's probes listens.
    let is_probed = pod.ready
        && protocol == IpProtocol::TCP
        && Port::new(to.port()).is_some_and(|port| pod.spec.is_probed(port));
    match (is_probed, ports.peek().is_none()) {
        (true, _) => Declared::Yes,
        (false, true) => Declared::Nothing,
        (false, false) if ports.any(same) => Declared::Yes,
        (false, false) => Declared::Others,
    }
}

/// Returns the ports of a headless Service at which no pod listens, each with the port where its
/// pods listen.
pub(crate) fn dead_ports<'s>(
    engine: &Engine<'_>,
    service: &'s Service,
) -> Vec<(&'s ServicePort, Port)> {
    let slices = engine.cluster.endpoints.get(&service.name).map_or(&[][..], Vec::as_slice);
    let is_dead = |port: &&'s ServicePort| {
        let mut addresses = slices
            .iter()
            .flat_map(|slice| slice.endpoints.iter().map(|endpoint| endpoint.address))
            .peekable();
        addresses.peek().is_some()
            && addresses.all(|address| {
                let to = SocketAddr::new(address, port.port.number());
                let pod = engine.pod_at(address);
                pod.is_some_and(|pod| {
                    past_headless(engine, pod, to, port.protocol.into()).is_some()
                })
            })
    };
    let ports = service.ports.iter().filter(|_| service.headless).filter(is_dead);
    ports.filter_map(|port| Some((port, led_to(engine.cluster, service, port)?))).collect()
}

/// Returns the headless Service that has this port and leads to another one of the pod, if
/// everything that is known shows that the pod listens only there: every container declares ports,
/// none declares this one, and no Service leads to it.
pub(super) fn past_headless<'e>(
    engine: &'e Engine<'_>,
    pod: &Pod,
    to: SocketAddr,
    protocol: IpProtocol,
) -> Option<&'e Service> {
    let tells_all = pod.spec.containers.iter().all(|container| !container.ports.is_empty());
    if !tells_all
        || declared(pod, to, protocol) != Declared::Others
        || engine.is_service_endpoint(to)
    {
        return None;
    }
    engine.cluster.services.values().filter(|service| service.headless).find(|service| {
        let slices = engine.cluster.endpoints.get(&service.name).into_iter().flatten();
        let mut endpoints = slices.flat_map(|slice| &slice.endpoints);
        endpoints.any(|endpoint| endpoint.address == to.ip())
            && service.ports.iter().any(|port| {
                port.port.number() == to.port()
                    && IpProtocol::from(port.protocol) == protocol
                    && led_to(engine.cluster, service, port)
                        .is_some_and(|target| target != port.port)
            })
    })
}

/// An object because of which a call ends where no process listens.
pub(super) struct Misled {
    pub(super) why: String,
    pub(super) mechanism: Mechanism,
    pub(super) by: Evidence,
}

/// Returns the object that leads a call to a node where no process listens: a Service that took the
/// address of another machine, or a pod whose host port nothing forwards.
pub(super) fn misled(
    engine: &Engine<'_>,
    at: Peer<'_>,
    to: SocketAddr,
    protocol: IpProtocol,
) -> Option<Misled> {
    let Peer::Host(node, None) = at else { return None };
    let number = to.port();
    if let Some((why, by)) = services::taken_by(engine, node, to, protocol) {
        let why = format!("no process listens on port {number}: {why}");
        return Some(Misled { why, mechanism: Mechanism::AddressTaken, by });
    }
    let pod = listening::with_host_port_off(engine.cluster(), node, to, protocol)?;
    let object = pod.owner.clone().unwrap_or_else(|| pod.object());
    Some(Misled {
        why: format!(
            "no process listens on port {number}: {} asks for it as a host port, and nothing forwards \
             it",
            pod.object()
        ),
        mechanism: Mechanism::HostPortOff,
        by: Evidence::object(object, pod.origin.clone()),
    })
}

/// A call of a Service's external IP that the network translated to the address of a node: no rule
/// of kube-proxy has that address.
pub(super) struct Translated {
    pub(super) misled: Misled,
    pub(super) supposed: Assumption,
}

/// Returns what ends a call at a node's own address, if the network translated an external IP to it.
/// Nothing tells of a program of the node at the Service's port, so none is supposed to listen.
pub(super) fn translated(
    cluster: &Cluster,
    at: Peer<'_>,
    state: &PacketState,
    protocol: IpProtocol,
) -> Option<Translated> {
    let Peer::Host(node, None) = at else { return None };
    let to = state.packet.leg().dst;
    let sent = state.fabric.iter().find(|translation| translation.reply.src == to)?;
    let called = sent.original.dst;
    let service = cluster.services.values().find(|service| {
        service.external_ips.contains(&called.ip())
            && !service.has_address(to.ip())
            && service.ports.iter().any(|port| {
                port.port.number() == called.port() && IpProtocol::from(port.protocol) == protocol
            })
    })?;
    let why = format!(
        "no process listens on port {}: {} is an external IP of {}, and kube-proxy has a rule for it, \
         not for {}, to which the network translates it",
        to.port(),
        called.ip(),
        service.object(),
        to.ip()
    );
    let by = Evidence::object(service.object(), service.origin.clone());
    Some(Translated {
        misled: Misled { why, mechanism: Mechanism::AddressTaken, by },
        supposed: Assumption {
            subject: format!("port {} of node {}", to.port(), node.name).into(),
            assumed: "no process listens there".into(),
            because: "no object tells of one".into(),
            settle:
                "ss -ltn on the node shows it; if containers listen on what they declare only, \
                     state declaredPortsOnly in Facts"
                    .into(),
        },
    })
}

/// Explains why no process answers a call.
pub(super) fn why_none_listens(
    engine: &Engine<'_>,
    at: Peer<'_>,
    to: SocketAddr,
    protocol: IpProtocol,
) -> String {
    let service = match at {
        Peer::Pod(pod) | Peer::Host(_, Some(pod)) => past_headless(engine, pod, to, protocol),
        _ => None,
    };
    let number = to.port();
    let on_loopback = match at {
        Peer::Host(..) => services::called_on_loopback(engine.cluster, to, protocol),
        _ => None,
    };
    if let Some(service) = on_loopback {
        let mode = engine.cluster.proxy.mode.value;
        return format!(
            "no process listens there: {number} is a node port of {}, and kube-proxy in {mode} mode serves \
             node ports at the node's own addresses only",
            service.object()
        );
    }
    let closed = match at {
        Peer::Pod(pod) | Peer::Host(_, Some(pod)) => {
            gateway_ports::opens(engine.cluster, pod, number) == Some(false)
        }
        _ => false,
    };
    if closed {
        return format!(
            "no process listens on port {number}: a gateway's proxy opens the ports of Gateways that \
             select it, and none of them has this one"
        );
    }
    match service {
        Some(service) => format!(
            "no process listens on port {number}: {} is headless, so nothing translates its port \
             {number} to another",
            service.object()
        ),
        None => format!("no process listens on port {number}"),
    }
}

/// Returns the port of the endpoints to which a Service's port leads.
fn led_to(cluster: &Cluster, service: &Service, port: &ServicePort) -> Option<Port> {
    let slices = cluster.endpoints.get(&service.name).into_iter().flatten();
    let mut ports = slices.flat_map(|slice| &slice.ports);
    let is_same = |own: &&uturn_model::endpoints::EndpointPort| {
        own.name == port.name && own.protocol == port.protocol
    };
    ports.find(is_same).map(|own| own.port)
}

/// Returns the assumption that a pod answers at a port that no object mentions.
pub(super) fn supposed_to_listen(
    engine: &Engine<'_>,
    at: Peer<'_>,
    to: SocketAddr,
    protocol: IpProtocol,
) -> Option<Assumption> {
    let (Peer::Pod(pod) | Peer::Host(_, Some(pod))) = at else { return None };
    let is_port = !matches!(protocol, IpProtocol::ICMP | IpProtocol::ICMPV6);
    let is_open = is_port
        && declared(pod, to, protocol) == Declared::Others
        && !engine.is_service_endpoint(to);
    is_open.then(|| Assumption {
        subject: format!("port {} of {}", to.port(), pod.object()).into(),
        assumed: "a process listens there".into(),
        because: "no container declares it, and no Service leads to it".into(),
        settle: "ask the pod; if containers listen on what they declare only, state \
                 declaredPortsOnly in Facts"
            .into(),
    })
}
