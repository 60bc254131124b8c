//! Converts rules and targets.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::net::IpAddr;
use std::time::Duration;

use uturn_lb::config::{Forward, RuleSettings, Stickiness};
use uturn_lb::pattern::{Pattern, from_wildcard, is_pattern};
use uturn_lb::request_path::normal;
use uturn_model::ingress::PathKind;
use uturn_model::lb::{self, PathNormalization, Redirect, TargetKind};
use uturn_model::{Name, NamespacedName, ObjectKind, ObjectRef, Port, Text};

use super::{Planner, probe};
use crate::actions::targets::address;
use crate::state::{Listener, LoadBalancer, Protocol, Redirection, Rule, Target, TargetHolder};

/// The precedence of a domain: the least rank wins.
type DomainRank = (u8, Reverse<usize>);

/// The name of the cookie that keeps a client with its target.
const COOKIE: &str = "tgw_l7_route";

impl Planner<'_> {
    /// Returns all rules of a listener on layer 7, ordered by the precedence of their domains.
    pub(super) fn layer_7_rules(
        &self,
        load_balancer: &LoadBalancer,
        listener: &Listener,
        vip: IpAddr,
        notes: &mut Vec<String>,
    ) -> (Vec<lb::Rule>, Vec<RuleSettings>) {
        let mut rules: Vec<_> = listener
            .rules
            .iter()
            .flat_map(|rule| self.rules(load_balancer, listener, rule, vip, notes))
            .collect();
        rules.sort_by_key(|(rank, _)| *rank);
        rules.into_iter().map(|(_, rule)| rule).unzip()
    }

    /// Returns a rule of the model for each domain of a rule, with the rank of the domain.
    fn rules(
        &self,
        load_balancer: &LoadBalancer,
        listener: &Listener,
        rule: &Rule,
        vip: IpAddr,
        notes: &mut Vec<String>,
    ) -> Vec<(DomainRank, (lb::Rule, RuleSettings))> {
        let path = match self.path(&rule.url) {
            Ok(path) => path,
            Err(why) => {
                notes.push(format!("{} is not served: {why}", rule.id));
                return Vec::new();
            }
        };
        let redirect = match &rule.redirection {
            None => None,
            Some(redirection) => match self.redirect(load_balancer, redirection) {
                Some(redirect) => Some(redirect),
                None => {
                    notes.push(format!("{} redirects to a rule that is gone", rule.id));
                    return Vec::new();
                }
            },
        };
        let settings = RuleSettings {
            forward: match rule.forward_type.as_str() {
                "GRPC" => Forward::H2c,
                "HTTPS" | "GRPCS" => {
                    notes.push(format!(
                        "{} forwards without TLS: this data plane has none towards targets",
                        rule.id
                    ));
                    Forward::Http1
                }
                _ => Forward::Http1,
            },
            stickiness: (rule.session_seconds > 0).then(|| Stickiness::Cookie {
                name: rule.cookie.as_deref().unwrap_or(COOKIE).into(),
                max_age: Some(Duration::from_secs(rule.session_seconds.into())),
            }),
            probe: probe::probe(&rule.health_check, notes),
        };
        let mut rules = Vec::new();
        for domain in &rule.domains {
            let host = if domain.is_empty() { Text::from(vip.to_string()) } else { host(domain) };
            if is_pattern(&host)
                && let Err(why) = Pattern::host(&host)
            {
                notes.push(format!("{domain} is not served: {why}"));
                continue;
            }
            let model = lb::Rule {
                host: Some(host),
                path: Some(path.clone()),
                service: service(&listener.id),
                owner: owner(&rule.id),
                targets: match redirect {
                    Some(_) => Vec::new(),
                    None => self.targets(&rule.targets, notes),
                },
                redirect: redirect.clone(),
            };
            rules.push((domain_rank(domain), (model, settings.clone())));
        }
        rules
    }

    /// Returns a path in the form of the model: `= /a` is an exact path. If the data plane
    /// normalizes the paths of requests, the rule's path is normalized too.
    fn path(&self, url: &str) -> Result<(Text, PathKind), String> {
        if is_pattern(url) {
            let pattern = Pattern::path(url).map_err(|why| why.to_string());
            return pattern.map(|_| (Text::from(url), PathKind::ImplementationSpecific));
        }
        let (sign, kind, path) = match (url.strip_prefix('='), url.strip_prefix("^~")) {
            (Some(path), _) => ("", PathKind::Exact, path.trim_start()),
            (None, Some(path)) => ("^~ ", PathKind::ImplementationSpecific, path.trim_start()),
            (None, None) => ("", PathKind::ImplementationSpecific, url),
        };
        let path = match self.context.path_normalization {
            PathNormalization::Off => path.to_owned(),
            _ => normal(path).map_err(|why| why.to_string())?,
        };
        Ok((Text::from(format!("{sign}{path}")), kind))
    }

    /// Returns the one rule of a listener on layer 4.
    pub(super) fn layer_4_rule(
        &self,
        listener: &Listener,
        notes: &mut Vec<String>,
    ) -> (lb::Rule, RuleSettings) {
        let model = lb::Rule {
            host: None,
            path: None,
            service: service(&listener.id),
            owner: owner(&listener.id),
            targets: self.targets(&listener.targets, notes),
            redirect: None,
        };
        let seconds = u64::from(listener.session_seconds);
        let settings = RuleSettings {
            forward: Forward::default(),
            stickiness: (seconds > 0).then(|| Stickiness::Source(Duration::from_secs(seconds))),
            probe: listener.health_check.as_ref().and_then(|check| probe::probe(check, notes)),
        };
        (model, settings)
    }

    fn targets(&self, targets: &[Target], notes: &mut Vec<String>) -> Vec<lb::Target> {
        let mut served = Vec::new();
        for target in targets {
            let Some(address) = address(target, self.context.inventory, &self.place.region) else {
                if let TargetHolder::Instance(id) = &target.holder {
                    notes.push(format!("the instance {id} is not in the inventory"));
                }
                continue;
            };
            let node = match &target.holder {
                TargetHolder::Instance(id) => id.parse::<Name>().ok(),
                TargetHolder::Interface(_) => None,
            };
            let kind = match node {
                Some(node) => TargetKind::NodePort(node),
                None => TargetKind::Pod { pod: None, node: None },
            };
            served.push(lb::Target { address, weight: target.weight.into(), kind });
        }
        served
    }

    fn redirect(
        &self,
        load_balancer: &LoadBalancer,
        redirection: &Redirection,
    ) -> Option<Redirect> {
        let listener = load_balancer.listener(&redirection.listener)?;
        let rule = listener.rule(&redirection.rule)?;
        Some(Redirect {
            code: redirection.code,
            tls: listener.protocol == Protocol::Https,
            host: rule
                .domains
                .iter()
                .find(|domain| !domain.is_empty() && !domain.contains(['*', '~']))
                .map(|domain| Text::from(domain.as_str())),
            port: Port::new(listener.port)?,
            path: plain_url(&rule.url).filter(|_| !redirection.keeps_url),
        })
    }
}

/// Returns the host of a domain. A star at one end stands for one or more labels.
pub(super) fn host(domain: &str) -> Text {
    from_wildcard(domain).map_or_else(|| Text::from(domain), Text::from)
}

/// Returns the rank of a domain: plain domains win, then those with a star at the beginning, the
/// longest first, then those with a star at the end, then regular expressions.
fn domain_rank(domain: &str) -> DomainRank {
    match (is_pattern(domain), domain.starts_with('*'), domain.ends_with('*')) {
        (true, ..) => (3, Reverse(0)),
        (false, true, _) => (1, Reverse(domain.len())),
        (false, false, true) => (2, Reverse(domain.len())),
        (false, false, false) => (0, Reverse(0)),
    }
}

/// Returns the first of rules with the same host and path, with a note for others. If two rules of
/// a domain have the same normal form, such as `/a` and `//a`, requests can only reach one.
pub(super) fn without_twins(
    (rules, settings): (Vec<lb::Rule>, Vec<RuleSettings>),
    notes: &mut Vec<String>,
) -> (Vec<lb::Rule>, Vec<RuleSettings>) {
    let mut known = HashSet::new();
    let all = rules.into_iter().zip(settings);
    let firsts = all.filter(|(rule, _)| {
        let is_first = known.insert((rule.host.clone(), rule.path.clone()));
        if !is_first {
            let id = &rule.owner.name;
            notes.push(format!("{id} is not served: another rule has the normal form of its path"));
        }
        is_first
    });
    firsts.unzip()
}

/// Returns the path of a URL; `None` for a regular expression.
fn plain_url(url: &str) -> Option<Text> {
    let path = url.strip_prefix("^~").or_else(|| url.strip_prefix('=')).unwrap_or(url);
    (!is_pattern(url)).then(|| Text::from(path.trim_start()))
}

/// Returns the name of a rule's Service, which the model requires. It has the listener's id.
fn service(listener: &str) -> NamespacedName {
    let name: Option<Name> = listener.parse().ok();
    let name = name.or_else(|| "listener".parse().ok()).expect("it is a name");
    NamespacedName { namespace: "default".parse().expect("it is a name"), name }
}

fn owner(id: &str) -> ObjectRef {
    ObjectRef::global(ObjectKind::LoadBalancer, id)
}
