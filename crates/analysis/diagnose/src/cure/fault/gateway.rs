//! Cures of Gateways of a mesh that open no port to which a Service leads, and of routes that name
//! them without their namespace.

use std::collections::BTreeSet;

use uturn_document::edit::{Change, Tree};
use uturn_model::{MeshGateway, MeshRoute, ObjectKind, ObjectRef, Pod, gateway_ports, mesh};

use super::super::{Case, Proposal, way};
use crate::Finding;

/// The maximum number of gateways whose labels are proposed.
const MAX: usize = 3;

/// The maximum number of routes that are edited together.
const MAX_ROUTES: usize = 20;

/// The maximum number of servers, or of Gateways of a route, that are read.
const MAX_SERVERS: usize = 100;

pub(super) fn propose(case: &Case<'_>, fault: &Finding) -> Vec<Proposal> {
    let cluster = case.cluster();
    let mut gateways = cluster.mesh_gateways.iter();
    let Some(gateway) = gateways.find(|gateway| gateway.object() == fault.subject) else {
        return Vec::new();
    };
    let pods = cluster.pods.values();
    let pods: Vec<&Pod> =
        pods.filter(|pod| pod.is_alive() && mesh::is_gateway(&pod.spec)).collect();
    let mut all: Vec<Proposal> = named_in_full(case, gateway).into_iter().collect();
    match pods.iter().find(|pod| gateway.selects(&pod.spec)) {
        Some(pod) => all.extend(port(case, gateway, pod)),
        None => all.extend(selectors(gateway, &pods)),
    }
    all
}

/// Proposes that routes which mean the Gateway name it with its namespace.
fn named_in_full(case: &Case<'_>, gateway: &MeshGateway) -> Option<Proposal> {
    let cluster = case.cluster();
    let is_meant = |route: &&MeshRoute| {
        gateway_ports::misplaced(cluster, route).is_some_and(|meant| meant.name == gateway.name)
    };
    let routes: Vec<&MeshRoute> = cluster.mesh_routes.iter().filter(is_meant).collect();
    let first = routes.first().filter(|_| routes.len() <= MAX_ROUTES)?;
    let more = match routes.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let title = format!("gateways: {} in VirtualService {}{more}", gateway.name, first.name);
    let mut made = Proposal::new("gateway-name", 10, title).costs(
        "the gateway's proxies serve its hosts from then on: their names have to lead to them",
    );
    for route in routes {
        let object = ObjectRef::namespaced(ObjectKind::CloudObject("VirtualService"), &route.name);
        let place = |at: usize| way!["spec", "gateways", at];
        let at = (0..MAX_SERVERS).find(|at| {
            let written = case.manifests.text_at(&object, &place(*at));
            let name = |text: &String| text.rsplit('/').next() == Some(gateway.name.name.as_str());
            written.as_ref().is_some_and(name)
        })?;
        let value = Change::Set(Tree::text(gateway.name.to_string()));
        made = made.edit(object, place(at), value);
    }
    Some(made)
}

/// Proposes the labels of gateways that run here.
fn selectors(gateway: &MeshGateway, pods: &[&Pod]) -> Vec<Proposal> {
    let mut all = BTreeSet::new();
    for pod in pods {
        let named = gateway.selector.iter().map(|(key, _)| key);
        let own = |key| Some((key, pod.spec.labels.get(key)?));
        let mut labels: Vec<(&str, &str)> = named.filter_map(own).collect();
        if labels.is_empty() {
            labels.extend(["istio", "app"].into_iter().find_map(own));
        }
        if !labels.is_empty() {
            all.insert((labels, &pod.name.namespace));
        }
    }
    let made = all.into_iter().take(MAX).map(|(labels, namespace)| {
        let said: Vec<String> =
            labels.iter().map(|(key, value)| format!("{key}: {value}")).collect();
        let title = format!("selector {} for {}", said.join(", "), gateway.object());
        let mut made = Proposal::new("gateway-selector", 10, title);
        // A label that no gateway has makes way for those that this one has.
        let is_whole = gateway.selector.iter().count() == labels.len()
            && labels.iter().all(|(key, _)| gateway.selector.get(key).is_some());
        if is_whole {
            for (key, value) in &labels {
                let path = way!["spec", "selector", *key];
                made = made.edit(gateway.object(), path, Change::Set(Tree::text(*value)));
            }
        } else {
            let entries = labels.iter().map(|(key, own)| ((*key).to_owned(), Tree::text(*own)));
            let entries = Tree::Map(entries.collect());
            made = made.edit(gateway.object(), way!["spec", "selector"], Change::Set(entries));
        }
        made.costs(format!(
            "the gateway pods with these labels, in namespace {namespace}, open its ports"
        ))
    });
    made.collect()
}

/// Proposes the Service's port in place of its node port.
fn port(case: &Case<'_>, gateway: &MeshGateway, pod: &Pod) -> Option<Proposal> {
    let services = gateway_ports::services_of(case.cluster(), pod);
    let ports: Vec<_> = services.flat_map(|service| &service.ports).collect();
    let object = gateway.object();
    (0..MAX_SERVERS).find_map(|at| {
        let path = way!["spec", "servers", at, "port", "number"];
        let written: u16 = case.manifests.text_at(&object, &path)?.parse().ok()?;
        let own =
            ports.iter().find(|own| own.node_port.is_some_and(|port| port.number() == written))?;
        let number = own.port;
        let title = format!("port {number} instead of {written} for a server of {object}");
        Some(
            Proposal::new("gateway-port", 10, title)
                .edit(object.clone(), path, Change::Set(Tree::number(number.number())))
                .costs(format!(
                    "clients still call node port {written}, which leads to port {number} of the \
                     gateway's Service"
                )),
        )
    })
}
