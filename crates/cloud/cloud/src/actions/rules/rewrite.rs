//! `ManualRewrite`, `DeleteRewrite` and `DescribeRewrite`.

use uturn_cloud_api::clb::{
    DeleteRewriteRequest, DeleteRewriteResponse, DescribeRewriteRequest, DescribeRewriteResponse,
    ManualRewriteRequest, ManualRewriteResponse, RewriteLocationMap,
};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::{redirections, view};
use crate::actions::check::{parameter_error, value_error};
use crate::actions::find;
use crate::state::{Listener, LoadBalancer, Redirection, Transaction};

/// `ManualRewrite`: redirects rules of one listener to rules of another, all of them or none.
pub(in crate::actions) fn create(
    transaction: &mut Transaction<'_>,
    request: &ManualRewriteRequest,
) -> Result<ManualRewriteResponse, ApiError> {
    if request.rewrite_infos.is_empty() {
        return Err(value_error("the parameter `RewriteInfos` is empty"));
    }
    let id = &request.load_balancer_id;
    let load_balancer = transaction.load_balancer_mut(id, ErrorCode::LbIdNotFound)?;
    let (source, target) = (&request.source_listener_id, &request.target_listener_id);
    for map in &request.rewrite_infos {
        check_map(load_balancer, source, target, map)?;
        let redirection = Redirection {
            listener: target.clone(),
            rule: map.target_location_id.clone(),
            code: redirections::code(map.rewrite_code)?,
            keeps_url: map.take_url.unwrap_or(false),
            is_automatic: false,
        };
        redirections::add(load_balancer, &map.source_location_id, redirection)?;
    }
    Ok(ManualRewriteResponse {})
}

fn check_map(
    load_balancer: &LoadBalancer,
    source: &str,
    target: &str,
    map: &RewriteLocationMap,
) -> Result<(), ApiError> {
    let source = layer_7(load_balancer, source)?;
    let target = layer_7(load_balancer, target)?;
    let rule = find::rule(source, &map.source_location_id, ErrorCode::LocationNotFound)?;
    find::rule(target, &map.target_location_id, ErrorCode::LocationNotFound)?;
    if let Some(domain) = &map.source_domain
        && !rule.domains.contains(domain)
    {
        let id = &rule.id;
        return Err(parameter_error(format!("the rule {id} is not for {domain} (`SourceDomain`)")));
    }
    Ok(())
}

/// Returns the listener with this id, if it has rules.
pub(super) fn layer_7<'l>(
    load_balancer: &'l LoadBalancer,
    id: &str,
) -> Result<&'l Listener, ApiError> {
    let listener = find::listener(load_balancer, id, ErrorCode::ListenerIdNotFound)?;
    if listener.protocol.is_layer_7() {
        return Ok(listener);
    }
    let message = format!("the {} listener {id} has no rules", listener.protocol.as_str());
    Err(ApiError::new(ErrorCode::ProtocolCheckFailed, message))
}

/// `DeleteRewrite`: deletes all of the redirections or none. The action has no code for unknown
/// listeners and rules, so that those give the error for an unknown redirection.
pub(in crate::actions) fn delete(
    transaction: &mut Transaction<'_>,
    request: &DeleteRewriteRequest,
) -> Result<DeleteRewriteResponse, ApiError> {
    if request.rewrite_infos.is_empty() {
        return Err(value_error("the parameter `RewriteInfos` is empty"));
    }
    let id = &request.load_balancer_id;
    let load_balancer = transaction.load_balancer_mut(id, ErrorCode::LbIdNotFound)?;
    let mut source = load_balancer.listener_mut(&request.source_listener_id);
    for map in &request.rewrite_infos {
        let rules = source.as_mut().map(|listener| listener.rules.iter_mut());
        let rule = rules.and_then(|mut rules| rules.find(|rule| rule.id == map.source_location_id));
        let removed = rule.and_then(|rule| {
            rule.redirection.take_if(|redirection| {
                redirection.listener == request.target_listener_id
                    && redirection.rule == map.target_location_id
            })
        });
        if removed.is_none() {
            let message = format!(
                "there is no redirection from {} to {}",
                map.source_location_id, map.target_location_id
            );
            return Err(ApiError::new(ErrorCode::SomeRewriteNotFound, message));
        }
    }
    Ok(DeleteRewriteResponse {})
}

/// `DescribeRewrite`: lists the rules that are redirected.
pub(in crate::actions) fn describe(
    transaction: &mut Transaction<'_>,
    request: &DescribeRewriteRequest,
) -> Result<DescribeRewriteResponse, ApiError> {
    let id = &request.load_balancer_id;
    let load_balancer = find::load_balancer(transaction, id, ErrorCode::LbIdNotFound)?;
    let listeners = request.source_listener_ids.clone().unwrap_or_default();
    let rules = request.source_location_ids.clone().unwrap_or_default();
    let is_wanted = |wanted: &[String], id: &String| wanted.is_empty() || wanted.contains(id);
    let mut rewrite_set = Vec::new();
    for listener in &load_balancer.listeners {
        if !is_wanted(&listeners, &listener.id) {
            continue;
        }
        let redirected = listener.rules.iter().filter(|rule| rule.redirection.is_some());
        let redirected = redirected.filter(|rule| is_wanted(&rules, &rule.id));
        rewrite_set.extend(redirected.map(|rule| view::view(listener, rule)));
    }
    Ok(DescribeRewriteResponse { rewrite_set: Some(rewrite_set) })
}
