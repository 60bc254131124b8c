//! `ModifyDomain` and `ModifyDomainAttributes`.

use uturn_cloud_api::clb::{
    ModifyDomainAttributesRequest, ModifyDomainAttributesResponse, ModifyDomainRequest,
    ModifyDomainResponse,
};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::create::check_listener;
use super::domain::{self, DomainSettings};
use crate::actions::check::{given, missing, parameter_error};
use crate::actions::{certificates, find};
use crate::state::{Listener, Transaction};

/// The longest new domains.
const MAX_LENGTH: usize = 120;
/// The code for unknown ids.
const MISSING: ErrorCode = ErrorCode::InvalidParameter;

/// `ModifyDomain`: renames one domain in all of its rules.
pub(in crate::actions) fn rename(
    transaction: &mut Transaction<'_>,
    request: &ModifyDomainRequest,
) -> Result<ModifyDomainResponse, ApiError> {
    domain::check_domain("NewDomain", &request.new_domain, MAX_LENGTH)?;
    let load_balancer = transaction.load_balancer_mut(&request.load_balancer_id, MISSING)?;
    let listener = find::listener_mut(load_balancer, &request.listener_id, MISSING)?;
    check_listener(listener)?;
    let group = domain::group(listener, &request.domain)?;
    let renamed = group.iter().map(|domain| {
        if *domain == request.domain { request.new_domain.clone() } else { domain.clone() }
    });
    let renamed: Vec<String> = renamed.collect();
    replace(listener, &group, &renamed)?;
    Ok(ModifyDomainResponse {})
}

/// `ModifyDomainAttributes`: changes the settings that the rules of a domain share.
pub(in crate::actions) fn modify(
    transaction: &mut Transaction<'_>,
    request: &ModifyDomainAttributesRequest,
) -> Result<ModifyDomainAttributesResponse, ApiError> {
    let id = &request.load_balancer_id;
    let load_balancer = find::load_balancer(transaction, id, MISSING)?;
    let listener = find::listener(load_balancer, &request.listener_id, MISSING)?;
    check_listener(listener)?;
    let group = domain::group(listener, &request.domain)?;
    let new_domains = new_domains(transaction, request)?;
    let (single, several) = (request.certificate.as_ref(), request.multi_cert_info.as_ref());
    let settings = DomainSettings {
        certificate: certificates::read(transaction, single, several)?,
        http2: request.http2,
        quic: request.quic,
    };
    let load_balancer = transaction.load_balancer_mut(id, MISSING)?;
    let listener = find::listener_mut(load_balancer, &request.listener_id, MISSING)?;
    settings.apply(listener, &group)?;
    change_default(listener, &group, request)?;
    if let Some(new_domains) = new_domains {
        replace(listener, &group, &new_domains)?;
    }
    Ok(ModifyDomainAttributesResponse {})
}

fn new_domains(
    transaction: &Transaction<'_>,
    request: &ModifyDomainAttributesRequest,
) -> Result<Option<Vec<String>>, ApiError> {
    let (single, several) = (request.new_domain.as_ref(), request.new_domains.as_ref());
    if given(single).is_none() && several.is_none_or(Vec::is_empty) {
        return Ok(None);
    }
    let load_balancer = find::load_balancer(transaction, &request.load_balancer_id, MISSING)?;
    let (single, several) = (("NewDomain", single), ("NewDomains", several));
    domain::named(load_balancer, single, several, MAX_LENGTH).map(Some)
}

/// Replaces the domains of a group, unless other rules have one of the new domains.
fn replace(
    listener: &mut Listener,
    group: &[String],
    new_domains: &[String],
) -> Result<(), ApiError> {
    let is_of_group = |domains: &[String]| domain::is_same(domains, group);
    let others = listener.rules.iter().filter(|rule| !is_of_group(&rule.domains));
    for domain in others.flat_map(|rule| &rule.domains) {
        if new_domains.contains(domain) {
            return Err(parameter_error(format!("the domain {domain} exists already")));
        }
    }
    for rule in listener.rules.iter_mut().filter(|rule| is_of_group(&rule.domains)) {
        rule.domains = new_domains.to_vec();
    }
    Ok(())
}

/// Changes the default domain. A listener always has one, so that a request to end a default has to
/// name another.
fn change_default(
    listener: &mut Listener,
    group: &[String],
    request: &ModifyDomainAttributesRequest,
) -> Result<(), ApiError> {
    let successor = given(request.new_default_server_domain.as_ref());
    match (request.default_server, successor) {
        (Some(true), Some(_)) => {
            let message = "`DefaultServer` and `NewDefaultServerDomain` contradict each other";
            Err(parameter_error(message))
        }
        (Some(true), None) => {
            domain::make_default(listener, group);
            Ok(())
        }
        (_, Some(successor)) => {
            let successor = domain::group(listener, successor)?;
            domain::make_default(listener, &successor);
            Ok(())
        }
        (Some(false), None) => {
            let mut rules = listener.rules.iter();
            if rules.any(|rule| rule.is_default_server && domain::is_same(&rule.domains, group)) {
                Err(missing("NewDefaultServerDomain"))
            } else {
                Ok(())
            }
        }
        (None, None) => Ok(()),
    }
}
