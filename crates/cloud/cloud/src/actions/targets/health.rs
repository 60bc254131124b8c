//! `DescribeTargetHealth`.

use uturn_cloud_api::clb::{
    DescribeTargetHealthRequest, DescribeTargetHealthResponse, ListenerHealth, LoadBalancerHealth,
    RuleHealth, TargetHealth,
};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::address::address;
use super::describe::wanted;
use crate::actions::{check, find};
use crate::health::{HealthOf, TargetState};
use crate::state::{Context, Listener, LoadBalancer, Target, TargetHolder, TargetsOf, Transaction};

/// The most load balancers of a request.
const MAX_LOAD_BALANCERS: usize = 30;

/// `DescribeTargetHealth`: returns the last health of each target that the data plane found.
pub(in crate::actions) fn describe_health(
    transaction: &mut Transaction<'_>,
    request: &DescribeTargetHealthRequest,
) -> Result<DescribeTargetHealthResponse, ApiError> {
    check::count("LoadBalancerIds", &request.load_balancer_ids, 1..=MAX_LOAD_BALANCERS)?;
    let listeners = wanted(request.listener_ids.as_ref());
    let rules = wanted(request.location_ids.as_ref());
    let mut load_balancers = Vec::new();
    for id in &request.load_balancer_ids {
        let load_balancer = find::load_balancer(transaction, id, ErrorCode::LbIdNotFound)?;
        let listed = load_balancer.listeners.iter().filter(|listener| {
            listeners.as_ref().is_none_or(|ids| ids.contains(listener.id.as_str()))
        });
        let listed = listed.map(|listener| {
            let groups = listener.groups().into_iter().filter(|group| {
                let id = group.rule.map(|rule| rule.id.as_str());
                rules.as_ref().is_none_or(|ids| id.is_none_or(|id| ids.contains(id)))
            });
            let groups = groups
                .map(|group| rule_health(load_balancer, listener, group, &transaction.context));
            ListenerHealth {
                listener_id: Some(listener.id.clone()),
                listener_name: Some(listener.name.clone()),
                protocol: Some(listener.protocol.as_str().to_owned()),
                port: Some(listener.port.into()),
                rules: Some(groups.collect()),
            }
        });
        load_balancers.push(LoadBalancerHealth {
            load_balancer_id: Some(id.clone()),
            load_balancer_name: Some(load_balancer.name.clone()),
            listeners: Some(listed.collect()),
        });
    }
    Ok(DescribeTargetHealthResponse { load_balancers: Some(load_balancers) })
}

/// Returns the health of a group of targets. A listener on layer 4 has one group, without domain
/// and URL.
fn rule_health(
    load_balancer: &LoadBalancer,
    listener: &Listener,
    group: TargetsOf<'_>,
    context: &Context<'_>,
) -> RuleHealth {
    let is_probed = match group.rule {
        Some(rule) => rule.health_check.enabled,
        None => listener.health_check.as_ref().is_some_and(|check| check.enabled),
    };
    let targets = group.targets.iter().map(|target| {
        let address = address(target, context.inventory, context.region);
        let state = match address {
            _ if !is_probed => TargetState::NotProbed,
            None => TargetState::Unknown,
            Some(address) => context.health.state(&HealthOf {
                load_balancer: &load_balancer.id,
                listener: &listener.id,
                rule: group.rule.map(|rule| rule.id.as_str()),
                address,
            }),
        };
        target_health(target, address.map(|address| address.ip().to_string()), state)
    });
    RuleHealth {
        location_id: group.rule.map(|rule| rule.id.clone()),
        domain: group.rule.map(|rule| rule.domains.first().cloned().unwrap_or_default()),
        url: group.rule.map(|rule| rule.url.clone()),
        rule_id: None,
        targets: Some(targets.collect()),
    }
}

/// Returns the health of a target. The detail has both spellings of its name, because clients read
/// either.
fn target_health(target: &Target, ip: Option<String>, state: TargetState) -> TargetHealth {
    let detail = Some(state.detail().to_owned());
    TargetHealth {
        ip: ip.clone(),
        port: Some(target.port.into()),
        health_status: Some(state == TargetState::Alive),
        target_id: match &target.holder {
            TargetHolder::Instance(id) => Some(id.clone()),
            TargetHolder::Interface(_) => ip,
        },
        health_status_detail: detail.clone(),
        health_status_detial: detail,
        target_group_id: None,
        weight: Some(target.weight.into()),
    }
}
