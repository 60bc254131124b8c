//! Determines whether the pods of a Gateway expect a PROXY header, by objects of its controller's
//! own kinds.

use uturn_model::controller::ProxyExpectation;

use crate::decode::client_traffic::{ClientTrafficPolicy, Effect, Reach};
use crate::decode::gateway::{Gateway, GatewayListener, Parameters};
use crate::decode::objects::Objects;

/// Returns what Envoy Gateway's proxies expect at a listener: the most specific policy decides, and
/// without a policy they expect no header.
pub(super) fn of_envoy_gateway(
    objects: &Objects,
    gateway: &Gateway,
    listener: &GatewayListener,
) -> ProxyExpectation {
    let policies = objects.client_traffic_policies.0.values();
    let reaching: Vec<(Reach, &ClientTrafficPolicy)> = policies
        .filter_map(|policy| {
            Some((policy.reach(&gateway.name, &gateway.labels, &listener.name)?, policy))
        })
        .collect();
    let is_known = |reach: &&(Reach, _)| reach.0 != Reach::Doubtful;
    let closest = reaching.iter().filter(is_known).map(|(reach, _)| *reach).max();
    let mut found = reaching.iter().filter(|(reach, _)| Some(*reach) == closest);
    // A policy of another namespace would compete with policies for all listeners.
    let doubtful = reaching.iter().find(|(reach, _)| *reach == Reach::Doubtful);
    if let Some((_, policy)) = doubtful.filter(|_| closest != Some(Reach::Listener)) {
        let why =
            format!("ClientTrafficPolicy {} may be for Gateway {}", policy.name, gateway.name);
        return ProxyExpectation::Unknown(why.into());
    }
    let Some((_, first)) = found.next() else { return without_policy(objects) };
    // The oldest of several policies decides, but their age is not read.
    if let Some((_, other)) = found.find(|(_, other)| other.effect != first.effect) {
        let why = format!("ClientTrafficPolicies {} and {} differ", first.name, other.name);
        return ProxyExpectation::Unknown(why.into());
    }
    match first.effect {
        Effect::Requires => ProxyExpectation::Required(Vec::new()),
        Effect::Accepts => ProxyExpectation::Accepted(Vec::new()),
        Effect::Unknown => {
            let why = format!("ClientTrafficPolicy {} was not accepted", first.name);
            ProxyExpectation::Unknown(why.into())
        }
        Effect::None if closest == Some(Reach::Listener) => ProxyExpectation::NotExpected,
        Effect::None => without_policy(objects),
    }
}

/// Returns the expectation if no given policy asks for a header.
fn without_policy(objects: &Objects) -> ProxyExpectation {
    const PATCHES: &str = "EnvoyPatchPolicy";
    if objects.skipped().iter().any(|skipped| skipped.kind.ends_with(PATCHES)) {
        return ProxyExpectation::Unasked(PATCHES.into());
    }
    if objects.has_all("ClientTrafficPolicies") {
        ProxyExpectation::NotExpected
    } else {
        ProxyExpectation::Unasked("ClientTrafficPolicy".into())
    }
}

/// Returns what the data plane of NGINX Gateway Fabric expects: the settings of the Gateway decide,
/// or else those of its class.
pub(super) fn of_nginx_gateway_fabric(objects: &Objects, gateway: &Gateway) -> ProxyExpectation {
    const KIND: &str = "NginxProxy";
    let Some(class) = objects.gateway_classes.0.get(&*gateway.class) else {
        return ProxyExpectation::Unknown(format!("give GatewayClass {}", gateway.class).into());
    };
    let named = |parameters: &Option<Parameters>| {
        parameters.as_ref().filter(|own| *own.kind == *KIND).map(|own| own.name.clone())
    };
    for name in [&gateway.parameters, &class.parameters].into_iter().filter_map(named) {
        let Some(settings) = objects.nginx_proxies.0.get(&name) else {
            return ProxyExpectation::Unknown(format!("give {KIND} {name}").into());
        };
        match settings.has_header {
            Some(true) => return ProxyExpectation::Required(Vec::new()),
            Some(false) => return ProxyExpectation::NotExpected,
            None => {}
        }
    }
    ProxyExpectation::NotExpected
}
