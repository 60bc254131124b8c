//! Reads the rules of a listener: the requests that they match, and what happens to these.

use std::collections::HashMap;
use std::time::Duration;

use uturn_document::{Node, Value};
use uturn_lb::config::{Forward, RuleSettings, Stickiness};
use uturn_lb::pattern::{Pattern, is_pattern};
use uturn_lb::request_path;
use uturn_lb::rules::position;
use uturn_model::ingress::PathKind;
use uturn_model::lb::{PathNormalization, Redirect, Rule};
use uturn_model::{Name, NamespacedName, ObjectKind, ObjectRef, Port, Text};

use crate::decode::FromNode;
use crate::decode::value::one_of;

use super::form::Form;
use super::listener::OfListener;
use super::target;
use super::values::{check_host, check_path};

/// The nodes in which a listener's rules are written.
pub(super) enum RuleNodes<'d> {
    /// The items of the listener's list of rules.
    Rules(Vec<&'d Node<'d>>),
    /// The listener itself, which has the targets of its only rule.
    Targets(&'d Node<'d>),
}

impl<'d> RuleNodes<'d> {
    pub(super) fn of(
        form: &Form<'_, 'd>,
        listener: &'d Node<'d>,
        of_listener: &OfListener<'_>,
    ) -> Self {
        let (rules, targets) = (listener.get("rules"), listener.get("targets"));
        if let (Some(_), Some(targets)) = (rules, targets) {
            form.fault(targets, "a listener has targets or rules, not both");
        }
        if targets.is_some() && rules.is_none() {
            return Self::Targets(listener);
        }
        let nodes: Vec<_> = form.maps(listener, "rules").collect();
        match (form.items(listener, "rules"), rules) {
            ([], None) => form.lacks(listener, "rules", "rules, or targets"),
            ([], Some(rules)) => form.wrong(rules, "expected at least one rule"),
            ([_, second, ..], _) if of_listener.is_layer_4() => {
                let layer_4 = "expected a single rule: on layer 4 nothing tells requests apart";
                form.wrong(second, layer_4);
            }
            _ => {}
        }
        Self::Rules(nodes)
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Rules(nodes) => nodes.len(),
            Self::Targets(_) => 1,
        }
    }

    pub(super) fn each<T>(&self, each: impl FnMut(&'d Node<'d>) -> T) -> Vec<T> {
        match self {
            Self::Rules(nodes) => nodes.iter().copied().map(each).collect(),
            Self::Targets(listener) => [*listener].into_iter().map(each).collect(),
        }
    }

    pub(super) fn is_listener(&self) -> bool {
        matches!(self, Self::Targets(_))
    }
}

/// Reads the rule of a listener that has targets itself.
pub(super) fn only<'d>(
    form: &Form<'_, 'd>,
    listener: &'d Node<'d>,
    of_listener: &OfListener<'_>,
) -> (Rule, RuleSettings) {
    let around = of_listener.around;
    let rule = Rule {
        host: None,
        path: None,
        service: around.service(),
        owner: around.owner(),
        targets: target::read_all(form, listener, of_listener),
        redirect: None,
    };
    (rule, RuleSettings { probe: of_listener.probes.usual(), ..RuleSettings::default() })
}

/// Reads a rule.
pub(super) fn read<'d>(
    form: &Form<'_, 'd>,
    node: &'d Node<'d>,
    of_listener: &OfListener<'_>,
) -> Option<(Rule, RuleSettings)> {
    let around = of_listener.around;
    let targets = target::read_all(form, node, of_listener);
    form.only(
        node,
        &[
            "host",
            "path",
            "service",
            "owner",
            "targets",
            "redirect",
            "forward",
            "stickiness",
            "probe",
        ],
    );
    if of_listener.is_layer_4()
        && let Some(protocol) = of_listener.protocol
    {
        let only = "only rules of HTTP and HTTPS listeners have it";
        form.not_here(node, &["host", "path", "redirect", "forward"], only, protocol);
    }
    let host = form.read::<Text>(node, "host");
    if let Some((host, node)) = host.as_ref().zip(node.get("host")) {
        check_host(form, node, host);
    }
    let path = node.get("path").map(|node| read_path(form, node, of_listener));
    let service = form.read::<NamespacedName>(node, "service");
    let owner = form.map(node, "owner").map(|owner| object(form, owner));
    let redirect = form.map(node, "redirect").map(|node| read_redirect(form, node));
    match (node.get("redirect"), node.get("targets")) {
        (None, None) => form.lacks(node, "targets", "targets, or a redirect"),
        (Some(redirect), Some(_)) => form.wrong(redirect, "a rule has targets or a redirect"),
        _ => {}
    }
    let settings = RuleSettings {
        forward: form.read(node, "forward").unwrap_or_default(),
        stickiness: form
            .map(node, "stickiness")
            .and_then(|node| read_stickiness(form, node, of_listener)),
        probe: of_listener.probes.of_rule(form, node),
    };
    let rule = Rule {
        host,
        path: path.unwrap_or(Some(None))?,
        owner: match (owner, &service) {
            (Some(owner), _) => owner?,
            (None, Some(service)) => ObjectRef::namespaced(ObjectKind::Service, service),
            (None, None) => around.owner(),
        },
        service: service.unwrap_or_else(|| around.service()),
        targets,
        redirect: redirect.unwrap_or(Some(None))?,
    };
    Some((rule, settings))
}

/// Reads a path, alone or with its type. Returns `None` if it cannot be read.
#[expect(clippy::option_option, reason = "a rule may have none, and one may be wrong")]
fn read_path<'d>(
    form: &Form<'_, 'd>,
    node: &'d Node<'d>,
    of_listener: &OfListener<'_>,
) -> Option<Option<(Text, PathKind)>> {
    let (path, kind, place) = if matches!(node.value, Value::Map(_)) {
        form.only(node, &["path", "type"]);
        let path = form.need::<Text>(node, "path");
        let kind = match node.get("type") {
            Some(kind) => form.value::<PathKind>(kind)?,
            None => PathKind::Prefix,
        };
        (path?, kind, node.get("path")?)
    } else {
        (form.value::<Text>(node)?, PathKind::Prefix, node)
    };
    match kind {
        PathKind::ImplementationSpecific if is_pattern(&path) => {
            if let Err(why) = Pattern::path(&path) {
                form.wrong(place, why.to_string());
            }
        }
        PathKind::ImplementationSpecific => {
            let prefix = path.strip_prefix("^~").map_or(&*path, str::trim_start);
            check_path(form, place, prefix, false);
            // The prefix may end in the middle of a segment.
            check_normal(form, place, prefix, "x", of_listener);
        }
        PathKind::Exact | PathKind::Prefix => {
            check_path(form, place, &path, false);
            check_normal(form, place, &path, "", of_listener);
        }
    }
    Some(Some((path, kind)))
}

/// Reports a path that no request can have, since paths of requests are compared in their normal
/// form. `rest` is appended to a prefix to make it a whole path.
fn check_normal(
    form: &Form<'_, '_>,
    node: &Node<'_>,
    path: &str,
    rest: &str,
    of_listener: &OfListener<'_>,
) {
    if of_listener.profile.path_normalization == PathNormalization::Off || !path.starts_with('/') {
        return;
    }
    let whole = format!("{path}{rest}");
    match request_path::normal(&whole) {
        Ok(own) if own == whole => {}
        Ok(own) => {
            let own = own.strip_suffix(rest).unwrap_or(&own);
            let why = "since paths of requests are compared in their normal form";
            form.wrong(node, format!("expected {own}, {why}, found {path}"));
        }
        Err(refused) => form.wrong(node, format!("requests for it are refused: {refused}")),
    }
}

#[expect(clippy::option_option, reason = "a rule may have none, and one may be wrong")]
fn read_redirect<'d>(form: &Form<'_, 'd>, node: &'d Node<'d>) -> Option<Option<Redirect>> {
    form.only(node, &["status", "tls", "host", "port", "path"]);
    let code = form.read::<u16>(node, "status").unwrap_or(302);
    if let Some(node) = node.get("status")
        && ![301, 302, 307, 308].contains(&code)
    {
        form.wrong(node, format!("expected 301, 302, 307 or 308, found {}", node.describe()));
    }
    let tls = form.read(node, "tls").unwrap_or(false);
    let port = match node.get("port") {
        Some(port) => form.value::<Port>(port)?,
        None => Port::new(if tls { 443 } else { 80 }).expect("it is a port"),
    };
    let host = form.read::<Text>(node, "host");
    if let Some((host, node)) = host.as_ref().zip(node.get("host")) {
        check_host(form, node, host);
        if host.starts_with(['*', '~']) {
            form.wrong(node, "expected a single host, to which clients are sent");
        }
    }
    let path = form.read::<Text>(node, "path");
    if let Some((path, node)) = path.as_ref().zip(node.get("path")) {
        check_path(form, node, path, true);
    }
    Some(Some(Redirect { code, tls, host, port, path }))
}

fn object<'d>(form: &Form<'_, 'd>, node: &'d Node<'d>) -> Option<ObjectRef> {
    form.only(node, &["kind", "namespace", "name"]);
    let kind = form.need::<ObjectKind>(node, "kind");
    let namespace = form.read::<Name>(node, "namespace");
    let name = form.need::<Text>(node, "name");
    Some(ObjectRef { kind: kind?, namespace, name: name? })
}

fn read_stickiness<'d>(
    form: &Form<'_, 'd>,
    node: &'d Node<'d>,
    of_listener: &OfListener<'_>,
) -> Option<Stickiness> {
    form.only(node, &["source", "cookie", "maxAge"]);
    let second = Duration::from_secs(1);
    let times = second..=86_400 * second;
    let expected = "a time from 1s to 24h";
    match (node.get("source"), node.get("cookie")) {
        (Some(_), Some(cookie)) => {
            form.fault(cookie, "a client stays by its source or by a cookie, not by both");
            None
        }
        (None, None) => {
            form.fault(node, "expected source, with a time, or cookie, with a name");
            None
        }
        (Some(_), None) => {
            if let Some(age) = node.get("maxAge") {
                form.fault(age, "only a cookie has a maxAge; source has its time itself");
            }
            form.within(node, "source", times, expected).map(Stickiness::Source)
        }
        (None, Some(cookie)) => {
            let name = form.value::<Text>(cookie)?;
            if of_listener.is_layer_4() {
                form.wrong(cookie, "only HTTP and HTTPS have cookies: expected source");
            }
            if name.is_empty() || !name.bytes().all(is_token) {
                form.wrong(cookie, "expected letters, digits and '-', '_', '.' as a cookie's name");
            }
            // As an attribute of a cookie, the time has whole seconds.
            let max_age = form.within::<Duration>(node, "maxAge", times, expected);
            if let (Some(age), Some(node)) = (max_age, node.get("maxAge"))
                && age.subsec_nanos() > 0
            {
                form.wrong(node, format!("expected whole seconds, found {age:?}"));
            }
            Some(Stickiness::Cookie { name, max_age })
        }
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)
}

/// Reports rules that never match, and redirects that lead to themselves.
pub(super) fn check_all<'d>(
    form: &Form<'_, 'd>,
    nodes: &RuleNodes<'d>,
    rules: &[Rule],
    of_listener: &OfListener<'_>,
) {
    if form.is_derived() || nodes.is_listener() || of_listener.is_layer_4() {
        return;
    }
    let places = nodes.each(|node| node);
    let mut first: HashMap<(String, String, PathKind), usize> = HashMap::new();
    for (i, (rule, node)) in rules.iter().zip(&places).enumerate() {
        match first.get(&what_it_serves(rule)) {
            Some(earlier) => {
                let line = places[*earlier].line;
                form.wrong(node, format!("the rule at line {line} has this host and path already"));
            }
            None => drop(first.insert(what_it_serves(rule), i)),
        }
        if leads_to_itself(rules, i, of_listener)
            && let Some(redirect) = node.get("redirect")
        {
            form.wrong(redirect, "clients that follow this redirect come to this rule again");
        }
    }
}

/// Returns a key that is equal for two rules of which only the first is ever used.
fn what_it_serves(rule: &Rule) -> (String, String, PathKind) {
    let host = rule.host.as_deref().unwrap_or_default().to_ascii_lowercase();
    let (path, kind) = match &rule.path {
        Some((path, kind)) => (&**path, *kind),
        None => ("/", PathKind::Prefix),
    };
    let path = if kind == PathKind::Prefix { path.trim_end_matches('/') } else { path };
    (host, path.to_owned(), kind)
}

/// Returns whether a client that follows the redirect of a rule comes to this rule again.
fn leads_to_itself(rules: &[Rule], at: usize, of_listener: &OfListener<'_>) -> bool {
    let rule = &rules[at];
    let (Some(to), Some(protocol)) = (&rule.redirect, of_listener.protocol) else { return false };
    if Some(to.port) != of_listener.port || to.tls != protocol.ends_tls() {
        return false;
    }
    let asked = rule.host.as_deref().unwrap_or("any.invalid").replacen("*.", "any.", 1);
    let host = to.host.as_deref().unwrap_or(&asked);
    match (&to.path, to.host.is_some()) {
        (Some(path), _) => position(rules, host, path) == Some(at),
        // The path stays the same, so without another host the same rule matches.
        (None, false) => true,
        (None, true) => {
            let path = rule.path.as_ref().map_or("/", |(path, _)| path);
            position(rules, host, path) == Some(at)
        }
    }
}

impl FromNode for Forward {
    const EXPECTED: &'static str = "http1 or h2c";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        one_of(node, &[("http1", Self::Http1), ("h2c", Self::H2c)])
    }
}
