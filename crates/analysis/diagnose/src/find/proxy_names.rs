//! Finds kube-proxies that take themselves for another node's: endpoints on their own node are not
//! local for them, so that policy Local finds none there.

use std::collections::BTreeMap;

use uturn_model::service::{Policy, ServiceKind};
use uturn_model::wording::some_of;
use uturn_model::{Cluster, Name, Node, ObjectKind, ObjectRef, Origin, Outcome, Service, Share};
use uturn_path::Engine;

use super::object_faults::about;
use crate::clients::Clients;
use crate::finding::Finding;
use crate::{Code, Severity};

pub(crate) fn find(engine: &Engine<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    if cluster.proxy.replaced_by().is_some() {
        return Vec::new();
    }
    let mut told: BTreeMap<(&ObjectRef, &Origin), Vec<(&Node, &Name)>> = BTreeMap::new();
    for node in cluster.nodes.values() {
        if let (Some(name), Some((object, origin))) = (&node.proxy_name, &node.proxy_name_by) {
            told.entry((object, origin)).or_default().push((node, name));
        }
    }
    told.into_iter().map(|((object, origin), nodes)| of(cluster, object, origin, &nodes)).collect()
}

fn of(cluster: &Cluster, object: &ObjectRef, origin: &Origin, nodes: &[(&Node, &Name)]) -> Finding {
    let named: Vec<&Name> = nodes.iter().map(|(node, _)| &node.name).collect();
    let harmed: Vec<&Service> =
        cluster.services.values().filter(|service| is_harmed(cluster, service, nodes)).collect();
    let field = match object.kind {
        ObjectKind::ConfigMap => "hostnameOverride",
        ObjectKind::Node => "kubeProxyName of Facts",
        _ => "--hostname-override",
    };
    let name = nodes[0].1;
    let mut what = format!(
        "{field} is {name}: kube-proxy on {} takes itself for the one of {name}, and no endpoint there \
         is local for it",
        some_of(&named)
    );
    if !cluster.nodes.contains_key(name) {
        what.push_str(&format!("; there is no node {name}"));
    }
    let objects: Vec<String> = harmed.iter().map(|service| service.object().short()).collect();
    if !objects.is_empty() {
        what.push_str(&format!("; policy Local of {} needs local ones", some_of(&objects)));
    }
    let mut finding = about(Code::ProxyNamedOther, object.clone(), origin, what);
    finding.targets = objects;
    if harmed.is_empty() {
        finding.severity = Severity::Info;
    } else {
        finding.clients = Clients::other(Clients::OUTSIDE);
        finding.share_failing = Share::ALL;
        finding.outcome = Outcome::Hangs;
    }
    finding
}

/// Returns whether a Service of policy Local has an endpoint on one of the nodes.
fn is_harmed(cluster: &Cluster, service: &Service, nodes: &[(&Node, &Name)]) -> bool {
    let is_external = matches!(service.kind, ServiceKind::NodePort | ServiceKind::LoadBalancer)
        || !service.external_ips.is_empty();
    let is_local = service.external_policy == Policy::Local && is_external
        || service.internal_policy == Policy::Local;
    let mut endpoints = cluster.slices(&service.name).iter().flat_map(|slice| &slice.endpoints);
    is_local
        && !service.headless
        && endpoints.any(|endpoint| {
            endpoint.ready
                && nodes.iter().any(|(node, _)| endpoint.node.as_ref() == Some(&node.name))
        })
}
