//! `DescribeLBListeners`: the listeners and rules that have a target.

use std::net::IpAddr;

use uturn_cloud_api::clb::{
    DescribeLBListenersRequest, DescribeLBListenersResponse, LBItem, LbRsItem, LbRsTargets,
    ListenerItem, RulesItems,
};
use uturn_cloud_api::wire::error::ApiError;

use super::address::address;
use crate::actions::check;
use crate::state::{Context, Listener, LoadBalancer, Target, TargetHolder, Transaction};

/// The most targets of a request.
const MAX_BACKENDS: usize = 20;

/// `DescribeLBListeners`: lists the listeners and rules of the request's region that have one of
/// the targets.
pub(in crate::actions) fn describe(
    transaction: &mut Transaction<'_>,
    request: &DescribeLBListenersRequest,
) -> Result<DescribeLBListenersResponse, ApiError> {
    check::count("Backends", &request.backends, 1..=MAX_BACKENDS)?;
    let context = &transaction.context;
    let load_balancers = transaction.load_balancers().into_values();
    let found = load_balancers.filter_map(|known| item(known, &request.backends, context));
    Ok(DescribeLBListenersResponse { load_balancers: Some(found.collect()) })
}

/// Returns the listeners and rules of a load balancer with these targets; `None` if it has none.
fn item(
    load_balancer: &LoadBalancer,
    wanted: &[LbRsItem],
    context: &Context<'_>,
) -> Option<LBItem> {
    let is_of_network = |wanted: &&LbRsItem| wanted.vpc_id == load_balancer.vpc;
    let addresses = wanted.iter().filter(is_of_network);
    let addresses: Vec<IpAddr> =
        addresses.filter_map(|wanted| wanted.private_ip.parse().ok()).collect();
    let listeners = load_balancer.listeners.iter();
    let listeners: Vec<ListenerItem> =
        listeners.filter_map(|listener| listener_item(listener, &addresses, context)).collect();
    (!listeners.is_empty()).then(|| LBItem {
        load_balancer_id: Some(load_balancer.id.clone()),
        vip: load_balancer.addresses.first().map(ToString::to_string),
        listeners: Some(listeners),
        region: Some(context.region.to_owned()),
    })
}

fn listener_item(
    listener: &Listener,
    addresses: &[IpAddr],
    context: &Context<'_>,
) -> Option<ListenerItem> {
    let targets = targets(&listener.targets, addresses, context);
    let rules: Vec<RulesItems> = listener
        .rules
        .iter()
        .filter_map(|rule| {
            let targets = self::targets(&rule.targets, addresses, context);
            (!targets.is_empty()).then(|| RulesItems {
                location_id: Some(rule.id.clone()),
                domain: rule.domains.first().cloned(),
                url: Some(rule.url.clone()),
                targets: Some(targets),
            })
        })
        .collect();
    (!targets.is_empty() || !rules.is_empty()).then(|| ListenerItem {
        listener_id: Some(listener.id.clone()),
        protocol: Some(listener.protocol.as_str().to_owned()),
        port: Some(listener.port.into()),
        rules: (!rules.is_empty()).then_some(rules),
        targets: (!targets.is_empty()).then_some(targets),
        end_port: Some(listener.end_port.map_or(0, i64::from)),
    })
}

fn targets(known: &[Target], addresses: &[IpAddr], context: &Context<'_>) -> Vec<LbRsTargets> {
    let known = known.iter().filter_map(|target| {
        let found = address(target, context.inventory, context.region)?;
        let is_instance = matches!(target.holder, TargetHolder::Instance(_));
        addresses.contains(&found.ip()).then(|| LbRsTargets {
            r#type: Some(if is_instance { "CVM" } else { "ENI" }.to_owned()),
            private_ip: Some(found.ip().to_string()),
            port: Some(target.port.into()),
            vpc_id: None,
            weight: Some(target.weight.into()),
        })
    });
    known.collect()
}
