//! What a flow calls, as objects and the steps of its walk tell it.

mod destination;

use std::net::SocketAddr;

use uturn_model::ingress::{Backend, BackendPort, IngressPath, IngressRule};
use uturn_model::route::{Direction, StepKind};
use uturn_model::{
    Cluster, Destination, Evidence, Flow, Ingress, NamespacedName, ObjectKind, ObjectRef, Place,
    Port, Text, Verdict,
};
use uturn_path::Engine;

pub(crate) use self::destination::{Aim, aim};

/// What a flow calls, for its codes, its reason and its cures alike.
#[derive(Clone, Debug, Default)]
pub(crate) struct Called {
    /// The objects that a scan's finding about the flow would name, or what may be it: the Ingress
    /// that is called, or whose rule a controller applied; where none has a rule, the Ingresses of
    /// the called host; else the owner of the listener, or the Service; else what the steps show.
    pub(crate) objects: Vec<ObjectRef>,
    /// The Service whose endpoints answer: the one behind the rule of a controller that received
    /// the call, or else the one that is called.
    pub(crate) service: Option<NamespacedName>,
    /// The port of this Service.
    pub(crate) port: Option<Port>,
}

impl Called {
    /// Returns what a flow calls, from verdicts that have their steps.
    pub(crate) fn of(engine: &Engine<'_>, flow: &Flow, verdicts: &[Verdict]) -> Self {
        let aim = aim(engine, flow, sent_to(verdicts));
        let met = MetController::of(engine.cluster(), verdicts);
        Self::new(engine.cluster(), (flow, verdicts), &aim, &met)
    }

    /// Returns what a flow calls, given its destination and the controller that received it.
    pub(crate) fn new(
        cluster: &Cluster,
        (flow, verdicts): (&Flow, &[Verdict]),
        aim: &Aim,
        met: &MetController,
    ) -> Self {
        let objects = objects(cluster, (flow, verdicts), aim, met);
        match service_behind(cluster, flow, met) {
            Some((name, port)) => {
                let service = cluster.services.get(&name);
                let port = service.and_then(|own| Some(own.port_named(port)?.port));
                Self { objects, service: Some(name), port }
            }
            None => {
                let port = aim.port.as_ref().map(|port| port.port);
                Self { objects, service: aim.service.clone(), port }
            }
        }
    }
}

fn objects(
    cluster: &Cluster,
    (flow, verdicts): (&Flow, &[Verdict]),
    aim: &Aim,
    met: &MetController,
) -> Vec<ObjectRef> {
    if let Destination::Ingress { name, .. } = &flow.to {
        let own = cluster.ingresses.get(name).map(Ingress::object);
        return vec![own.unwrap_or_else(|| ObjectRef::namespaced(ObjectKind::Ingress, name))];
    }
    let of_host = of_host(cluster, flow);
    if met.at.is_some() {
        if let Some(rule_of) = &met.rule_of {
            return vec![rule_of.clone()];
        }
        if !of_host.is_empty() {
            return of_host;
        }
    }
    let service = || Some(cluster.services.get(aim.service.as_ref()?)?.object());
    if let Some(owner) = aim.owner.clone().or_else(service) {
        return vec![owner];
    }
    if of_host.is_empty() { shown(verdicts) } else { of_host }
}

/// Returns the Ingresses that have rules for the called host, or else those that have one for all
/// names beside it.
pub(crate) fn of_host(cluster: &Cluster, flow: &Flow) -> Vec<ObjectRef> {
    let host = match &flow.to {
        Destination::Url { host, .. } | Destination::Host(host, _) => host,
        _ => return Vec::new(),
    };
    let of = |wanted: &str| -> Vec<ObjectRef> {
        let lists = |own: &IngressRule| own.host.as_deref() == Some(wanted);
        let ingresses = cluster.ingresses.values();
        let ingresses = ingresses.filter(|ingress| ingress.rules.iter().any(lists));
        ingresses.map(Ingress::object).collect()
    };
    let exact = of(host);
    if !exact.is_empty() {
        return exact;
    }
    host.split_once('.').map(|(_, rest)| of(&format!("*.{rest}"))).unwrap_or_default()
}

/// Returns the objects that the steps show.
fn shown(verdicts: &[Verdict]) -> Vec<ObjectRef> {
    let routes = verdicts.iter().flat_map(|verdict| &verdict.routes);
    let steps = routes.flat_map(|route| &route.hops).flat_map(|hop| &hop.steps);
    let objects = steps.filter_map(|step| match &step.by {
        Evidence::Object { object, .. } => Some((**object).clone()),
        _ => None,
    });
    objects.collect()
}

/// Returns the Service and port to which the rule leads that a controller applied to a call.
fn service_behind<'c>(
    cluster: &'c Cluster,
    flow: &Flow,
    met: &MetController,
) -> Option<(NamespacedName, &'c BackendPort)> {
    let (host, path) = match &flow.to {
        Destination::Url { host, path, .. } => (Some(host), Some(path)),
        Destination::Ingress { host, path, .. } => (host.as_ref(), path.as_ref()),
        Destination::Host(host, _) => (Some(host), None),
        _ => (None, None),
    };
    let rule_of = met.rule_of.as_ref()?;
    let own = cluster.ingresses.values().filter(|ingress| ingress.object() == *rule_of);
    own.into_iter().find_map(|ingress| {
        let Backend::Service { name, port } = backend(ingress, host, path)? else { return None };
        let namespace = ingress.name.namespace.clone();
        Some((NamespacedName { namespace, name: name.clone() }, port))
    })
}

/// Returns the backend of an Ingress for a request: of the longest path that begins the requested
/// one, or the only one that there is.
fn backend<'i>(
    ingress: &'i Ingress,
    host: Option<&Text>,
    path: Option<&Text>,
) -> Option<&'i Backend> {
    let rules = ingress.rules.iter();
    let is_for = |rule: &&IngressRule| rule.host.is_none() || rule.host.as_ref() == host;
    let paths = rules.clone().filter(is_for).flat_map(|rule| &rule.paths);
    let begins = |own: &&IngressPath| path.is_none_or(|path| path.starts_with(&*own.path));
    let longest = paths.filter(begins).max_by_key(|own| own.path.len());
    if let Some(own) = longest {
        return Some(&own.backend);
    }
    let all = rules.flat_map(|rule| &rule.paths).map(|own| &own.backend);
    let mut all = all.chain(&ingress.default_backend);
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}

/// The ingress controller that received calls, as walks show it.
#[derive(Clone, Debug, Default)]
pub(crate) struct MetController {
    /// The pod of the controller, and the port at which it received the calls.
    pub(crate) at: Option<(NamespacedName, Port)>,
    /// The object whose rule the controller applied: an Ingress or a route.
    pub(crate) rule_of: Option<ObjectRef>,
}

impl MetController {
    /// Finds the controller in the failing routes of a flow, or in all if none fails.
    pub(crate) fn of(cluster: &Cluster, verdicts: &[Verdict]) -> Self {
        let routes = verdicts.iter().flat_map(|verdict| &verdict.routes);
        let are_all_fine = routes.clone().all(|route| route.outcome.is_fine());
        let routes = routes.filter(|route| are_all_fine || !route.outcome.is_fine());
        let hops = routes.flat_map(|route| &route.hops);
        let mut met = Self::default();
        for hop in hops.filter(|hop| hop.direction == Direction::Out) {
            let Place::Pod(name) = &hop.place else { continue };
            let pod = cluster.pods.get(name);
            if pod.and_then(|pod| cluster.controller_of(pod)).is_none() {
                continue;
            }
            for step in &hop.steps {
                let to = step.after.and_then(|leg| Port::new(leg.dst.port()));
                met.at = met.at.take().or_else(|| Some((name.clone(), to?)));
                if let Evidence::Object { object, .. } = &step.by
                    && (object.kind == ObjectKind::Ingress || object.kind.is_route())
                {
                    met.rule_of.get_or_insert_with(|| ObjectRef::clone(object));
                }
            }
        }
        met
    }
}

/// Returns the first destination of the client's packets: the address to which the name resolves.
pub(crate) fn sent_to(verdicts: &[Verdict]) -> Option<SocketAddr> {
    let routes = verdicts.iter().flat_map(|verdict| &verdict.routes);
    let mut steps = routes.flat_map(|route| &route.hops).flat_map(|hop| &hop.steps);
    steps.find(|step| step.kind == StepKind::Send)?.after.map(|leg| leg.dst)
}
