//! `CreateRule`.

use uturn_cloud_api::clb::{CreateRuleRequest, CreateRuleResponse, RuleInput};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::domain::{self, DomainSettings};
use crate::actions::check::{self, given, missing, parameter_error, quota_error, value_error};
use crate::actions::health_check::{self, Checked};
use crate::actions::{certificates, find};
use crate::state::{
    IpVersion, Listener, ListenerCertificate, LoadBalancer, Protocol, Rule, Scheduler, Transaction,
};

/// The code for unknown ids.
const MISSING: ErrorCode = ErrorCode::InvalidParameter;

/// `CreateRule`: creates all of the rules or none.
pub(in crate::actions) fn create(
    transaction: &mut Transaction<'_>,
    request: &CreateRuleRequest,
) -> Result<CreateRuleResponse, ApiError> {
    let id = &request.load_balancer_id;
    let load_balancer = find::load_balancer(transaction, id, MISSING)?;
    let listener = find::listener(load_balancer, &request.listener_id, MISSING)?;
    check_listener(listener)?;
    let limit = transaction.context.quotas.rules;
    if request.rules.is_empty() {
        return Err(value_error("the parameter `Rules` is empty"));
    }
    if listener.rules.len() + request.rules.len() > limit {
        return Err(quota_error("rules of a listener", limit));
    }
    let mut ids = Vec::with_capacity(request.rules.len());
    let mut default: Option<Vec<String>> = None;
    for input in &request.rules {
        let (single, several) = (input.certificate.as_ref(), input.multi_cert_info.as_ref());
        let certificate = certificates::read(transaction, single, several)?;
        let load_balancer = find::load_balancer(transaction, id, MISSING)?;
        let listener = find::listener(load_balancer, &request.listener_id, MISSING)?;
        let rule = build(transaction, load_balancer, listener, input)?;
        ids.push(rule.id.clone());
        if input.default_server == Some(true) {
            if default.as_ref().is_some_and(|other| !domain::is_same(other, &rule.domains)) {
                return Err(parameter_error("a listener has one default domain only"));
            }
            default = Some(rule.domains.clone());
        }
        let load_balancer = transaction.load_balancer_mut(id, MISSING)?;
        let listener = find::listener_mut(load_balancer, &request.listener_id, MISSING)?;
        add(listener, rule, input, certificate)?;
    }
    let load_balancer = transaction.load_balancer_mut(id, MISSING)?;
    let listener = find::listener_mut(load_balancer, &request.listener_id, MISSING)?;
    match default {
        Some(domains) => domain::make_default(listener, &domains),
        None => domain::ensure_default(listener),
    }
    Ok(CreateRuleResponse { location_ids: Some(ids) })
}

/// Refuses a listener on layer 4.
pub(super) fn check_listener(listener: &Listener) -> Result<(), ApiError> {
    if listener.protocol.is_layer_7() {
        return Ok(());
    }
    let (id, protocol) = (&listener.id, listener.protocol.as_str());
    Err(parameter_error(format!("the {protocol} listener {id} has no rules")))
}

/// Refuses an unknown protocol towards targets. Only HTTPS listeners can choose one.
pub(super) fn check_forward_type(forward_type: &str, protocol: Protocol) -> Result<(), ApiError> {
    let allowed: &[&str] = match protocol {
        Protocol::Https => &["HTTP", "HTTPS", "GRPC", "GRPCS"],
        _ => &["HTTP"],
    };
    check::choice("ForwardType", forward_type, allowed)
}

fn build(
    transaction: &Transaction<'_>,
    load_balancer: &LoadBalancer,
    listener: &Listener,
    input: &RuleInput,
) -> Result<Rule, ApiError> {
    domain::check_url("Url", &input.url)?;
    let (single, several) = (input.domain.as_ref(), input.domains.as_ref());
    let named = domain::named;
    let length = domain::MAX_LENGTH;
    let domains = named(load_balancer, ("Domain", single), ("Domains", several), length)?;
    let forward_type = given(input.forward_type.as_ref()).unwrap_or("HTTP");
    check_forward_type(forward_type, listener.protocol)?;
    if let Some(target_type) = given(input.target_type.as_ref()) {
        check::choice("TargetType", target_type, &["NODE"])?;
    }
    let checked = Checked {
        protocol: listener.protocol,
        forward_type: Some(forward_type),
        is_v6: load_balancer.ip_version != IpVersion::V4,
    };
    Ok(Rule {
        id: transaction.context.ids.resource("loc"),
        domains,
        url: input.url.clone(),
        session_seconds: rule_session(input.session_expire_time.unwrap_or(0))?,
        cookie: given(input.cookie_name.as_ref()).map(check::cookie).transpose()?,
        health_check: health_check::read(input.health_check.as_ref(), None, checked)?,
        certificate: None,
        scheduler: scheduler(input.scheduler.as_ref())?.unwrap_or(Scheduler::Wrr),
        forward_type: forward_type.to_owned(),
        is_default_server: false,
        http2: false,
        quic: false,
        redirection: None,
        created: transaction.context.now,
        targets: Vec::new(),
    })
}

/// Returns the seconds that a client stays with its target.
pub(super) fn rule_session(seconds: i64) -> Result<u32, ApiError> {
    check::session_seconds(seconds, 30..=86_400)
}

/// Returns the scheduler with this name.
pub(super) fn scheduler(name: Option<&String>) -> Result<Option<Scheduler>, ApiError> {
    let Some(name) = given(name) else { return Ok(None) };
    let scheduler = Scheduler::parse(name).ok_or_else(|| {
        let known = "WRR, LEAST_CONN, IP_HASH";
        value_error(format!("the parameter `Scheduler` is {name:?}; one of {known} is needed"))
    })?;
    Ok(Some(scheduler))
}

/// Adds a rule to the group of its domains. The request's settings for the domain apply to the
/// whole group, and a new rule gets the group's settings.
fn add(
    listener: &mut Listener,
    mut rule: Rule,
    input: &RuleInput,
    certificate: Option<ListenerCertificate>,
) -> Result<(), ApiError> {
    check_free(listener, &rule.domains, &rule.url, None)?;
    let domains = rule.domains.clone();
    let existing = listener.rules.iter().find(|other| domain::is_same(&other.domains, &domains));
    match existing {
        Some(existing) => {
            rule.certificate.clone_from(&existing.certificate);
            rule.http2 = existing.http2;
            rule.quic = existing.quic;
            rule.is_default_server = existing.is_default_server;
        }
        None if listener.sni && certificate.is_none() => return Err(missing("Rules.Certificate")),
        None => {}
    }
    listener.rules.push(rule);
    let settings = DomainSettings { certificate, http2: input.http2, quic: input.quic };
    settings.apply(listener, &domains)
}

/// Refuses domains that overlap with those of another group, and a URL that the group has already.
/// `except` is the rule that is being changed.
pub(super) fn check_free(
    listener: &Listener,
    domains: &[String],
    url: &str,
    except: Option<&str>,
) -> Result<(), ApiError> {
    for other in listener.rules.iter().filter(|other| Some(other.id.as_str()) != except) {
        let shared = other.domains.iter().find(|domain| domains.contains(domain));
        let Some(shared) = shared else { continue };
        if !domain::is_same(&other.domains, domains) {
            let message =
                format!("the domain {shared} is part of other domains: {:?}", other.domains);
            return Err(parameter_error(message));
        }
        if other.url == url {
            let id = &other.id;
            return Err(parameter_error(format!("the rule {id} has {shared}{url} already")));
        }
    }
    Ok(())
}
