//! Ports of pods that no container declares.
//!
//! To declare a port is voluntary: a program may listen there all the same. Two things say more than
//! that: a Service that leads to the port, and a headless Service that has it as its own and leads to
//! another. Nothing translates a call of a headless Service, so its port has to be the pods'.

use std::net::SocketAddr;

use uturn_model::pod::ContainerPort;
use uturn_model::service::ServicePort;
use uturn_model::{Assumption, Pod, Port, Service};
use uturn_netfilter::IpProtocol;

use crate::engine::Engine;
use crate::packet::Peer;

/// What the object of a pod says of one of its ports.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Declared {
    /// A container declares it, or the kubelet asks there how the container is.
    Yes,
    /// The pod declares others.
    Others,
    /// The pod declares none at all.
    Nothing,
}

pub(crate) fn declared(pod: &Pod, to: SocketAddr, protocol: IpProtocol) -> Declared {
    let mut ports = pod.spec.ports().peekable();
    let same = |port: &ContainerPort| {
        port.port.number() == to.port() && IpProtocol::from(port.protocol) == protocol
    };
    // What answers the kubelet there listens there.
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

impl<'a> Engine<'a> {
    /// The ports of a headless Service at which its pods are called in vain, each with the port where
    /// they listen.
    pub fn dead_ports(&self, service: &'a Service) -> Vec<(&'a ServicePort, Port)> {
        let slices = self.cluster.endpoints.get(&service.name).map_or(&[][..], Vec::as_slice);
        let is_dead = |port: &&'a ServicePort| {
            let mut addresses = slices
                .iter()
                .flat_map(|slice| slice.endpoints.iter().map(|endpoint| endpoint.address))
                .peekable();
            addresses.peek().is_some()
                && addresses.all(|address| {
                    let to = SocketAddr::new(address, port.port.number());
                    let pod = self.pod_at(address);
                    pod.is_some_and(|pod| {
                        self.past_headless(pod, to, port.protocol.into()).is_some()
                    })
                })
        };
        let ports = service.ports.iter().filter(|_| service.headless).filter(is_dead);
        ports.filter_map(|port| Some((port, self.led_to(service, port)?))).collect()
    }

    /// The headless Service that has this port and leads to another one of the pod, where all that is
    /// known says that the pod listens only there: every container declares ports, none this one, and
    /// no Service leads to it.
    pub(crate) fn past_headless(
        &self,
        pod: &Pod,
        to: SocketAddr,
        protocol: IpProtocol,
    ) -> Option<&'a Service> {
        let tells_all = pod.spec.containers.iter().all(|container| !container.ports.is_empty());
        if !tells_all
            || declared(pod, to, protocol) != Declared::Others
            || self.is_service_endpoint(to)
        {
            return None;
        }
        self.cluster.services.values().filter(|service| service.headless).find(|service| {
            let slices = self.cluster.endpoints.get(&service.name).into_iter().flatten();
            let mut endpoints = slices.flat_map(|slice| &slice.endpoints);
            endpoints.any(|endpoint| endpoint.address == to.ip())
                && service.ports.iter().any(|port| {
                    port.port.number() == to.port()
                        && IpProtocol::from(port.protocol) == protocol
                        && self.led_to(service, port).is_some_and(|target| target != port.port)
                })
        })
    }

    /// Why no process answers a call.
    pub(crate) fn why_none_listens(
        &self,
        at: Peer<'_>,
        to: SocketAddr,
        protocol: IpProtocol,
    ) -> String {
        let service = match at {
            Peer::Pod(pod) | Peer::Host(_, Some(pod)) => self.past_headless(pod, to, protocol),
            _ => None,
        };
        let number = to.port();
        match service {
            Some(service) => format!(
                "no process listens on port {number}: {} is headless, so nothing translates its port \
                 {number} to another",
                service.object()
            ),
            None => format!("no process listens on port {number}"),
        }
    }

    /// The port of its endpoints that a Service's port leads to.
    fn led_to(&self, service: &Service, port: &ServicePort) -> Option<Port> {
        let slices = self.cluster.endpoints.get(&service.name).into_iter().flatten();
        let mut ports = slices.flat_map(|slice| &slice.ports);
        let is_same = |own: &&uturn_model::endpoints::EndpointPort| {
            own.name == port.name && own.protocol == port.protocol
        };
        ports.find(is_same).map(|own| own.port)
    }

    /// What is taken for true where a pod answers at a port that nothing tells of.
    pub(crate) fn supposed_to_listen(
        &self,
        at: Peer<'_>,
        to: SocketAddr,
        protocol: IpProtocol,
    ) -> Option<Assumption> {
        let (Peer::Pod(pod) | Peer::Host(_, Some(pod))) = at else { return None };
        let is_port = !matches!(protocol, IpProtocol::ICMP | IpProtocol::ICMPV6);
        let is_open = is_port
            && declared(pod, to, protocol) == Declared::Others
            && !self.is_service_endpoint(to);
        is_open.then(|| Assumption {
            subject: format!("port {} of {}", to.port(), pod.object()).into(),
            assumed: "a process listens there".into(),
            because: "no container declares it, and no Service leads to it".into(),
            settle: "ask the pod; if containers listen on what they declare only, state \
                     declaredPortsOnly in Facts"
                .into(),
        })
    }
}
