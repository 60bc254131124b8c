//! Asks hosts of controllers in the cluster by https, from outside: where a load balancer ends TLS
//! the port behind has to take plain requests, and a host without TLS of its own may have no rule.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use uturn_clouds::cloud::Owner;
use uturn_clouds::controller;
use uturn_model::controller::ControllerListener;
use uturn_model::lb::Scope;
use uturn_model::{
    Client, Destination, Family, Flow, Ingress, IngressController, Mechanism, NamespacedName,
    ObjectRef, Outcome, Port, Protocol, Text,
};
use uturn_path::{Engine, WalkError};

use super::MAX_PAIRS;
use super::outside_clients::OutsideClients;
use super::walked::{self, Caused};
use crate::Severity;
use crate::clients::Clients;

/// The maximum number of hosts that are asked.
const MAX_HOSTS: usize = 200;

/// The port of https.
const HTTPS: u16 = 443;

/// # Errors
/// Returns an error if a flow cannot be walked.
pub(super) fn find(engine: &Engine<'_>) -> Result<Vec<Caused>, WalkError> {
    let cluster = engine.cluster();
    if cluster.controllers.is_empty() || cluster.nodes.len() * cluster.services.len() > MAX_PAIRS {
        return Ok(Vec::new());
    }
    let clients = OutsideClients::of(engine);
    let mut known: BTreeSet<ObjectRef> = BTreeSet::new();
    let mut all = Vec::new();
    let calls = cluster.ingresses.values().filter_map(|ingress| call(engine, ingress));
    for call in calls.take(MAX_HOSTS) {
        let Some((mut finding, faults)) = call.walk(engine, &clients)? else { continue };
        // What the port behind the load balancer speaks is not a matter of one host.
        if finding.subject != call.ingress.object() && !known.insert(finding.subject.clone()) {
            continue;
        }
        let workload = call.ingress.controller.as_ref();
        // One host shows that a controller's port is closed.
        if finding.outcome == Outcome::Refused
            && workload.is_some_and(|workload| !known.insert(workload.clone()))
        {
            continue;
        }
        let has_tls = !call.ingress.tls.is_empty();
        if finding.subject == call.ingress.object() && !has_tls {
            finding.severity = finding.severity.min(Severity::Warning);
        }
        all.push((finding, faults));
    }
    Ok(all)
}

/// A host of an Ingress at a port with TLS.
struct Call<'e> {
    ingress: &'e Ingress,
    /// The Service whose port is called, if a Service has the address.
    service: Option<&'e NamespacedName>,
    at: SocketAddr,
    port: Port,
    host: &'e Text,
    path: &'e Text,
    /// Whether a load balancer ends TLS before the controller.
    is_ended: bool,
}

/// Returns the call of the first host of an Ingress at the port for https of its address.
fn call<'e>(engine: &'e Engine<'_>, ingress: &'e Ingress) -> Option<Call<'e>> {
    let cluster = engine.cluster();
    let own = cluster.controller_for(ingress)?;
    if ingress.route.is_some() || ingress.is_open() {
        return None;
    }
    let is_host = |host: &&Text| !host.starts_with('*');
    let (host, path) = ingress.rules.iter().find_map(|rule| {
        let host = rule.host.as_ref().filter(is_host)?;
        Some((host, &rule.paths.first()?.path))
    })?;
    let vip = controller::addresses(cluster, Owner::Ingress(ingress)).first()?.address;
    let (port, service, is_ended) = port(engine, own, vip)?;
    let at = SocketAddr::new(vip, port.number());
    Some(Call { ingress, service, at, port, host, path, is_ended })
}

/// Returns the port for https at an address of a controller, the Service that has it, and whether
/// the load balancer there ends TLS.
fn port<'e>(
    engine: &'e Engine<'_>,
    own: &'e IngressController,
    vip: IpAddr,
) -> Option<(Port, Option<&'e NamespacedName>, bool)> {
    let cluster = engine.cluster();
    let has_vip = |name: &NamespacedName| {
        cluster.services.get(name).is_some_and(|service| {
            let all = controller::addresses(cluster, Owner::Service(service));
            service.has_address(vip) || all.iter().any(|at| at.address == vip)
        })
    };
    let ended = |port: Port| {
        let balancer = engine.balancer_at(vip)?;
        let mut listeners = balancer.listeners.iter();
        listeners.find(|own| own.port == port).map(|own| own.protocol.ends_tls())
    };
    let is_tls = |listener: &ControllerListener, port: Port| {
        ended(port) == Some(true)
            || listener.tls
            || (listener.entry_point.is_some() && port.number() == HTTPS)
    };
    let services = own.listeners.iter().flat_map(|listener| {
        listener.services.iter().map(move |(name, port)| (listener, name, *port))
    });
    let at_vip: Vec<_> = services.filter(|(_, name, _)| has_vip(name)).collect();
    if at_vip.is_empty() {
        let mut listeners = own.listeners.iter().filter(|listener| listener.tls);
        let at_nodes = listeners.find_map(|listener| listener.at_nodes)?;
        return Some((at_nodes, None, false));
    }
    let mut with_tls: Vec<_> =
        at_vip.into_iter().filter(|(listener, _, port)| is_tls(listener, *port)).collect();
    with_tls.sort_by_key(|(_, _, port)| port.number() != HTTPS);
    let (_, name, port) = with_tls.into_iter().next()?;
    Some((port, Some(name), ended(port) == Some(true)))
}

impl Call<'_> {
    /// Walks the call from outside. Returns the finding if the controller itself refuses it.
    fn walk(
        &self,
        engine: &Engine<'_>,
        clients: &OutsideClients<'_>,
    ) -> Result<Option<Caused>, WalkError> {
        let balancer = engine.balancer_at(self.at.ip());
        let is_public = balancer.is_some_and(|own| own.scope == Scope::Public);
        let near = || clients.near(Family::of(self.at.ip()));
        let from = if is_public { Some(Client::Outside(None)) } else { near() };
        let Some(from) = from else { return Ok(None) };
        let to = Destination::Url {
            tls: true,
            host: self.host.clone(),
            port: self.port,
            path: self.path.clone(),
        };
        let flow = Flow { from, to, protocol: Protocol::Tcp };
        // The host may lead elsewhere.
        let leads = |addresses: &[SocketAddr]| addresses.contains(&self.at);
        if !engine.resolve(&flow).is_ok_and(|target| leads(target.addresses())) {
            return Ok(None);
        }
        let label = format!(":{} {}{} by https", self.port, self.host, self.path);
        let who = if is_public { Clients::OUTSIDE } else { Clients::SAME_NETWORK };
        let found = walked::failure(engine, (&self.ingress.object(), &label), flow, who)?;
        let Some((mut finding, faults)) = found else { return Ok(None) };
        match (finding.outcome, self.service) {
            (Outcome::Status { code: 400, .. }, Some(service)) if self.is_ended => {
                if let Some(service) = engine.cluster().services.get(service) {
                    finding.subject = service.object();
                }
            }
            // A port that opens with the first host that asks for TLS is no fault.
            (Outcome::Refused, _) if finding.mechanism == Some(Mechanism::WrongPort) => {
                finding.severity = Severity::Info;
            }
            (Outcome::Status { code: 404, .. }, _)
                if finding.mechanism == Some(Mechanism::NoRuleForPath) => {}
            _ => return Ok(None),
        }
        Ok(Some((finding, faults)))
    }
}
