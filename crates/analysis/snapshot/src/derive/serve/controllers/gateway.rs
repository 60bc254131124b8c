//! Finds the pods that take the requests of a Gateway: those behind the Service that is labelled as
//! the Gateway's own, or that has its address.

use uturn_model::controller::{ControllerListener, ProxyExpectation, Takes};
use uturn_model::gateway::AttachedRoute;
use uturn_model::pod::PodSpec;
use uturn_model::service::{LbIngress, ServiceKind, TargetPort};
use uturn_model::{IngressController, ObjectRef, Origin, Port, Protocol, Selector, Service};

use super::candidate::Open;
use super::{gateway_header, istio, ports};
use crate::decode::gateway::{Gateway, GatewayListener};
use crate::decode::objects::Objects;

/// The labels of objects that a controller creates for a Gateway in the Gateway's namespace.
const OWN: [&str; 2] =
    ["gateway.networking.k8s.io/gateway-name", "projectcontour.io/owning-gateway-name"];
/// The labels of objects that a controller creates for a Gateway in the controller's own namespace.
const ELSEWHERE: [&str; 2] =
    ["gateway.envoyproxy.io/owning-gateway-name", "gateway.envoyproxy.io/owning-gateway-namespace"];

/// Returns the Services of a Gateway that select pods.
pub(super) fn services<'o>(
    objects: &'o Objects,
    gateway: &Gateway,
) -> Result<Vec<&'o Service>, Open> {
    let all = || {
        let all = objects.services.0.values();
        all.filter(|service| !matches!(service.kind, ServiceKind::ExternalName(_)))
    };
    let is_own = |service: &&Service| {
        let named = |key: &str| service.labels.is(key, gateway.name.name.as_str());
        let own = OWN.iter().any(|key| named(key));
        let [name, namespace] = ELSEWHERE;
        (own && service.name.namespace == gateway.name.namespace)
            || (named(name) && service.labels.is(namespace, gateway.name.namespace.as_str()))
    };
    let mut found: Vec<&Service> = all().filter(is_own).collect();
    if found.is_empty() {
        found = all().filter(|service| has_its_address(service, gateway)).collect();
    }
    let Some(first) = found.first() else {
        return Err(Open::new(
            format!(
                "no Service is labelled as that of Gateway {}, or has its address",
                gateway.name
            ),
            "give the Service that its controller made for it, with its status",
        ));
    };
    let name = first.name.clone();
    found.retain(|service| service.selector.is_some());
    if found.is_empty() {
        Err(Open::new(
            format!("Service {name} selects no pods: what takes its requests is not known"),
            format!("trace to the Services behind the routes, not to svc/{name}"),
        ))
    } else {
        Ok(found)
    }
}

/// Returns whether a Service has an address or a host name of a Gateway.
fn has_its_address(service: &Service, gateway: &Gateway) -> bool {
    let is_its = |entry: &LbIngress| match (entry.ip, &entry.hostname) {
        (Some(ip), _) => service.has_address(ip),
        (None, Some(host)) => {
            service.load_balancer.iter().any(|own| own.hostname.as_ref() == Some(host))
        }
        (None, None) => false,
    };
    gateway.addresses.iter().any(is_its)
}

/// The pods that a Service selects: the workload that runs them, and their spec.
pub(super) struct Pods<'o> {
    pub(super) object: ObjectRef,
    pub(super) selector: Selector,
    pub(super) template: Option<&'o PodSpec>,
    pub(super) origin: Origin,
}

impl<'o> Pods<'o> {
    /// Returns the pods of a Service. `None` if it has no selector, or if none of its pods are
    /// known.
    pub(super) fn of(objects: &'o Objects, service: &Service) -> Option<Self> {
        let selector = service.selector.clone()?;
        let namespace = &service.name.namespace;
        let mut workloads = objects.workloads.0.values();
        let workload = workloads.find(|workload| {
            workload.name.namespace == *namespace && selector.matches(&workload.template.labels)
        });
        if let Some(workload) = workload {
            let template = Some(&*workload.template);
            let (object, origin) = (workload.object(), workload.origin.clone());
            return Some(Self { object, selector, template, origin });
        }
        let mut pods = objects.pods.0.values().filter(|pod| pod.is_alive());
        let pod = pods
            .find(|pod| pod.name.namespace == *namespace && selector.matches(&pod.spec.labels))?;
        let object = pod.owner.clone().unwrap_or_else(|| pod.object());
        Some(Self { object, selector, template: Some(&pod.spec), origin: pod.origin.clone() })
    }
}

/// Adds to a controller the ports of a Gateway's pods on which the Gateway's listeners take
/// requests.
pub(super) fn add_listeners(
    objects: &Objects,
    controller: &mut IngressController,
    service: &Service,
    template: Option<&PodSpec>,
    gateway: &Gateway,
) {
    for port in service.ports.iter().filter(|port| port.protocol == Protocol::Tcp) {
        let number = match &port.target {
            TargetPort::Number(number) => Some(*number),
            TargetPort::Name(name) => {
                template.and_then(|template| template.named_port(name, Protocol::Tcp))
            }
        };
        let Some(number) = number else { continue };
        let is_there = |known: &&GatewayListener| known.port == port.port || known.port == number;
        let mut listeners = gateway.listeners.iter().filter(is_there);
        let Some((takes, tls)) = taken(objects, gateway, listeners.clone()) else { continue };
        let Some(listener) = listeners.next() else { continue };
        let own = (service.name.clone(), port.port);
        let expected_at = |listener| match (&*controller.product, template) {
            ("Istio", Some(template)) => {
                istio::proxy_header(objects, &service.name.namespace, template, number)
            }
            ("Envoy Gateway", _) => gateway_header::of_envoy_gateway(objects, gateway, listener),
            ("NGINX Gateway Fabric", _) => {
                gateway_header::of_nginx_gateway_fabric(objects, gateway)
            }
            _ => ProxyExpectation::Unknown("its settings for that are not read".into()),
        };
        let first = expected_at(listener);
        let proxy_header =
            if listeners.all(|other| expected_at(other) == first) { first } else { differing() };
        let services = vec![own];
        let at_nodes = template.and_then(|spec| ports::at_nodes(objects, spec, number, &services));
        add(
            controller,
            ControllerListener {
                port: number,
                tls,
                takes,
                proxy_header,
                entry_point: None,
                services,
                at_nodes,
            },
        );
    }
}

/// Returns what rules apply to at a port with these listeners, and whether the proxy ends TLS
/// there. Returns `None` if none of the listeners is for TCP.
fn taken<'l>(
    objects: &Objects,
    gateway: &Gateway,
    listeners: impl Iterator<Item = &'l GatewayListener>,
) -> Option<(Takes, bool)> {
    let has_route = |port: Port| {
        let routes = objects.ingresses.0.values().filter_map(|ingress| ingress.route.as_ref());
        routes.filter(|route| route.is_of_connections()).any(|route| {
            route.gateway.namespaced_name().as_ref() == Some(&gateway.name)
                && route.listeners.iter().any(|own| own.port == port)
        })
    };
    let mut found: Option<(Takes, bool)> = None;
    for listener in listeners {
        let takes = match &*listener.protocol {
            "HTTP" => (Takes::Requests, false),
            "HTTPS" if !listener.passes_tls => (Takes::Requests, true),
            "TCP" | "TLS" if !has_route(listener.port) => (Takes::Nothing, false),
            "TCP" => (Takes::Connections, false),
            "TLS" => (Takes::NamedConnections, !listener.passes_tls),
            _ => continue,
        };
        found = match (found, takes) {
            (None, new) => Some(new),
            // Another listener of the port may serve other names.
            (Some((Takes::Requests, tls)), (Takes::NamedConnections, _))
            | (Some((Takes::NamedConnections, _)), (Takes::Requests, tls)) => {
                Some((Takes::NamedConnectionsOrRequests, tls))
            }
            (Some((Takes::Nothing, _)), new) => Some(new),
            (known, _) => known,
        };
    }
    found
}

/// Returns the expectation if listeners of a port differ: a connection belongs to all listeners of
/// the port until its first bytes are read.
fn differing() -> ProxyExpectation {
    ProxyExpectation::Unknown("the listeners of this port are set differently".into())
}

/// Sets the ports of a route's listeners to those that clients call. If a listener names a port of
/// the proxy's pods, such as an entry point of Traefik's chart, clients call a port of their
/// Service.
pub(super) fn call_by_service(route: &mut AttachedRoute, controller: &IngressController) {
    let services = || controller.listeners.iter().flat_map(|known| &known.services);
    for listener in &mut route.listeners {
        if services().any(|(_, port)| *port == listener.port) {
            continue;
        }
        let at_pods = controller.listeners.iter().find(|known| known.port == listener.port);
        if let Some((_, port)) = at_pods.and_then(|known| known.services.first()) {
            listener.port = *port;
        }
    }
}

/// Adds a listener, or adds its Services to a known listener of the same port.
fn add(controller: &mut IngressController, listener: ControllerListener) {
    let known = controller.listeners.iter_mut().find(|known| known.port == listener.port);
    match known {
        Some(known) => {
            (known.tls, known.takes) = (listener.tls, listener.takes);
            // Several Services lead to several node ports.
            if known.at_nodes != listener.at_nodes {
                known.at_nodes = known.at_nodes.xor(listener.at_nodes);
            }
            for own in listener.services {
                if !known.services.contains(&own) {
                    known.services.push(own);
                }
            }
        }
        None => controller.listeners.push(listener),
    }
}
