//! `DescribeTargets`.

use std::collections::BTreeSet;

use uturn_cloud_api::clb::{
    Backend, DescribeTargetsRequest, DescribeTargetsResponse, Filter, ListenerBackend, RuleTargets,
};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::address::address;
use crate::actions::{filter, find, time};
use crate::state::{Context, Listener, Rule, Target, TargetHolder, Transaction};

const FILTERS: [&str; 3] = ["location-id", "private-ip-address", "tag"];

/// `DescribeTargets`.
pub(in crate::actions) fn describe(
    transaction: &mut Transaction<'_>,
    request: &DescribeTargetsRequest,
) -> Result<DescribeTargetsResponse, ApiError> {
    let filters = request.filters.as_deref().unwrap_or_default();
    filter::check(filters, &FILTERS)?;
    // INF: the action has no special code for an unknown id.
    let missing = ErrorCode::InvalidParameter;
    let load_balancer = find::load_balancer(transaction, &request.load_balancer_id, missing)?;
    let ids = wanted(request.listener_ids.as_ref());
    let listeners = load_balancer.listeners.iter().filter(|listener| {
        ids.as_ref().is_none_or(|ids| ids.contains(listener.id.as_str()))
            && request.protocol.as_deref().is_none_or(|name| name == listener.protocol.as_str())
            && request.port.is_none_or(|port| port == i64::from(listener.port))
    });
    let listeners =
        listeners.map(|listener| written_listener(listener, filters, &transaction.context));
    Ok(DescribeTargetsResponse { listeners: Some(listeners.collect()) })
}

/// Returns the requested ids; `None` for all.
pub(super) fn wanted(ids: Option<&Vec<String>>) -> Option<BTreeSet<&str>> {
    let ids = ids.filter(|ids| !ids.is_empty())?;
    Some(ids.iter().map(String::as_str).collect())
}

fn written_listener(
    listener: &Listener,
    filters: &[Filter],
    context: &Context<'_>,
) -> ListenerBackend {
    let is_layer_7 = listener.protocol.is_layer_7();
    let rules = listener.rules.iter().filter(|rule| passes_location(rule, filters));
    ListenerBackend {
        listener_id: Some(listener.id.clone()),
        protocol: Some(listener.protocol.as_str().to_owned()),
        port: Some(listener.port.into()),
        end_port: Some(listener.end_port.map_or(0, i64::from)),
        rules: is_layer_7.then(|| {
            rules
                .map(|rule| RuleTargets {
                    location_id: Some(rule.id.clone()),
                    domain: Some(rule.domains.first().cloned().unwrap_or_default()),
                    url: Some(rule.url.clone()),
                    targets: Some(written_targets(&rule.targets, filters, context)),
                    function_targets: None,
                })
                .collect()
        }),
        targets: (!is_layer_7).then(|| written_targets(&listener.targets, filters, context)),
    }
}

fn passes_location(rule: &Rule, filters: &[Filter]) -> bool {
    let mut filters = filters.iter().filter(|filter| filter.name == "location-id");
    filters.all(|filter| filter.values.contains(&rule.id))
}

fn written_targets(targets: &[Target], filters: &[Filter], context: &Context<'_>) -> Vec<Backend> {
    let backends = targets.iter().map(|target| backend(target, context));
    backends
        .filter(|backend| {
            filters.iter().all(|filter| match filter.name.as_str() {
                "private-ip-address" => {
                    let mut addresses = backend.private_ip_addresses.iter().flatten();
                    addresses.any(|address| filter.values.contains(address))
                }
                "tag" => backend.tag.as_ref().is_some_and(|tag| filter.values.contains(tag)),
                _ => true,
            })
        })
        .collect()
}

fn backend(target: &Target, context: &Context<'_>) -> Backend {
    let address = address(target, context.inventory, context.region);
    let instance = match &target.holder {
        TargetHolder::Instance(id) => context.inventory.instance(context.region, id),
        TargetHolder::Interface(_) => None,
    };
    Backend {
        r#type: Some(
            match target.holder {
                TargetHolder::Instance(_) => "CVM",
                TargetHolder::Interface(_) => "ENI",
            }
            .to_owned(),
        ),
        instance_id: match &target.holder {
            TargetHolder::Instance(id) => Some(id.clone()),
            TargetHolder::Interface(_) => None,
        },
        port: Some(target.port.into()),
        weight: Some(target.weight.into()),
        public_ip_addresses: None,
        private_ip_addresses: Some(
            address.iter().map(|address| address.ip().to_string()).collect(),
        ),
        instance_name: instance.as_ref().map(|instance| instance.name.clone()),
        registered_time: Some(time::written(target.registered)),
        eni_id: None,
        tag: target.tag.clone(),
        zone: instance.and_then(|instance| instance.zone.clone()),
    }
}
