//! Finds Ingresses whose controller asks another Service about each request, and cannot resolve its
//! name.

use std::collections::HashMap;
use std::time::Duration;

use uturn_model::{Client, Destination, Flow, Mechanism, ObjectRef, Outcome, Pod, Share};
use uturn_path::Engine;

use super::called_names::{MAX_LOOKUPS, reason};
use super::object_faults::about;
use super::service_reference::ServiceReference;
use crate::Code;
use crate::clients::{Clients, Example};
use crate::finding::Finding;

/// The annotation of ingress-nginx with the URL that is asked.
const AUTH_URL: &str = "nginx.ingress.kubernetes.io/auth-url";

/// Returns the same of calls of the Ingresses' hosts: the controller answers 500 where it cannot ask.
pub(super) fn of_hosts(engine: &Engine<'_>) -> impl Iterator<Item = Finding> {
    find(engine).into_iter().map(|mut finding| {
        finding.outcome = Outcome::Status { code: 500, after: Duration::ZERO };
        finding.clients = Clients::other(Clients::OF_HOSTS);
        finding.mechanism = None;
        finding
    })
}

pub(crate) fn find(engine: &Engine<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    let asking = cluster.ingresses.values().filter_map(|ingress| {
        let url = ingress.annotations.get(AUTH_URL)?.parse().ok()?;
        let Destination::Url { host, port, .. } = url else { return None };
        Some((ingress, host, port))
    });
    let mut pods: HashMap<&ObjectRef, Option<&Pod>> = HashMap::new();
    let mut all = Vec::new();
    for (ingress, host, port) in asking.take(MAX_LOOKUPS) {
        let Some(workload) = &ingress.controller else { continue };
        let pod = *pods.entry(workload).or_insert_with(|| {
            let controller = cluster.controllers.iter().find(|own| own.workload == *workload)?;
            if &*controller.product != "ingress-nginx" {
                return None;
            }
            let mut alive = cluster.pods.values().filter(|pod| pod.is_alive());
            alive.find(|pod| controller.has_pod(pod) && !pod.ips.is_empty())
        });
        let Some(pod) = pod else { continue };
        let Some(named) = ServiceReference::of(cluster, &pod.name.namespace, &host) else {
            continue;
        };
        let Some((port, protocol)) = named.port(Some(port)) else { continue };
        let to = Destination::Host(host.clone(), port);
        let flow = Flow { from: Client::Pod(pod.name.clone()), to, protocol };
        if !engine.resolve(&flow).is_ok_and(|target| target.is_name_lost()) {
            continue;
        }
        let what = format!(
            "{AUTH_URL} names {host}:{port}, which is {}, and {workload} asks it about each request: {}",
            named.service.object(),
            reason(engine, &pod.spec, &named)
        );
        let mut finding = about(Code::NameNotFound, ingress.object(), &ingress.origin, what);
        finding.targets = vec![format!("{host}:{port}")];
        finding.clients = Clients::other(Clients::CONTROLLER);
        finding.share_failing = Share::ALL;
        finding.outcome = Outcome::NameNotFound;
        finding.mechanism = Some(Mechanism::NameUnresolved);
        finding.example = Example::Flow(flow);
        all.push(finding);
    }
    all
}
