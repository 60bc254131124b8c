//! Flows that cannot be judged: they depend on something that is not given or not modelled.

mod balancers;

use std::net::SocketAddr;

use uturn_model::ingress::Backend;
use uturn_model::lb::Rule;
use uturn_model::route::{Place, Step, StepKind};
use uturn_model::{
    Cluster, Destination, Evidence, Ingress, Mechanism, Name, NamespacedName, ObjectKind,
    ObjectRef, Origin, Protocol, Service, Unknown,
};

use crate::engine::Engine;
use crate::origin;
use crate::packet::{Arrival, Exchange, PacketState, Peer, Stop, ended};
pub(crate) use balancers::{balancer, call, host, on_node, outside};

/// The reason why a flow cannot be judged, and the object that is the reason.
pub(crate) struct UnjudgedReason {
    by: Evidence,
    why: String,
    mechanism: Mechanism,
}

impl UnjudgedReason {
    pub(crate) fn of(object: &ObjectRef, origin: &Origin, unknown: &Unknown) -> Self {
        let why = match unknown {
            Unknown::LoadBalancers(kind) => {
                format!("how a load balancer of {kind} treats this call is not modelled")
            }
            Unknown::Controller(name) => {
                format!(
                    "{name} serves this {}, and what it does with a call is not modelled",
                    object.kind
                )
            }
            Unknown::ServiceProxy(name) => {
                format!(
                    "{name} serves this Service, and what it does with this call is not modelled"
                )
            }
            Unknown::Endpoints => "which endpoints the Service has is not given".to_owned(),
            Unknown::Backends => "the backends of the Ingress are not given".to_owned(),
            Unknown::Listeners => {
                "the settings of its load balancer's listeners could not be read".to_owned()
            }
            Unknown::Versions => "it is defined more than once, with different contents".to_owned(),
            Unknown::Calls => "what happens to some calls is not known".to_owned(),
            Unknown::Windows => {
                "the node runs Windows, and what it does with packets is not modelled".to_owned()
            }
        };
        let by = Evidence::object(object.clone(), origin.clone());
        Self { by, why, mechanism: unknown.mechanism() }
    }

    /// Makes the reason that a Service is not given, with the evidence for what leads to it.
    fn of_missing(service: &NamespacedName, by: Evidence) -> Self {
        Self::not_given(format!("Service {service} is not in the input"), by)
    }

    /// Makes the reason that something else is not modelled.
    pub(crate) fn not_modelled(why: String, by: Evidence) -> Self {
        Self { by, why, mechanism: Mechanism::NotModelled }
    }

    /// Makes the reason that something else is not given.
    pub(crate) fn not_given(why: String, by: Evidence) -> Self {
        Self { by, why, mechanism: Mechanism::NotGiven }
    }

    /// Makes the reason that a call splits into more ways than are followed. The evidence is that
    /// of the way's last step.
    pub(crate) fn of_too_many_ways(node: &Name, state: &PacketState) -> Self {
        let last = state.hops.last().and_then(|hop| hop.steps.last());
        let by =
            last.map_or_else(|| Evidence::kernel("the ways of the call"), |step| step.by.clone());
        let why = format!("the call has too many ways: this one is not followed to node {node}");
        Self::not_modelled(why, by)
    }

    fn step(&self) -> Step {
        Step::new(StepKind::Unknown, self.why.clone(), self.by.clone())
    }

    /// Returns the end of a flow that cannot be judged.
    pub(crate) fn exchange(&self, place: Place, mut state: PacketState) -> Exchange {
        let step =
            if state.is_nowhere() { self.step() } else { self.step().seeing(state.packet.leg()) };
        state.note(place, step);
        ended(state, uturn_model::Outcome::Unknown, Some(self.mechanism))
    }

    /// Returns the end of a packet whose further way cannot be judged.
    pub(crate) fn arrival<'a>(&self, state: PacketState) -> Arrival<'a> {
        self.arrival_at(Place::Fabric, state)
    }

    /// Returns the same end where the ways before it take too much room: only the last hop is kept.
    pub(crate) fn stopped<'a>(&self, mut state: PacketState) -> Arrival<'a> {
        let last = state.hops.pop();
        state.hops = Vec::from_iter(last);
        let place = state.hops.last().map_or(Place::Fabric, |hop| hop.place.clone());
        self.arrival_at(place, state)
    }

    /// Returns the same end at another place than the fabric.
    pub(crate) fn arrival_at<'a>(&self, place: Place, mut state: PacketState) -> Arrival<'a> {
        let leg = state.packet.leg();
        state.note(place, self.step().seeing(leg));
        Arrival { state, stop: Stop::Unknown(self.mechanism) }
    }
}

/// Returns why no call of an address can be judged, from any client.
pub(crate) fn at(
    engine: &Engine<'_>,
    client: Peer<'_>,
    to: SocketAddr,
    protocol: Protocol,
) -> Option<UnjudgedReason> {
    let is_outside = matches!(client, Peer::Outside);
    let is_node = engine.node_at(to.ip()).is_some();
    let mut open = engine.cluster.services.values().filter(|service| !service.unjudged.is_empty());
    open.find_map(|service| {
        let unjudged = unjudged_endpoints(service)?;
        let mut ports = service.ports.iter().filter(|port| port.protocol == protocol);
        let is_asked = ports.any(|port| {
            let at_node = is_node && port.node_port.is_some_and(|at| at.number() == to.port());
            // The status of a Service may list addresses of nodes.
            let is_inner = is_outside && service.cluster_ips.contains(&to.ip());
            let at_own = service.has_address(to.ip()) && port.port.number() == to.port();
            at_node || at_own && !is_inner
        });
        is_asked.then_some(unjudged)
    })
}

/// Returns why calls of a Service cannot be judged, for any client.
pub(crate) fn service(cluster: &Cluster, service: &NamespacedName) -> Option<UnjudgedReason> {
    cluster.services.get(service).and_then(unjudged_endpoints)
}

/// Returns why calls that a load balancer's rule serves cannot be judged.
pub(crate) fn behind(cluster: &Cluster, rule: &Rule) -> Option<UnjudgedReason> {
    // Facts describe a load balancer without an owning Service completely.
    if rule.redirect.is_some() || rule.owner.kind == ObjectKind::LoadBalancer {
        return None;
    }
    let by = || Evidence::object(rule.owner.clone(), origin::of(cluster, &rule.owner));
    let ingress = cluster.ingress_of(&rule.owner);
    if let Some(ingress) = ingress.filter(|ingress| ingress.unjudged.contains(&Unknown::Versions)) {
        return Some(UnjudgedReason::of(&rule.owner, &ingress.origin, &Unknown::Versions));
    }
    let is_known = cluster.services.contains_key(&rule.service);
    match rule.targets.is_empty() {
        true if ingress.is_some_and(|ingress| is_action(ingress, rule)) => Some(UnjudgedReason {
            by: by(),
            why: "an annotation says where it leads, and uturn does not read that annotation"
                .to_owned(),
            mechanism: Mechanism::NotModelled,
        }),
        true if !is_known && cluster.may_have_service(&rule.service) => {
            Some(UnjudgedReason::of_missing(&rule.service, by()))
        }
        _ => service(cluster, &rule.service),
    }
}

/// Returns why a call of a name without an address cannot be judged: the name belongs to a Service
/// that may exist elsewhere, or whose endpoints may. A name that may also exist outside the cluster
/// counts as a Service's if its namespace is known.
pub(crate) fn lost_name(
    cluster: &Cluster,
    client: Peer<'_>,
    to: &Destination,
    may_be_outside: bool,
) -> Option<UnjudgedReason> {
    let host = to.host()?;
    let (Peer::Pod(pod) | Peer::Host(_, Some(pod))) = client else { return None };
    let name = service_named(host, cluster.dns.domain(), &pod.name.namespace);
    let name = name.filter(|_| pod.spec.asks_cluster_dns())?;
    let has_namespace = || {
        let services = cluster.services.keys().map(|object| &object.namespace);
        let pods = cluster.pods.keys().map(|object| &object.namespace);
        services.chain(pods).any(|namespace| *namespace == name.namespace)
    };
    // No outside name has the label svc.
    let is_sure = host.split('.').any(|label| label.eq_ignore_ascii_case("svc"));
    if may_be_outside && !is_sure && !has_namespace() {
        return None;
    }
    match cluster.services.get(&name) {
        Some(service) if service.headless => unjudged_endpoints(service),
        Some(_) => None,
        None if !cluster.may_have_service(&name) => None,
        None => {
            let by = Evidence::HostName { host: host.to_string().into() };
            Some(UnjudgedReason::of_missing(&name, by))
        }
    }
}

/// Returns whether the backend of a rule is an action of the Ingress, which an annotation
/// describes.
fn is_action(ingress: &Ingress, rule: &Rule) -> bool {
    let paths = ingress.rules.iter().flat_map(|rule| &rule.paths).map(|path| &path.backend);
    let mut actions = paths.chain(&ingress.default_backend).filter(|backend| backend.is_action());
    actions.any(
        |backend| matches!(backend, Backend::Service { name, .. } if *name == rule.service.name),
    )
}

fn unjudged_endpoints(service: &Service) -> Option<UnjudgedReason> {
    let unknown = service.unjudged.iter().find(|unknown| unknown.is_of_every_call())?;
    Some(UnjudgedReason::of(&service.object(), &service.origin, unknown))
}

/// Returns the Service that a name means in a pod of a namespace: `web`, `web.shop`,
/// `web.shop.svc`, `web-0.web.shop.svc`, with or without the cluster's domain.
pub(crate) fn service_named(host: &str, domain: &str, own: &Name) -> Option<NamespacedName> {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let inner = host.strip_suffix(&domain.to_ascii_lowercase());
    let inner = inner.and_then(|rest| rest.strip_suffix('.'));
    let labels: Vec<&str> = inner.unwrap_or(&host).split('.').collect();
    match labels.as_slice() {
        [name] if inner.is_none() => NamespacedName::new(own.as_str(), name).ok(),
        [name, namespace] if inner.is_none() => NamespacedName::new(namespace, name).ok(),
        [name, namespace, "svc"] | [_, name, namespace, "svc"] => {
            NamespacedName::new(namespace, name).ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_services_are_distinguished_from_others() {
        let meant = |host: &str| {
            let own = Name::new("shop").unwrap();
            service_named(host, "cluster.local", &own).map(|name| name.to_string())
        };
        assert_eq!(meant("web").as_deref(), Some("shop/web"));
        assert_eq!(meant("web.pay").as_deref(), Some("pay/web"));
        assert_eq!(meant("web.pay.svc").as_deref(), Some("pay/web"));
        assert_eq!(meant("Web.Pay.svc.Cluster.local.").as_deref(), Some("pay/web"));
        assert_eq!(meant("web-0.web.pay.svc").as_deref(), Some("pay/web"));
        assert_eq!(meant("web.cluster.local"), None);
        assert_eq!(meant("10-1-1-10.shop.pod.cluster.local"), None);
        assert_eq!(meant("shop.example.com"), None);
    }
}
