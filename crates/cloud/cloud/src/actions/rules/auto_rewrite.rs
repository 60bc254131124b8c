//! `AutoRewrite`: redirects requests on port 80 to the rules that HTTPS on port 443 serves.

use uturn_cloud_api::clb::{AutoRewriteRequest, AutoRewriteResponse};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::redirections;
use super::rewrite::layer_7;
use crate::actions::check::{quota_error, value_error};
use crate::actions::health_check::{self, Checked};
use crate::state::{
    IpVersion, Listener, LoadBalancer, Protocol, Redirection, Rule, Scheduler, Transaction,
};

/// The port that requests are redirected to.
const HTTPS_PORT: u16 = 443;
/// The port whose requests are redirected.
const HTTP_PORT: u16 = 80;

/// `AutoRewrite`: redirects the rules. Creates the listener on port 80 and its rules if they are
/// missing.
pub(in crate::actions) fn create(
    transaction: &mut Transaction<'_>,
    request: &AutoRewriteRequest,
) -> Result<AutoRewriteResponse, ApiError> {
    let quotas = transaction.context.quotas;
    let ids = transaction.context.ids;
    let now = transaction.context.now;
    let id = &request.load_balancer_id;
    let load_balancer = transaction.load_balancer_mut(id, ErrorCode::LbIdNotFound)?;
    let target = https(load_balancer, &request.listener_id)?.clone();
    let plans = plans(&target, request)?;
    let source = match http(load_balancer)? {
        Some(source) => source,
        None if load_balancer.listeners.len() >= quotas.listeners => {
            return Err(quota_error("listeners of a load balancer", quotas.listeners));
        }
        None => {
            let source = ids.resource("lbl");
            let mut listener = Listener::new(Protocol::Http, HTTP_PORT, now);
            listener.id.clone_from(&source);
            load_balancer.listeners.push(listener);
            source
        }
    };
    let is_v6 = load_balancer.ip_version != IpVersion::V4;
    for Plan { rule, code, keeps_url } in plans {
        let redirection = Redirection {
            listener: target.id.clone(),
            rule: rule.id.clone(),
            code,
            keeps_url,
            is_automatic: true,
        };
        let listener = load_balancer.listener_mut(&source);
        let listener = listener.ok_or_else(|| no_listener(&source))?;
        let known = listener.rules.iter().find(|known| {
            known.url == rule.url
                && known.domains.iter().any(|domain| rule.domains.contains(domain))
        });
        let redirected = match known {
            Some(known) => known.id.clone(),
            None if listener.rules.len() >= quotas.rules => {
                return Err(quota_error("rules of a listener", quotas.rules));
            }
            None => {
                let new = http_rule(ids.resource("loc"), rule, is_v6, now)?;
                let id = new.id.clone();
                listener.rules.push(new);
                super::domain::ensure_default(listener);
                id
            }
        };
        redirections::add(load_balancer, &redirected, redirection)?;
    }
    Ok(AutoRewriteResponse {})
}

/// Returns the listener that requests are redirected to: HTTPS on port 443.
fn https<'l>(load_balancer: &'l LoadBalancer, id: &str) -> Result<&'l Listener, ApiError> {
    let listener = layer_7(load_balancer, id)?;
    if listener.protocol != Protocol::Https {
        let message = format!("the listener {id} is not HTTPS");
        return Err(ApiError::new(ErrorCode::ProtocolCheckFailed, message));
    }
    if listener.port != HTTPS_PORT {
        let message = format!("the listener {id} has the port {}, not {HTTPS_PORT}", listener.port);
        return Err(ApiError::new(ErrorCode::PortCheckFailed, message));
    }
    Ok(listener)
}

/// Returns the id of the HTTP listener on port 80, if there is one.
fn http(load_balancer: &LoadBalancer) -> Result<Option<String>, ApiError> {
    let has_port = |listener: &&Listener| {
        let last = listener.end_port.unwrap_or(listener.port);
        !listener.protocol.is_over_udp() && (listener.port..=last).contains(&HTTP_PORT)
    };
    match load_balancer.listeners.iter().find(has_port) {
        None => Ok(None),
        Some(listener) if listener.protocol == Protocol::Http => Ok(Some(listener.id.clone())),
        Some(listener) => {
            let (id, protocol) = (&listener.id, listener.protocol.as_str());
            let message = format!("the port {HTTP_PORT} is that of the {protocol} listener {id}");
            Err(ApiError::new(ErrorCode::PortCheckFailed, message))
        }
    }
}

/// A redirection to be created.
struct Plan<'a> {
    rule: &'a Rule,
    code: u16,
    keeps_url: bool,
}

/// Returns a redirection for each rule of the named domains, or of all domains. `RewriteCodes` and
/// `TakeUrls` have one value for all domains or one for each.
fn plans<'a>(
    target: &'a Listener,
    request: &AutoRewriteRequest,
) -> Result<Vec<Plan<'a>>, ApiError> {
    let domains = request.domains.clone().unwrap_or_default();
    let codes = request.rewrite_codes.clone().unwrap_or_default();
    let takes = request.take_urls.clone().unwrap_or_default();
    let fits = |number: usize| number <= 1 || number == domains.len();
    if !fits(codes.len()) || !fits(takes.len()) {
        let message = "`RewriteCodes` and `TakeUrls` need one value for each of `Domains`";
        return Err(value_error(message));
    }
    for domain in &domains {
        if super::domain::rule_with(target, domain).is_none() {
            let message = format!("the domain {domain} does not exist on {}", target.id);
            return Err(ApiError::new(ErrorCode::LocationNotFound, message));
        }
    }
    let mut plans = Vec::new();
    for rule in &target.rules {
        let position = domains.iter().position(|domain| rule.domains.contains(domain));
        if position.is_none() && !domains.is_empty() {
            continue;
        }
        let position = position.unwrap_or(0);
        let code = codes.get(position).or_else(|| codes.first()).copied();
        let keeps_url = takes.get(position).or_else(|| takes.first()).copied();
        plans.push(Plan {
            rule,
            code: redirections::code(code)?,
            keeps_url: keeps_url.unwrap_or(true),
        });
    }
    Ok(plans)
}

fn no_listener(id: &str) -> ApiError {
    ApiError::new(ErrorCode::ListenerIdNotFound, format!("the listener {id} does not exist"))
}

/// Returns a rule on port 80 with the domain and the URL of a rule on port 443.
fn http_rule(
    id: String,
    target: &Rule,
    is_v6: bool,
    created: jiff::Timestamp,
) -> Result<Rule, ApiError> {
    let checked = Checked { protocol: Protocol::Http, forward_type: Some("HTTP"), is_v6 };
    Ok(Rule {
        id,
        domains: target.domains.clone(),
        url: target.url.clone(),
        session_seconds: 0,
        cookie: None,
        health_check: health_check::read(None, None, checked)?,
        certificate: None,
        scheduler: Scheduler::Wrr,
        forward_type: "HTTP".to_owned(),
        is_default_server: false,
        http2: false,
        quic: false,
        redirection: None,
        created,
        targets: Vec::new(),
    })
}
