//! Reads ClientTrafficPolicies of Envoy Gateway: whether connections to the listeners of Gateways
//! begin with a PROXY header.

use uturn_document::Node;
use uturn_model::{Labels, Name, NamespacedName, Origin, Selector, Text};

use super::objects::Objects;
use super::{Doc, meta, selector};

/// A ClientTrafficPolicy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClientTrafficPolicy {
    pub(crate) name: NamespacedName,
    pub(crate) targets: Vec<Target>,
    pub(crate) effect: Effect,
    pub(crate) origin: Origin,
}

/// The Gateways to which a policy applies.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Target {
    /// A Gateway of the policy's namespace, or one of its listeners.
    Named { gateway: Name, section: Option<Text> },
    /// The Gateways with these labels, in the policy's namespace or also elsewhere.
    Labelled { selector: Selector, elsewhere: bool },
}

/// The effect of a policy on the beginning of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Connections must not begin with a PROXY header.
    None,
    /// Connections may begin with a PROXY header.
    Accepts,
    /// Connections must begin with a PROXY header.
    Requires,
    /// The effect is not known: the controller did not accept all of the policy.
    Unknown,
}

/// The way in which a policy reaches a listener, least specific first: the most specific policy
/// decides alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// The policy may apply to the Gateway: a grant would decide.
    Doubtful,
    /// The policy applies to all listeners of the Gateway.
    Gateway,
    /// The policy names the listener.
    Listener,
}

impl ClientTrafficPolicy {
    /// Returns the most specific way in which the policy reaches a listener of a Gateway, if any.
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

/// Returns whether the policy's status states that the controller did not accept it for a Gateway
/// or listener.
fn is_refused(doc: &Doc<'_>) -> bool {
    let Some(status) = doc.map(doc.root, "status") else { return false };
    let mut conditions =
        doc.maps(status, "ancestors").flat_map(|ancestor| doc.maps(ancestor, "conditions"));
    let is = |item: &Node<'_>, key, value| item.get(key).and_then(Node::as_str) == Some(value);
    conditions.any(|item| is(item, "type", "Accepted") && is(item, "status", "False"))
}
