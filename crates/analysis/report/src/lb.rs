//! The table of what a data plane serves: `uturn lb check`.

use std::net::{IpAddr, SocketAddr};

use uturn_lb::config::{
    AccessLog, BalancerConfig, Config, Forward, HttpMethod, ListenerSettings, Probe,
    ProcessSettings, RuleSettings, Stickiness,
};
use uturn_model::ingress::PathKind;
use uturn_model::lb::{Listener, ListenerProtocol, ProbeSource, Rule, Source, Target};

use crate::style::Style;
use crate::table;
use crate::words::{count, seconds};

/// The number of a rule's targets that are named.
const MAX_TARGETS: usize = 2;

/// Formats a line for each rule, and then what else is served.
pub fn text(config: &Config, style: Style) -> String {
    let heading = ["LISTENER", "PROTOCOL", "RULE", "TARGETS", "SOURCE", "HEALTH CHECK"];
    let rows: Vec<Vec<String>> =
        config.load_balancers.iter().flat_map(|lb| rows(lb, style)).collect();
    let mut text = table::render(&heading, &rows, style);
    text.push('\n');
    for served in &config.load_balancers {
        text.push_str(&about(served));
    }
    text.push_str(&process(&config.process));
    text
}

fn rows(served: &BalancerConfig, style: Style) -> Vec<Vec<String>> {
    let balancer = &served.load_balancer;
    let listeners = balancer.listeners.iter().zip(&served.listeners);
    let rules = listeners.flat_map(|(listener, settings)| {
        let rules = listener.rules.iter().zip(&settings.rules);
        rules.map(move |(rule, settings_of_rule)| (listener, settings, rule, settings_of_rule))
    });
    let row = |(listener, settings, rule, settings_of_rule): (
        &Listener,
        &ListenerSettings,
        &Rule,
        &RuleSettings,
    )| {
        let address = SocketAddr::new(balancer.vip, listener.port.number());
        vec![
            format!("{} {address}", balancer.name),
            protocol(listener.protocol, settings),
            requests(rule),
            goes_to(rule, settings_of_rule, style),
            match listener.profile.source {
                Source::Kept => "kept".to_owned(),
                Source::Replaced(range) => range.to_string(),
            },
            health_check(balancer.vip, listener, rule, settings_of_rule),
        ]
    };
    rules.map(row).collect()
}

fn protocol(protocol: ListenerProtocol, settings: &ListenerSettings) -> String {
    match settings.certificates.len() {
        0 if protocol.ends_tls() => format!("{protocol}, self-made certificate"),
        0 | 1 => protocol.to_string(),
        more => format!("{protocol}, {more} certificates"),
    }
}

/// Describes the requests that a rule serves.
fn requests(rule: &Rule) -> String {
    let host = rule.host.as_deref().unwrap_or_default();
    match &rule.path {
        None if host.is_empty() => "all".to_owned(),
        None => format!("{host}/"),
        Some((path, PathKind::Prefix)) => format!("{host}{path}"),
        Some((path, PathKind::Exact)) => format!("{host}{path} exactly"),
        Some((path, PathKind::ImplementationSpecific)) => format!("{host}{path}*"),
    }
}

fn goes_to(rule: &Rule, settings: &RuleSettings, style: Style) -> String {
    if let Some(redirect) = &rule.redirect {
        let host = rule.host.as_deref().unwrap_or("HOST");
        return format!("{} to {}", redirect.code, redirect.location(host, "/…"));
    }
    let most = if style.wide { usize::MAX } else { MAX_TARGETS };
    let mut text: Vec<String> = rule.targets.iter().take(most).map(target).collect();
    match rule.targets.len().saturating_sub(most) {
        _ if rule.targets.is_empty() => text.push("none".to_owned()),
        0 => {}
        more => text.push(format!("{more} more")),
    }
    let mut text = text.join(" + ");
    if settings.forward == Forward::H2c {
        text.push_str(", by HTTP/2");
    }
    match &settings.stickiness {
        None => {}
        Some(Stickiness::Source(_)) => text.push_str(", sticky by address"),
        Some(Stickiness::Cookie { name, .. }) => {
            text.push_str(&format!(", sticky by cookie {name}"));
        }
    }
    text
}

fn target(target: &Target) -> String {
    match target.weight {
        10 => target.address.to_string(),
        weight => format!("{} (weight {weight})", target.address),
    }
}

fn health_check(vip: IpAddr, listener: &Listener, rule: &Rule, settings: &RuleSettings) -> String {
    let check = match &listener.profile.health_check {
        Some(check) if rule.redirect.is_none() => check,
        _ => return "none".to_owned(),
    };
    let what = match &settings.probe {
        None if listener.protocol == ListenerProtocol::Udp => "echo request".to_owned(),
        None => "TCP".to_owned(),
        Some(Probe::Http { method: HttpMethod::Head, path, .. }) => format!("HEAD {path}"),
        Some(Probe::Http { method: HttpMethod::Get, path, .. }) => format!("GET {path}"),
        Some(Probe::Exchange { .. }) => "exchange".to_owned(),
    };
    let from = match check.source {
        ProbeSource::Vip => "the VIP".to_owned(),
        ProbeSource::Reserved(_) => check.source.address(vip).to_string(),
    };
    format!("{what}, every {} from {from}", seconds(check.interval))
}

/// Describes what the table does not show of a load balancer.
fn about(served: &BalancerConfig) -> String {
    let balancer = &served.load_balancer;
    let rules: Vec<&Rule> =
        balancer.listeners.iter().flat_map(|listener| &listener.rules).collect();
    let targets = rules.iter().map(|rule| rule.targets.len()).sum();
    let groups = match &balancer.security_groups[..] {
        [] => "every client may call".to_owned(),
        groups => format!("security groups: {}", groups.join(", ")),
    };
    format!(
        "{}: {}, {}, {}; {groups}\n",
        balancer.name,
        count(balancer.listeners.len(), "listener"),
        count(rules.len(), "rule"),
        count(targets, "target")
    )
}

fn process(settings: &ProcessSettings) -> String {
    let admin = match settings.admin {
        Some(address) if settings.admin_token.is_some() => {
            format!("admin on {address}, which takes changes with a token")
        }
        Some(address) => format!("admin on {address}"),
        None => "no admin address".to_owned(),
    };
    let log = match &settings.access_log {
        AccessLog::Off => "no access log".to_owned(),
        AccessLog::Stdout => "access log on standard output".to_owned(),
        AccessLog::File(path) => format!("access log in {}", path.display()),
    };
    format!("{admin}; {log}\n")
}
