//! ClientTrafficPolicies of Envoy Gateway: whether connections to the listeners of Gateways begin with
//! a PROXY header.

use uturn_model::{Labels, Name, NamespacedName, Origin, Selector, Text};

use super::objects::Objects;
use super::{Doc, meta, selector};
use crate::document::Node;

/// A ClientTrafficPolicy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClientTrafficPolicy {
    pub(crate) name: NamespacedName,
    pub(crate) targets: Vec<Target>,
    pub(crate) effect: Effect,
    pub(crate) origin: Origin,
}

/// What a policy is for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Target {
    /// A Gateway of its namespace, or one of the listeners of it.
    Named { gateway: Name, section: Option<Text> },
    /// The Gateways with these labels: of its namespace, or of others too.
    Labelled { selector: Selector, elsewhere: bool },
}

/// What a policy makes of the beginning of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// No header may be there.
    None,
    /// A header may be there.
    Accepts,
    /// A header has to be there.
    Requires,
    /// Its controller did not accept all of it.
    Unknown,
}

/// How close a policy is to a listener: the closest one decides alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// It may be for the Gateway: a grant would decide.
    Doubtful,
    /// It is for all listeners of the Gateway.
    Gateway,
    /// It names the listener.
    Listener,
}

impl ClientTrafficPolicy {
    /// How it reaches a listener of a Gateway, if it does.
    pub(crate) fn reach(
        &self,
        gateway: &NamespacedName,
        labels: &Labels,
        listener: &str,
    ) -> Option<Reach> {
        let is_beside = gateway.namespace == self.name.namespace;
        let by_target = self.targets.iter().filter_map(|target| match target {
            Target::Named { gateway: name, section } => {
                let is_it = is_beside && *name == gateway.name;
                match section {
                    None => is_it.then_some(Reach::Gateway),
                    Some(section) => (is_it && **section == *listener).then_some(Reach::Listener),
                }
            }
            Target::Labelled { selector, elsewhere } => match selector.matches(labels) {
                true if is_beside => Some(Reach::Gateway),
                true if *elsewhere => Some(Reach::Doubtful),
                _ => None,
            },
        });
        by_target.max()
    }
}

/// Reads a ClientTrafficPolicy.
pub(crate) fn read(doc: &Doc<'_>, objects: &mut Objects) {
    let meta = meta::read(doc);
    let Some(spec) = doc.need_map(doc.root, "spec") else { return };
    let one = doc.map(spec, "targetRef");
    let named = one.into_iter().chain(doc.maps(spec, "targetRefs")).filter_map(|item| {
        let section = doc.read::<Text>(item, "sectionName").filter(|name| !name.is_empty());
        is_gateway(item).then_some(())?;
        Some(Target::Named { gateway: doc.need(item, "name")?, section })
    });
    let mut targets: Vec<Target> = named.collect();
    for item in doc.maps(spec, "targetSelectors").filter(|item| is_gateway(item)) {
        let from = doc.map(item, "namespaces").and_then(|all| all.get("from")?.as_str());
        let elsewhere = from.is_some_and(|from| from != "Same");
        targets.push(Target::Labelled { selector: selector::of(doc, item), elsewhere });
    }
    let effect = match doc.map(spec, "proxyProtocol") {
        _ if is_refused(doc) => Effect::Unknown,
        Some(settings) if doc.read::<bool>(settings, "optional") == Some(true) => Effect::Accepts,
        Some(_) => Effect::Requires,
        None if doc.read::<bool>(spec, "enableProxyProtocol") == Some(true) => Effect::Requires,
        None => Effect::None,
    };
    let Some(meta) = meta else { return };
    let policy = ClientTrafficPolicy { name: meta.name, targets, effect, origin: meta.origin };
    objects.client_traffic_policies.add(doc, policy.name.clone(), policy);
}

fn is_gateway(target: &Node<'_>) -> bool {
    target.get("kind").and_then(Node::as_str) == Some("Gateway")
}

/// Whether the controller says of a Gateway or a listener that it did not accept the policy for it.
fn is_refused(doc: &Doc<'_>) -> bool {
    let Some(status) = doc.map(doc.root, "status") else { return false };
    let mut conditions =
        doc.maps(status, "ancestors").flat_map(|ancestor| doc.maps(ancestor, "conditions"));
    let is = |item: &Node<'_>, key, value| item.get(key).and_then(Node::as_str) == Some(value);
    conditions.any(|item| is(item, "type", "Accepted") && is(item, "status", "False"))
}
