//! `ModifyRule`.

use uturn_cloud_api::clb::{ModifyRuleRequest, ModifyRuleResponse};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::create::{check_forward_type, check_free, rule_session, scheduler};
use super::domain;
use crate::actions::check::{self, given, missing, value_error};
use crate::actions::find;
use crate::actions::health_check::{self, Checked};
use crate::state::{IpVersion, Transaction};

/// The code for unknown ids.
const MISSING: ErrorCode = ErrorCode::InvalidParameter;

/// `ModifyRule`. Settings that the request leaves out stay as they are.
pub(in crate::actions) fn modify(
    transaction: &mut Transaction<'_>,
    request: &ModifyRuleRequest,
) -> Result<ModifyRuleResponse, ApiError> {
    check_request(request)?;
    let load_balancer = transaction.load_balancer_mut(&request.load_balancer_id, MISSING)?;
    let is_v6 = load_balancer.ip_version != IpVersion::V4;
    let listener = find::listener_mut(load_balancer, &request.listener_id, MISSING)?;
    let protocol = listener.protocol;
    let rule = find::rule(listener, &request.location_id, MISSING)?;
    if let Some(url) = given(request.url.as_ref()) {
        domain::check_url("Url", url)?;
        check_free(listener, &rule.domains, url, Some(&rule.id))?;
    }
    let rule = find::rule_mut(listener, &request.location_id, MISSING)?;
    if let Some(url) = given(request.url.as_ref()) {
        url.clone_into(&mut rule.url);
    }
    if let Some(forward_type) = given(request.forward_type.as_ref()) {
        check_forward_type(forward_type, protocol)?;
        forward_type.clone_into(&mut rule.forward_type);
    }
    if let Some(input) = &request.health_check {
        let checked = Checked { protocol, forward_type: Some(&rule.forward_type), is_v6 };
        rule.health_check = health_check::read(Some(input), Some(&rule.health_check), checked)?;
    }
    if let Some(seconds) = request.session_expire_time {
        rule.session_seconds = rule_session(seconds)?;
    }
    rule.scheduler = scheduler(request.scheduler.as_ref())?.unwrap_or(rule.scheduler);
    if let Some(cookie) = &request.cookie_name {
        rule.cookie = Some(check::cookie(cookie)?).filter(|cookie| !cookie.is_empty());
    }
    Ok(ModifyRuleResponse {})
}

fn check_request(request: &ModifyRuleRequest) -> Result<(), ApiError> {
    let empty = ModifyRuleRequest {
        load_balancer_id: request.load_balancer_id.clone(),
        listener_id: request.listener_id.clone(),
        location_id: request.location_id.clone(),
        ..ModifyRuleRequest::default()
    };
    if *request == empty {
        return Err(missing("Url"));
    }
    let wants_authorization = request
        .o_auth
        .as_ref()
        .is_some_and(|authorization| authorization.o_auth_enable == Some(true));
    if wants_authorization {
        return Err(value_error("this server does not offer the parameter `OAuth`"));
    }
    Ok(())
}
