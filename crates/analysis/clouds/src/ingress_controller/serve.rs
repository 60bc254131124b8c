//! The choice of a controller's rule for a request or a connection.

use std::cmp::Reverse;
use std::collections::HashMap;

use uturn_model::controller::{ControllerListener, EntryRedirect, TlsRedirect};
use uturn_model::lb::Redirect;
use uturn_model::{Cluster, Ingress, IngressController, Text};

use super::annotations::PATTERN;
use super::rule::has_rule;
use super::{ControllerRule, ingress, routes};
use crate::cloud::HTTPS;
use uturn_lb::pattern::is_pattern;
use uturn_lb::rules;

/// The treatment of a request by an ingress controller.
#[derive(Clone, Debug, PartialEq)]
pub enum RoutingResult<'r> {
    /// The rule forwards the request to a Service.
    Forwarded(&'r ControllerRule),
    /// The request is redirected: by the rule, because the rule is for TLS, or by the port itself.
    Redirected(Option<&'r ControllerRule>, Redirect),
    /// The request is refused with this status: the rule is for TLS.
    Refused(&'r ControllerRule, u16),
    /// No rule matches the request: 404.
    NoRule,
    /// The treatment is not known. The text states the reason.
    Unknown(Text, Option<&'r ControllerRule>),
}

/// The rules of one controller, prepared for many requests.
#[derive(Clone, Debug, Default)]
pub struct ControllerRules {
    all: Vec<ControllerRule>,
    /// Rules by host in lower case; for a wildcard, the key is the part after the `*`.
    by_host: HashMap<String, Vec<usize>>,
    /// Rules whose host is a regular expression, the longest first.
    by_expression: Vec<usize>,
    /// Rules for all hosts.
    for_all_hosts: Vec<usize>,
}

impl ControllerRules {
    /// Collects the rules of all Ingresses that a controller serves or may serve, at any address.
    pub fn new(cluster: &Cluster, controller: &IngressController) -> Self {
        let mut rules = Self::default();
        let all = cluster.ingresses.values().flat_map(|ingress| {
            if ingress.controller.as_ref() == Some(&controller.workload) {
                return rules_of(controller, ingress);
            }
            if ingress.possible_controllers.contains(&controller.workload) {
                not_known_to_be_served(rules_of(controller, ingress))
            } else {
                Vec::new()
            }
        });
        for rule in all {
            let place = rules.all.len();
            match rule.host.as_deref().map(str::to_ascii_lowercase) {
                Some(host) if is_pattern(&host) => rules.by_expression.push(place),
                Some(host) => {
                    let host =
                        host.strip_prefix("*.").map_or(host.clone(), |rest| format!(".{rest}"));
                    rules.by_host.entry(host).or_default().push(place);
                }
                None => rules.for_all_hosts.push(place),
            }
            rules.all.push(rule);
        }
        let length = |place: &usize| rules.all[*place].host.as_ref().map_or(0, |host| host.len());
        rules.by_expression.sort_by_key(|place| Reverse(length(place)));
        rules
    }

    /// Returns the rule for a connection at a port of the controller's pods, if there is one.
    /// `name` is the server name that the client sends at the start of TLS.
    pub fn pass(
        &self,
        listener: &ControllerListener,
        name: Option<&str>,
    ) -> Option<&ControllerRule> {
        let is_its = |rule: &&ControllerRule| {
            rule.is_of_connections && rule.applies_at(listener, listener.tls)
        };
        let mut all: Vec<&ControllerRule> = self.all.iter().filter(is_its).collect();
        let name = name.filter(|_| listener.takes.has_names());
        if name.is_none() {
            all.retain(|rule| rule.host.is_none());
        }
        // Among wildcards that match the name, the one with the longest suffix is the closest.
        all.sort_by_key(|rule| Reverse(rule.host.as_ref().map_or(0, |host| host.len())));
        rules::position(&all, name.unwrap_or_default(), "/").map(|place| all[place])
    }

    /// Iterates over the rules that may be for a host, the closest first.
    fn for_host(&self, host: &str) -> impl Iterator<Item = &ControllerRule> {
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name).to_ascii_lowercase();
        let named = self.by_host.get(&name).into_iter();
        let wild = name.find('.').and_then(|dot| self.by_host.get(&name[dot..]));
        let places = named.chain(wild).flatten().chain(&self.by_expression);
        places.chain(&self.for_all_hosts).map(|place| &self.all[*place])
    }

    /// Describes why a rule for a request, with or without TLS, is not applied at a port of the
    /// controller's pods: the rule is for other ports. Returns `None` if there is no such rule.
    pub fn kept_out(
        &self,
        listener: &ControllerListener,
        tls: bool,
        host: &str,
        path: &str,
    ) -> Option<String> {
        let entry = listener.entry_point.as_ref()?;
        let is_other = |rule: &&ControllerRule| {
            let is_kept = rule.ports.is_none() && !rule.is_of_connections;
            is_kept && rule.host.is_some() && !rule.applies_at(listener, tls)
        };
        let all: Vec<&ControllerRule> = self.for_host(host).filter(is_other).collect();
        let rule = rules::position_in_host(&all, host, path).map(|place| all[place])?;
        let owner = &rule.owner;
        Some(match &rule.entry_points {
            Some(names) if !has_rule(entry, Some(names)) => {
                format!(
                    "{owner} is for entry point {} only, and this is {}",
                    names.join(" and "),
                    entry.name
                )
            }
            None if !has_rule(entry, None) => {
                format!("{owner} is for default entry points, and {} is none", entry.name)
            }
            _ if tls => {
                format!("{owner} is for requests without TLS at entry point {}", entry.name)
            }
            _ => format!("{owner} is for requests with TLS at entry point {}", entry.name),
        })
    }

    /// Routes a request, with or without TLS, at a port of the controller's pods.
    pub fn serve(
        &self,
        controller: &IngressController,
        listener: &ControllerListener,
        tls: bool,
        host: &str,
        path: &str,
    ) -> RoutingResult<'_> {
        let entry = listener.entry_point.as_ref();
        if let Some(entry) = entry.filter(|entry| entry.tls == tls) {
            match &entry.redirect {
                EntryRedirect::None => {}
                EntryRedirect::To(redirect) => {
                    return RoutingResult::Redirected(
                        None,
                        routes::redirected(redirect, listener, None),
                    );
                }
                EntryRedirect::Unknown => {
                    let why = format!("whether entry point {} sends it elsewhere", entry.name);
                    return RoutingResult::Unknown(format!("{why} is not known").into(), None);
                }
            }
        }
        let all: Vec<&ControllerRule> = self
            .for_host(host)
            .filter(|rule| !rule.is_of_connections && rule.applies_at(listener, tls))
            .collect();
        // A path that equals the text of a regular expression selects the rule with that expression.
        let has_expression = |rule: &&ControllerRule| {
            let pattern = rule.path.as_ref().and_then(|(own, _)| own.strip_prefix(PATTERN));
            pattern == Some(path)
        };
        let by_expression = all.iter().position(has_expression);
        let found = by_expression.or_else(|| {
            if controller.behaviour.goes_on_to_other_hosts {
                rules::position(&all, host, path)
            } else {
                rules::position_in_host(&all, host, path)
            }
        });
        let Some(rule) = found.map(|place| all[place]) else {
            return match &controller.other_rules {
                Some(kind) => {
                    let why = format!(
                        "objects of {kind} may have a rule for {host}{path}, and are not known"
                    );
                    RoutingResult::Unknown(why.into(), None)
                }
                None => RoutingResult::NoRule,
            };
        };
        if let Some(why) = &rule.unknown {
            return RoutingResult::Unknown(why.clone(), Some(rule));
        }
        if let Some(redirect) = &rule.redirect {
            let redirect = routes::redirected(redirect, listener, Some(rule));
            return RoutingResult::Redirected(Some(rule), redirect);
        }
        if rule.ports.is_some() || entry.is_some() {
            return RoutingResult::Forwarded(rule);
        }
        if rule.entry_points.is_some() || rule.asks_for_tls {
            let why = "which of its entry points listens on this port is not known";
            return RoutingResult::Unknown(why.into(), Some(rule));
        }
        if tls && !rule.tls && !controller.behaviour.has_default_certificate {
            let why =
                "no certificate for this host is stated, and what is said without one is not known";
            return RoutingResult::Unknown(why.into(), Some(rule));
        }
        if !tls && rule.tls {
            match rule.behaviour.redirects_to_tls {
                TlsRedirect::Never => {}
                TlsRedirect::With(code) => {
                    let redirect =
                        Redirect { code, tls: true, host: None, port: HTTPS, path: None };
                    return RoutingResult::Redirected(Some(rule), redirect);
                }
                TlsRedirect::Refuses(code) => return RoutingResult::Refused(rule, code),
                TlsRedirect::Unknown => {
                    let why = "whether it sends clients of hosts with TLS to https is not known";
                    return RoutingResult::Unknown(why.into(), Some(rule));
                }
            }
        }
        RoutingResult::Forwarded(rule)
    }
}

/// Returns the rules of an Ingress, or of a route that is read as one.
fn rules_of(controller: &IngressController, ingress: &Ingress) -> Vec<ControllerRule> {
    match &ingress.route {
        Some(route) => routes::rules_of(controller, ingress, route),
        None => ingress::rules_of(controller, ingress),
    }
}

/// Marks the rules of an Ingress as unknown, since it is not known whether the controller serves
/// it.
fn not_known_to_be_served(mut rules: Vec<ControllerRule>) -> Vec<ControllerRule> {
    for rule in &mut rules {
        let why = || format!("whether this controller serves {} is not known", rule.owner);
        rule.unknown = rule.unknown.take().or_else(|| Some(why().into()));
    }
    rules
}
