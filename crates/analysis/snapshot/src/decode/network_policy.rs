//! Reads NetworkPolicies, and the labels of the namespaces that they select.

use uturn_document::{Node, Value};
use uturn_model::network_policy::{
    NetworkPolicy, PolicyPeer, PolicyPort, PolicyRule, PortNumbers, Way,
};
use uturn_model::{IpNet, Port, Protocol, Text};

use super::objects::{Namespace, Objects};
use super::{Doc, fields, meta, selector};

/// Reads a NetworkPolicy.
pub(crate) fn read(doc: &Doc<'_>, objects: &mut Objects) {
    let meta = meta::read(doc);
    let spec = doc.map(doc.root, "spec");
    if let Some(spec) = spec {
        doc.spelled(spec, fields::NETWORK_POLICY);
    }
    let pods = spec.and_then(|spec| selector::read(doc, spec, "podSelector")).unwrap_or_default();
    let ways = spec.map(|spec| restricted(doc, spec)).unwrap_or_else(|| vec![Way::Ingress]);
    let mut rules = [Way::Ingress, Way::Egress].map(|way| {
        let rules: Vec<PolicyRule> = match spec {
            Some(spec) => doc.maps(spec, way.field()).map(|node| rule(doc, node, way)).collect(),
            None => Vec::new(),
        };
        ways.contains(&way).then_some(rules)
    });
    let Some(meta) = meta else { return };
    let [ingress, egress] = &mut rules;
    let (ingress, egress) = (ingress.take(), egress.take());
    let policy = NetworkPolicy { pods, ingress, egress, origin: meta.origin, name: meta.name };
    objects.network_policies.add(doc, policy.name.clone(), policy);
}

/// Reads the labels of a Namespace.
pub(crate) fn read_namespace(doc: &Doc<'_>, objects: &mut Objects) {
    let Some(meta) = meta::read(doc) else { return };
    let name = meta.name.name;
    let namespace = Namespace { name: name.clone(), labels: meta.labels, origin: meta.origin };
    objects.namespaces.add(doc, name, namespace);
}

/// Returns the directions that a policy restricts. Without a statement these are ingress, and egress
/// if there are rules for it.
fn restricted<'d>(doc: &Doc<'d>, spec: &'d Node<'d>) -> Vec<Way> {
    let stated = doc.items(spec, "policyTypes");
    if stated.is_empty() {
        let has_egress = !doc.items(spec, "egress").is_empty();
        return [Way::Ingress].into_iter().chain(has_egress.then_some(Way::Egress)).collect();
    }
    let way = |node: &Node<'_>| match node.as_str() {
        Some("Ingress") => Some(Way::Ingress),
        Some("Egress") => Some(Way::Egress),
        _ => {
            doc.fault(node, format!("expected Ingress or Egress, found {}", node.describe()));
            None
        }
    };
    stated.iter().filter_map(way).collect()
}

fn rule<'d>(doc: &Doc<'d>, node: &'d Node<'d>, way: Way) -> PolicyRule {
    let known: &[&str] = match way {
        Way::Ingress => &["from", "ports"],
        Way::Egress => &["ports", "to"],
    };
    doc.spelled(node, known);
    PolicyRule {
        peers: doc.maps(node, way.peers()).filter_map(|item| peer(doc, item)).collect(),
        ports: doc.maps(node, "ports").filter_map(|item| port(doc, item)).collect(),
    }
}

fn peer<'d>(doc: &Doc<'d>, node: &'d Node<'d>) -> Option<PolicyPeer> {
    doc.spelled(node, &["ipBlock", "namespaceSelector", "podSelector"]);
    let block = doc.map(node, "ipBlock");
    let namespaces = selector::read(doc, node, "namespaceSelector");
    let pods = selector::read(doc, node, "podSelector");
    let Some(block) = block else {
        if namespaces.is_none() && pods.is_none() {
            doc.fault(node, "expected podSelector, namespaceSelector or ipBlock, found none");
            return None;
        }
        return Some(PolicyPeer::Pods { namespaces, pods });
    };
    if namespaces.is_some() || pods.is_some() {
        doc.fault(block, "an ipBlock cannot stand beside a podSelector or namespaceSelector");
        return None;
    }
    let net = doc.need::<IpNet>(block, "cidr");
    let mut except = Vec::new();
    for item in doc.items(block, "except") {
        let Some(out) = doc.value::<IpNet>(item) else { continue };
        if net.is_some_and(|net| !net.contains(&out) || net == out) {
            doc.fault(item, format!("expected a range within the cidr, found {}", item.describe()));
        }
        except.push(out);
    }
    Some(PolicyPeer::Range { net: net?, except })
}

fn port<'d>(doc: &Doc<'d>, node: &'d Node<'d>) -> Option<PolicyPort> {
    doc.spelled(node, &["endPort", "port", "protocol"]);
    let protocol = match node.get("protocol") {
        None => Protocol::Tcp,
        Some(stated) => doc.value(stated)?,
    };
    let last = node.get("endPort");
    let numbers = match node.get("port") {
        None => PortNumbers::All,
        Some(named) if matches!(named.value, Value::String(_)) => {
            PortNumbers::Named(doc.value::<Text>(named)?)
        }
        Some(number) => {
            let first: Port = doc.value(number)?;
            let end = match last {
                Some(last) => doc.value(last)?,
                None => first,
            };
            if end < first {
                let at = last.unwrap_or(number);
                doc.fault(at, format!("expected a port from {first} on, found {end}"));
                return None;
            }
            return Some(PolicyPort { protocol, numbers: PortNumbers::Range(first, end) });
        }
    };
    if let Some(last) = last {
        doc.fault(last, "an endPort needs a port that is a number");
        return None;
    }
    Some(PolicyPort { protocol, numbers })
}
