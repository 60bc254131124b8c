//! What Facts state of a load balancer.

use uturn_model::Port;
use uturn_model::lb::{ListenerFact, LoadBalancerFact};

use crate::decode::Doc;
use crate::document::Node;

pub(super) fn load_balancer<'d>(doc: &Doc<'d>, node: &'d Node<'d>) -> Option<LoadBalancerFact> {
    doc.only(node, &["vip", "name", "scope", "probeSource", "securityGroups", "listeners"]);
    let vip = doc.need(node, "vip");
    let security_groups = node.get("securityGroups").map(|_| doc.list(node, "securityGroups"));
    let listeners = doc.maps(node, "listeners").filter_map(|item| listener(doc, item));
    let listeners = listeners.collect();
    Some(LoadBalancerFact {
        name: doc.read(node, "name"),
        scope: doc.read(node, "scope"),
        probe_source: doc.read(node, "probeSource"),
        vip: vip?,
        security_groups,
        listeners,
        origin: doc.origin(node),
    })
}

fn listener<'d>(doc: &Doc<'d>, node: &'d Node<'d>) -> Option<ListenerFact> {
    doc.only(node, &["port", "protocol", "snat", "scheduler"]);
    let port = doc.need::<Port>(node, "port");
    Some(ListenerFact {
        protocol: doc.read(node, "protocol"),
        snat: doc.read(node, "snat"),
        scheduler: doc.read(node, "scheduler"),
        port: port?,
        origin: doc.origin(node),
    })
}
