//! Domains of a listener. Rules with the same domains are one group: they share certificates,
//! HTTP/2, QUIC, and whether they are the default.

use std::collections::BTreeSet;

use uturn_cloud_api::wire::error::{ApiError, ErrorCode};
use uturn_lb::pattern::{InvalidPattern, Pattern, is_pattern};

use crate::actions::check::{self, missing, parameter_error, value_error};
use crate::state::{Listener, ListenerCertificate, LoadBalancer, Protocol, Rule};

/// The longest domains of `CreateRule`.
pub(super) const MAX_LENGTH: usize = 80;
/// The longest URLs.
const MAX_URL: usize = 200;

/// Refuses a domain that is neither a name, a name with a wildcard at one end, a regular expression
/// behind `~`, nor an address.
pub(super) fn check_domain(
    parameter: &str,
    domain: &str,
    max_length: usize,
) -> Result<(), ApiError> {
    check::length(parameter, domain, 1..=max_length)?;
    let without_star = domain.strip_prefix('*').or_else(|| domain.strip_suffix('*'));
    let name = without_star.unwrap_or(domain);
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b':');
    if is_pattern(domain) {
        return Pattern::host(domain).map(drop).map_err(|why| no_pattern(parameter, &why));
    }
    if name.bytes().all(is_plain) {
        return Ok(());
    }
    let message = format!("the parameter `{parameter}` is {domain:?}, which is no domain");
    Err(ApiError::new(ErrorCode::FormatError, message))
}

/// Refuses a URL that neither begins with a slash nor is an exact match (`=`), a prefix (`^~`) or a
/// regular expression (`~`).
pub(super) fn check_url(parameter: &str, url: &str) -> Result<(), ApiError> {
    check::length(parameter, url, 1..=MAX_URL)?;
    if is_pattern(url) {
        return Pattern::path(url).map(drop).map_err(|why| no_pattern(parameter, &why));
    }
    if (url.starts_with(['/', '=']) || url.starts_with("^~")) && !url.contains(char::is_control) {
        return Ok(());
    }
    let message = format!("the parameter `{parameter}` is {url:?}, which is no path");
    Err(ApiError::new(ErrorCode::FormatError, message))
}

/// Returns the error for a regular expression that the data plane would not accept.
fn no_pattern(parameter: &str, why: &InvalidPattern) -> ApiError {
    ApiError::new(ErrorCode::FormatError, format!("the parameter `{parameter}`: {why}"))
}

/// Returns the domains that a request names with one of two parameters. Without any, returns the
/// load balancer's first address, which clients then send as the host.
pub(super) fn named(
    load_balancer: &LoadBalancer,
    single: (&str, Option<&String>),
    several: (&str, Option<&Vec<String>>),
    max_length: usize,
) -> Result<Vec<String>, ApiError> {
    let domain = check::given(single.1);
    let domains = several.1.filter(|domains| !domains.is_empty());
    let domains = match (domain, domains) {
        (Some(_), Some(_)) => {
            let (single, several) = (single.0, several.0);
            let message =
                format!("only one of the parameters `{single}` and `{several}` is allowed");
            return Err(parameter_error(message));
        }
        (Some(domain), None) => vec![domain.to_owned()],
        (None, Some(domains)) => domains.clone(),
        (None, None) => match load_balancer.addresses.first() {
            Some(address) => vec![address.to_string()],
            None => return Err(missing(single.0)),
        },
    };
    for (position, domain) in domains.iter().enumerate() {
        check_domain(single.0, domain, max_length)?;
        if domains[..position].contains(domain) {
            return Err(value_error(format!("the domain {domain} stands twice")));
        }
    }
    Ok(domains)
}

/// Returns whether two rules or requests name the same domains, in any order.
pub(super) fn is_same(first: &[String], second: &[String]) -> bool {
    first.iter().collect::<BTreeSet<_>>() == second.iter().collect()
}

/// Returns a rule of the group that this domain is part of.
pub(super) fn rule_with<'l>(listener: &'l Listener, domain: &str) -> Option<&'l Rule> {
    listener.rules.iter().find(|rule| rule.domains.iter().any(|known| known == domain))
}

/// Returns the domains of the group that this domain is part of.
pub(super) fn group(listener: &Listener, domain: &str) -> Result<Vec<String>, ApiError> {
    let rule = rule_with(listener, domain).ok_or_else(|| {
        parameter_error(format!("the domain {domain} does not exist on {}", listener.id))
    })?;
    Ok(rule.domains.clone())
}

/// Makes the group with these domains the listener's default.
pub(super) fn make_default(listener: &mut Listener, domains: &[String]) {
    for rule in &mut listener.rules {
        rule.is_default_server = is_same(&rule.domains, domains);
    }
}

/// Makes the oldest group the default if there is none.
pub(super) fn ensure_default(listener: &mut Listener) {
    if listener.rules.iter().any(|rule| rule.is_default_server) {
        return;
    }
    if let Some(oldest) = listener.rules.first().map(|rule| rule.domains.clone()) {
        make_default(listener, &oldest);
    }
}

/// The settings of a domain in a request.
#[derive(Clone, Debug, Default)]
pub(super) struct DomainSettings {
    pub(super) certificate: Option<ListenerCertificate>,
    pub(super) http2: Option<bool>,
    pub(super) quic: Option<bool>,
}

impl DomainSettings {
    /// Applies the settings to every rule of the domain's group.
    pub(super) fn apply(
        &self,
        listener: &mut Listener,
        domains: &[String],
    ) -> Result<(), ApiError> {
        if self.certificate.is_some() && !listener.sni {
            let message = "certificates of domains need a listener with SNI";
            return Err(parameter_error(message));
        }
        let wants_tls = self.http2 == Some(true) || self.quic == Some(true);
        if wants_tls && listener.protocol != Protocol::Https {
            return Err(parameter_error("HTTP/2 and QUIC are for HTTPS listeners only"));
        }
        let of_group = listener.rules.iter_mut().filter(|rule| is_same(&rule.domains, domains));
        for rule in of_group {
            if self.certificate.is_some() {
                rule.certificate.clone_from(&self.certificate);
            }
            rule.http2 = self.http2.unwrap_or(rule.http2);
            rule.quic = self.quic.unwrap_or(rule.quic);
        }
        Ok(())
    }
}
