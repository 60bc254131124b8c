//! Sends the calls of a plan as requests.

use uturn_cloud_api::Action;
use uturn_cloud_api::clb::{
    BatchDeregisterTargetsRequest, BatchModifyTargetWeightRequest, BatchRegisterTargetsRequest,
    BatchTarget, CreateListenerRequest, CreateLoadBalancerSnatIpsRequest, CreateRuleRequest,
    DeleteLoadBalancerListenersRequest, DeleteLoadBalancerRequest, DeleteRewriteRequest,
    DeleteRuleRequest, ManualRewriteRequest, ModifyDomainAttributesRequest, ModifyListenerRequest,
    ModifyLoadBalancerAttributesRequest, ModifyRuleRequest, RewriteLocationMap, RsWeightRule,
    RuleInput, SetLoadBalancerSecurityGroupsRequest, SnatIp, Target,
};
use uturn_cloud_api::client::Answer;

use super::{Ids, RunError, created};
use crate::api::Api;
use crate::clb::{Certificate, Holder, LISTENER_NAME, RuleAt, SnatAddress};
use crate::plan::Call;
use crate::plan::call::{Binding, NewRedirect, NewRule};

/// The most targets of one listener or rule in a call that changes weights.
const MAX_OF_GROUP: usize = 50;

/// Performs a call, and stores the ids of the objects that it creates.
pub(super) async fn perform<A: Api>(api: &A, call: &Call, ids: &mut Ids) -> Result<(), RunError> {
    let balancer = ids.balancer.clone();
    match call {
        Call::CreateBalancer(request) => {
            let answer = send(api, call, &**request).await?;
            let found = answer.response.load_balancer_ids;
            ids.balancer = created(api, call, found, &answer.request_id).await?;
        }
        Call::DeleteBalancer => {
            // Without force, the API refuses to delete load balancers with many targets.
            let request = DeleteLoadBalancerRequest {
                load_balancer_ids: vec![balancer],
                force_delete: Some(true),
            };
            send(api, call, &request).await?;
        }
        Call::ModifyBalancer(settings) => {
            let request = ModifyLoadBalancerAttributesRequest {
                load_balancer_id: balancer,
                load_balancer_pass_to_target: settings.passes_to_target,
                ..ModifyLoadBalancerAttributesRequest::default()
            };
            send(api, call, &request).await?;
        }
        Call::SetSecurityGroups(groups) => {
            let request = SetLoadBalancerSecurityGroupsRequest {
                load_balancer_id: balancer,
                security_groups: Some(groups.clone()),
            };
            send(api, call, &request).await?;
        }
        Call::CreateSnatAddresses(addresses) => {
            let address = |address: &SnatAddress| SnatIp {
                subnet_id: address.subnet.clone(),
                ip: address.address.clone(),
            };
            let request = CreateLoadBalancerSnatIpsRequest {
                load_balancer_id: balancer,
                snat_ips: addresses.iter().map(address).collect(),
                number: None,
            };
            send(api, call, &request).await?;
        }
        Call::DeleteListeners(listeners) => {
            let request = DeleteLoadBalancerListenersRequest {
                load_balancer_id: balancer,
                listener_ids: Some(listeners.iter().map(|(_, id)| id.clone()).collect()),
            };
            send(api, call, &request).await?;
        }
        Call::DeleteRules { listener, rules } => {
            let request = DeleteRuleRequest {
                load_balancer_id: balancer,
                listener_id: listener.clone(),
                location_ids: Some(rules.iter().map(|(_, id)| id.clone()).collect()),
                ..DeleteRuleRequest::default()
            };
            send(api, call, &request).await?;
        }
        Call::CreateListener { .. } | Call::CreateRules { .. } => create(api, call, ids).await?,
        Call::ModifyListener { .. } | Call::ModifyRule { .. } | Call::ModifyDomain { .. } => {
            modify(api, call, balancer).await?;
        }
        Call::Redirect { .. } | Call::RemoveRedirects { .. } => redirect(api, call, ids).await?,
        Call::Register(_) | Call::Weigh(_) | Call::Deregister(_) => {
            change_targets(api, call, ids).await?;
        }
    }
    Ok(())
}

async fn send<A: Api, R: Action>(
    api: &A,
    call: &Call,
    request: &R,
) -> Result<Answer<R::Response>, RunError> {
    let failed = |error| RunError::Call { call: call.to_string(), error };
    api.call(request).await.map_err(failed)
}

async fn create<A: Api>(api: &A, call: &Call, ids: &mut Ids) -> Result<(), RunError> {
    let missing = |what: String| RunError::NoId { call: call.to_string(), what };
    match call {
        Call::CreateListener { key, protocol, settings, certificate, sni } => {
            let request = CreateListenerRequest {
                load_balancer_id: ids.balancer.clone(),
                ports: vec![key.port.into()],
                protocol: protocol.to_string(),
                listener_names: Some(vec![LISTENER_NAME.to_owned()]),
                health_check: settings.health_check.clone(),
                certificate: certificate.as_ref().map(Certificate::input),
                session_expire_time: settings.session_seconds,
                scheduler: settings.scheduler.clone(),
                sni_switch: sni.then_some(1),
                keepalive_enable: settings.keepalive.map(i64::from),
                snat_enable: settings.snat,
                deregister_target_rst: settings.resets_on_unbind,
                ..CreateListenerRequest::default()
            };
            let found = send(api, call, &request).await?.response.listener_ids;
            let id = found.and_then(|ids| ids.into_iter().next());
            ids.listeners.insert(*key, id.ok_or_else(|| missing(key.to_string()))?);
        }
        Call::CreateRules { listener, rules } => {
            let request = CreateRuleRequest {
                load_balancer_id: ids.balancer.clone(),
                listener_id: ids.listener(listener),
                rules: rules.iter().map(rule_input).collect(),
            };
            let found = send(api, call, &request).await?.response.location_ids.unwrap_or_default();
            for (position, rule) in rules.iter().enumerate() {
                let id = found.get(position).cloned();
                let at = RuleAt { listener: listener.key, rule: rule.key.clone() };
                ids.rules.insert(at, id.ok_or_else(|| missing(rule.key.to_string()))?);
            }
        }
        _ => {}
    }
    Ok(())
}

fn rule_input(rule: &NewRule) -> RuleInput {
    let NewRule { key, settings, domain } = rule;
    RuleInput {
        url: key.url.clone(),
        domain: Some(key.domain.clone()).filter(|domain| !domain.is_empty()),
        session_expire_time: settings.session_seconds,
        health_check: settings.health_check.clone(),
        certificate: domain.certificate.as_ref().map(Certificate::input),
        scheduler: settings.scheduler.clone(),
        forward_type: settings.forward_type.clone(),
        default_server: domain.is_default,
        http2: domain.http2,
        ..RuleInput::default()
    }
}

async fn modify<A: Api>(api: &A, call: &Call, balancer: String) -> Result<(), RunError> {
    match call {
        Call::ModifyListener { id, settings, certificate, turns_sni_on, .. } => {
            let request = ModifyListenerRequest {
                load_balancer_id: balancer,
                listener_id: id.clone(),
                session_expire_time: settings.session_seconds,
                health_check: settings.health_check.clone(),
                certificate: certificate.as_ref().map(Certificate::input),
                scheduler: settings.scheduler.clone(),
                sni_switch: turns_sni_on.then_some(1),
                keepalive_enable: settings.keepalive.map(i64::from),
                snat_enable: settings.snat,
                deregister_target_rst: settings.resets_on_unbind,
                ..ModifyListenerRequest::default()
            };
            send(api, call, &request).await?;
        }
        Call::ModifyRule { listener, id, settings, .. } => {
            let request = ModifyRuleRequest {
                load_balancer_id: balancer,
                listener_id: listener.clone(),
                location_id: id.clone(),
                health_check: settings.health_check.clone(),
                scheduler: settings.scheduler.clone(),
                session_expire_time: settings.session_seconds,
                forward_type: settings.forward_type.clone(),
                ..ModifyRuleRequest::default()
            };
            send(api, call, &request).await?;
        }
        Call::ModifyDomain { listener, domain, settings } => {
            let request = ModifyDomainAttributesRequest {
                load_balancer_id: balancer,
                listener_id: listener.clone(),
                domain: domain.clone(),
                certificate: settings.certificate.as_ref().map(Certificate::input),
                http2: settings.http2,
                default_server: settings.is_default,
                ..ModifyDomainAttributesRequest::default()
            };
            send(api, call, &request).await?;
        }
        _ => {}
    }
    Ok(())
}

async fn redirect<A: Api>(api: &A, call: &Call, ids: &Ids) -> Result<(), RunError> {
    match call {
        Call::Redirect { from, to, rules } => {
            let map = |redirect: &NewRedirect| RewriteLocationMap {
                source_location_id: ids.rule(&redirect.from),
                target_location_id: ids.rule(&redirect.to),
                rewrite_code: Some(redirect.code.into()),
                take_url: Some(redirect.keeps_url),
                ..RewriteLocationMap::default()
            };
            let request = ManualRewriteRequest {
                load_balancer_id: ids.balancer.clone(),
                source_listener_id: ids.listener(from),
                target_listener_id: ids.listener(to),
                rewrite_infos: rules.iter().map(map).collect(),
            };
            send(api, call, &request).await?;
        }
        Call::RemoveRedirects { from, to, rules } => {
            let map = |(_, from, to): &(_, String, String)| RewriteLocationMap {
                source_location_id: from.clone(),
                target_location_id: to.clone(),
                ..RewriteLocationMap::default()
            };
            let request = DeleteRewriteRequest {
                load_balancer_id: ids.balancer.clone(),
                source_listener_id: from.clone(),
                target_listener_id: to.clone(),
                rewrite_infos: rules.iter().map(map).collect(),
            };
            send(api, call, &request).await?;
        }
        _ => {}
    }
    Ok(())
}

async fn change_targets<A: Api>(api: &A, call: &Call, ids: &Ids) -> Result<(), RunError> {
    let load_balancer_id = ids.balancer.clone();
    match call {
        Call::Register(bindings) => {
            let targets = bindings.iter().map(|binding| batch_target(binding, ids, true)).collect();
            let request = BatchRegisterTargetsRequest { load_balancer_id, targets };
            let failed = send(api, call, &request).await?.response.fail_listener_id_set;
            all_done(call, failed)
        }
        Call::Deregister(bindings) => {
            let targets =
                bindings.iter().map(|binding| batch_target(binding, ids, false)).collect();
            let request = BatchDeregisterTargetsRequest { load_balancer_id, targets };
            let failed = send(api, call, &request).await?.response.fail_listener_id_set;
            all_done(call, failed)
        }
        Call::Weigh(bindings) => {
            let modify_list = weight_rules(bindings, ids);
            let request = BatchModifyTargetWeightRequest { load_balancer_id, modify_list };
            send(api, call, &request).await.map(drop)
        }
        _ => Ok(()),
    }
}

/// Returns an error if a batch failed for some of its listeners.
fn all_done(call: &Call, failed: Option<Vec<String>>) -> Result<(), RunError> {
    match failed.unwrap_or_default() {
        failed if failed.is_empty() => Ok(()),
        failed => Err(RunError::Partial { call: call.to_string(), listeners: failed }),
    }
}

fn batch_target(binding: &Binding, ids: &Ids, has_weight: bool) -> BatchTarget {
    let (instance_id, eni_ip) = holder(&binding.target.holder);
    BatchTarget {
        listener_id: ids.listener(&binding.listener),
        port: binding.target.port.into(),
        instance_id,
        eni_ip,
        weight: has_weight.then(|| binding.weight.into()),
        location_id: binding.rule.as_ref().map(|rule| ids.rule(rule)),
        tag: None,
    }
}

fn holder(holder: &Holder) -> (Option<String>, Option<String>) {
    match holder {
        Holder::Instance(id) => (Some(id.clone()), None),
        Holder::Interface(address) => (None, Some(address.to_string())),
    }
}

/// Groups bindings by listener and rule.
fn weight_rules(bindings: &[Binding], ids: &Ids) -> Vec<RsWeightRule> {
    let mut rules: Vec<RsWeightRule> = Vec::new();
    for binding in bindings {
        let listener_id = ids.listener(&binding.listener);
        let location_id = binding.rule.as_ref().map(|rule| ids.rule(rule));
        let (instance_id, eni_ip) = holder(&binding.target.holder);
        let target = Target {
            port: binding.target.port.into(),
            instance_id,
            eni_ip,
            weight: Some(binding.weight.into()),
            ..Target::default()
        };
        match rules.last_mut() {
            Some(last)
                if last.listener_id == listener_id
                    && last.location_id == location_id
                    && last.targets.len() < MAX_OF_GROUP =>
            {
                last.targets.push(target);
            }
            _ => rules.push(RsWeightRule {
                listener_id,
                location_id,
                targets: vec![target],
                ..RsWeightRule::default()
            }),
        }
    }
    rules
}
