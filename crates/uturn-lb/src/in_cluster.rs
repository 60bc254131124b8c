//! What controllers in the cluster do with requests: which rule serves one, and which endpoints the
//! pods of the controller may dial.
//!
//! A controller's pod makes a connection of its own to an endpoint of the Service behind the rule.
//! It is supposed to try endpoints that differ, each order as likely as any other: its workers take
//! turns independently of each other.

use std::collections::HashMap;
use std::time::Duration;

use uturn_model::controller::{ControllerBehaviour, ControllerListener, TlsRedirect};
use uturn_model::gateway::RouteRedirect;
use uturn_model::ingress::{Backend, BackendPort, PathKind};
use uturn_model::lb::{ListenerProtocol, Redirect, Target, TargetKind};
use uturn_model::service::ServiceKind;
use uturn_model::{
    Cluster, Family, Ingress, IngressController, NamespacedName, ObjectRef, Port, Service, Text,
};

use crate::addresses::addresses;
use crate::cloud::Owner;
use crate::cloud::{HTTP, HTTPS};
use crate::ingress_call::IngressCall;
use crate::pattern::is_pattern;
use crate::rules::{self, Conditions};
use crate::targets;
use annotations::PATTERN;

mod annotations;
pub(crate) mod routes;

/// A rule of a controller: one path of an Ingress.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerRule {
    /// The host; `None` for all hosts.
    pub host: Option<Text>,
    /// The path; `None` for all paths.
    pub path: Option<(Text, PathKind)>,
    /// Where it stands in its Ingress: which rule, and which path of it. `None` for the default
    /// backend.
    pub place: Option<(usize, usize)>,
    /// What it leads to, by weight.
    pub backends: Vec<RuleBackend>,
    /// The ports of its Gateway's listeners that it is for; `None` where all ports are alike.
    pub ports: Option<Vec<Port>>,
    /// Where it sends clients instead.
    pub redirect: Option<RouteRedirect>,
    /// Whether its host has TLS.
    pub tls: bool,
    /// What the controller does with a request that it serves.
    pub behaviour: ControllerBehaviour,
    /// Whether endpoints are spoken to by TLS.
    pub speaks_tls: bool,
    /// What of it is not modelled.
    pub unknown: Option<Text>,
    /// The Ingress.
    pub owner: ObjectRef,
}

/// What a rule of a controller leads to.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleBackend {
    /// The Service and its port.
    pub to: Leads,
    /// Its part of the requests.
    pub weight: u32,
}

/// Where a part of a rule's requests goes.
#[derive(Clone, Debug, PartialEq)]
pub enum Leads {
    /// To a port of a Service.
    Service(NamespacedName, BackendPort),
    /// To a Service that the rule may not lead to: an error of the controller's own.
    Nowhere(NamespacedName),
    /// To a Service of which it is not known whether the rule may lead there.
    Doubtful(NamespacedName),
    /// To another object.
    Elsewhere,
}

impl Leads {
    /// The Service, where it is known that requests go there.
    pub fn service(&self) -> Option<&NamespacedName> {
        match self {
            Self::Service(name, _) => Some(name),
            Self::Nowhere(_) | Self::Doubtful(_) | Self::Elsewhere => None,
        }
    }
}

/// The status for requests that a rule of a route leads nowhere: the Gateway API says so.
const LEADS_NOWHERE: u16 = 500;

impl ControllerRule {
    /// The status where a Service or its port does not exist.
    pub fn missing_backend(&self) -> u16 {
        match self.ports {
            Some(_) => LEADS_NOWHERE,
            None => self.behaviour.no_endpoint,
        }
    }

    /// Whether it is for requests at a port of a controller's pods.
    fn is_at(&self, listener: &ControllerListener) -> bool {
        let Some(ports) = &self.ports else { return true };
        let mut called = listener.services.iter().map(|(_, port)| port);
        ports.contains(&listener.port) || called.any(|port| ports.contains(port))
    }
}

impl Conditions for ControllerRule {
    fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    fn path(&self) -> Option<(&str, PathKind)> {
        self.path.as_ref().map(|(path, kind)| (&**path, *kind))
    }
}

/// What becomes of a request at a controller.
#[derive(Clone, Debug, PartialEq)]
pub enum Served<'r> {
    /// A rule passes it to a Service.
    By(&'r ControllerRule),
    /// It is told to ask by TLS.
    Redirected(&'r ControllerRule, Redirect),
    /// No rule is for it: 404.
    ByNone,
    /// It is not known. The text says why.
    Unknown(Text, Option<&'r ControllerRule>),
}

/// The rules of one controller, prepared for many requests.
#[derive(Clone, Debug, Default)]
pub struct ControllerRules {
    all: Vec<ControllerRule>,
    /// By host, in lower case, and those of wildcards by what follows the star.
    by_host: HashMap<String, Vec<usize>>,
    /// For hosts by an expression, the longest first.
    by_expression: Vec<usize>,
    /// For all hosts.
    of_any: Vec<usize>,
}

impl ControllerRules {
    /// Of all Ingresses that a controller serves or may serve, whatever their addresses are.
    pub fn new(cluster: &Cluster, controller: &IngressController) -> Self {
        let mut rules = Self::default();
        let all = cluster.ingresses.values().flat_map(|ingress| {
            if ingress.controller.as_ref() == Some(&controller.workload) {
                return of_ingress(controller, ingress);
            }
            match ingress.possible_controllers.contains(&controller.workload) {
                true => doubtful(of_ingress(controller, ingress)),
                false => Vec::new(),
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
                None => rules.of_any.push(place),
            }
            rules.all.push(rule);
        }
        let length = |place: &usize| rules.all[*place].host.as_ref().map_or(0, |host| host.len());
        rules.by_expression.sort_by_key(|place| std::cmp::Reverse(length(place)));
        rules
    }

    /// What becomes of a request at a port of the controller's pods.
    pub fn serve(
        &self,
        controller: &IngressController,
        listener: &ControllerListener,
        host: &str,
        path: &str,
    ) -> Served<'_> {
        let tls = listener.tls;
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name).to_ascii_lowercase();
        let wild = name.find('.').map(|dot| &name[dot..]).unwrap_or_default();
        let named = [name.as_str(), wild].into_iter().filter_map(|name| self.by_host.get(name));
        let places = named.flatten().chain(&self.by_expression).chain(&self.of_any);
        let all: Vec<&ControllerRule> =
            places.map(|place| &self.all[*place]).filter(|rule| rule.is_at(listener)).collect();
        // Who asks for an expression as it is written means the rule that has it.
        let is_written = |rule: &&ControllerRule| {
            let pattern = rule.path.as_ref().and_then(|(own, _)| own.strip_prefix(PATTERN));
            pattern == Some(path)
        };
        let written = all.iter().position(is_written);
        let found = written.or_else(|| match controller.behaviour.goes_on_to_other_hosts {
            true => rules::position(&all, host, path),
            false => rules::position_in_host(&all, host, path),
        });
        let Some(rule) = found.map(|place| all[place]) else {
            return match &controller.other_rules {
                Some(kind) => {
                    let why = format!(
                        "objects of {kind} may have a rule for {host}{path}, and are not read"
                    );
                    Served::Unknown(why.into(), None)
                }
                None => Served::ByNone,
            };
        };
        if let Some(why) = &rule.unknown {
            return Served::Unknown(why.clone(), Some(rule));
        }
        if let Some(redirect) = &rule.redirect {
            return Served::Redirected(rule, routes::redirected(redirect, listener, rule));
        }
        if rule.ports.is_some() {
            return Served::By(rule);
        }
        if tls && !rule.tls && !controller.behaviour.has_default_certificate {
            let why =
                "no certificate for this host is stated, and what is said without one is not known";
            return Served::Unknown(why.into(), Some(rule));
        }
        if !tls && rule.tls {
            match rule.behaviour.redirects_to_tls {
                TlsRedirect::Never => {}
                TlsRedirect::With(code) => {
                    let redirect =
                        Redirect { code, tls: true, host: None, port: HTTPS, path: None };
                    return Served::Redirected(rule, redirect);
                }
                TlsRedirect::Unknown => {
                    let why = "whether it sends clients of hosts with TLS to https is not known";
                    return Served::Unknown(why.into(), Some(rule));
                }
            }
        }
        Served::By(rule)
    }
}

/// Rules of an Ingress that a controller may serve.
fn doubtful(mut rules: Vec<ControllerRule>) -> Vec<ControllerRule> {
    for rule in &mut rules {
        let why = || format!("whether this controller serves {} is not known", rule.owner);
        rule.unknown = rule.unknown.take().or_else(|| Some(why().into()));
    }
    rules
}

/// The rules of an Ingress as a controller reads it.
fn of_ingress(controller: &IngressController, ingress: &Ingress) -> Vec<ControllerRule> {
    if let Some(route) = &ingress.route {
        return routes::of_route(controller, ingress, route);
    }
    let read = annotations::read(controller, ingress);
    if read.is_canary {
        return Vec::new();
    }
    let has_tls = |host: Option<&Text>| {
        let Some(host) = host else { return false };
        let hosts = || ingress.tls.iter().flat_map(|tls| &tls.hosts);
        let covers = |known: &Text| rules::is_for_host(known, host);
        hosts().any(covers)
    };
    let rule = |host: Option<&Text>, path, place, backend: &Backend| ControllerRule {
        host: host.cloned(),
        path,
        place,
        backends: vec![RuleBackend {
            to: match backend {
                Backend::Service { name, port } => {
                    let namespace = ingress.name.namespace.clone();
                    Leads::Service(NamespacedName { namespace, name: name.clone() }, port.clone())
                }
                Backend::Resource(_) | Backend::Services(_) | Backend::Redirect(_) => {
                    Leads::Elsewhere
                }
            },
            weight: 1,
        }],
        ports: None,
        redirect: None,
        tls: has_tls(host),
        behaviour: read.behaviour.clone(),
        speaks_tls: read.speaks_tls,
        unknown: read.unknown.clone(),
        owner: ingress.object(),
    };
    let mut all = Vec::new();
    for (at, of_host) in ingress.rules.iter().enumerate() {
        let mut has_root = false;
        for (number, path) in of_host.paths.iter().enumerate() {
            has_root |= &*path.path == "/" && path.kind != PathKind::Exact;
            let conditions = Some((annotations::path(&read, path), path.kind));
            all.push(rule(of_host.host.as_ref(), conditions, Some((at, number)), &path.backend));
        }
        // What no path of a host serves, the Ingress's own default serves.
        if let Some(backend) = ingress.default_backend.as_ref().filter(|_| !has_root) {
            all.push(rule(of_host.host.as_ref(), None, None, backend));
        }
    }
    if let Some(backend) = &ingress.default_backend {
        all.push(rule(None, None, None, backend));
    }
    all
}

/// Where a part of a rule's requests goes.
#[derive(Clone, Debug, PartialEq)]
pub enum Dialled<'c> {
    /// To one of these endpoints, or to the Service's own address.
    Targets(&'c Service, Vec<Target>),
    /// The Service, or its port, does not exist.
    Missing(NamespacedName),
    /// The rule may not lead to that Service.
    NotGranted(NamespacedName),
    /// Whether the rule may lead to that Service is not known.
    Doubtful(NamespacedName),
    /// It leads out of the cluster, or to an object that is no Service.
    Unknown,
}

/// What a controller's pods may dial for a part of a rule's requests, from addresses of one of these
/// families.
pub fn dialled<'c>(
    cluster: &'c Cluster,
    rule: &ControllerRule,
    backend: &RuleBackend,
    families: &[Family],
) -> Dialled<'c> {
    let (name, port) = match &backend.to {
        Leads::Service(name, port) => (name, port),
        Leads::Nowhere(name) => return Dialled::NotGranted(name.clone()),
        Leads::Doubtful(name) => return Dialled::Doubtful(name.clone()),
        Leads::Elsewhere => return Dialled::Unknown,
    };
    let Some(service) = cluster.services.get(name) else { return Dialled::Missing(name.clone()) };
    if matches!(service.kind, ServiceKind::ExternalName(_)) {
        return Dialled::Unknown;
    }
    let Some(port) = service.port_named(port) else { return Dialled::Missing(name.clone()) };
    let usual = families.iter().copied().find(|family| {
        let has_slice = cluster.slices(name).iter().any(|slice| slice.family == *family);
        service.cluster_ip(*family).is_some() || has_slice
    });
    let Some(family) = usual else { return Dialled::Targets(service, Vec::new()) };
    let own = service.cluster_ip(family).filter(|_| rule.behaviour.dials_services);
    let all = match own {
        Some(ip) => vec![Target {
            address: (ip, port.port.number()).into(),
            weight: 1,
            kind: TargetKind::Pod { pod: None, node: None },
        }],
        None => {
            targets::pods(cluster, service, port, family, |endpoint| endpoint.ready.then_some(1))
        }
    };
    Dialled::Targets(service, all)
}

/// How one endpoint takes a connection, of all that are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It refused.
    Refused,
    /// It did not answer in time.
    TimedOut,
}

/// The status of a request of which every try failed, and how long the tries that timed out took.
/// `None` if that is not known.
pub fn given_up(
    behaviour: &ControllerBehaviour,
    last: Failure,
    timeouts: u32,
) -> Option<(u16, Duration)> {
    let code = match last {
        Failure::Refused => behaviour.refused,
        Failure::TimedOut => behaviour.timed_out,
    };
    match timeouts {
        0 => Some((code, Duration::ZERO)),
        _ => Some((code, behaviour.connect_timeout? * timeouts)),
    }
}

/// Completes a call of an Ingress that a controller in the cluster serves: by TLS where the host has
/// it, at the port of the Service that has the Ingress's address.
pub fn call(
    cluster: &Cluster,
    controller: &IngressController,
    ingress: &Ingress,
    host: Option<&Text>,
    path: Option<&Text>,
) -> IngressCall {
    let rule = ingress.rules.iter().find(|rule| host.is_none() || rule.host.as_ref() == host);
    let host = host.or_else(|| rule?.host.as_ref());
    let path = path.or_else(|| Some(&rule?.paths.first()?.path));
    if let Some(route) = &ingress.route {
        return routes::call(route, host, path);
    }
    let mut hosts = ingress.tls.iter().flat_map(|tls| &tls.hosts);
    let has_tls = host.is_some_and(|host| hosts.any(|known| rules::is_for_host(known, host)));
    let own = addresses(cluster, Owner::Ingress(ingress));
    let vip = own.first().map(|first| first.address);
    let at_address = |name: &NamespacedName| {
        let (Some(vip), Some(service)) = (vip, cluster.services.get(name)) else { return false };
        let mut all = addresses(cluster, Owner::Service(service)).into_iter();
        service.has_address(vip) || all.any(|at| at.address == vip)
    };
    let port_for = |tls: bool| {
        let listeners = controller.listeners.iter().filter(move |listener| listener.tls == tls);
        let services = listeners.flat_map(|listener| &listener.services);
        let mut ports = services.filter(|(name, _)| at_address(name)).map(|(_, port)| *port);
        let usual = if tls { HTTPS } else { HTTP };
        let all: Vec<Port> = ports.by_ref().collect();
        all.iter().copied().find(|port| *port == usual).or(all.first().copied())
    };
    let is_served = |tls: bool| port_for(tls).is_some();
    let tls = if has_tls { is_served(true) || !is_served(false) } else { false };
    IngressCall {
        host: host.cloned(),
        path: path.cloned(),
        port: port_for(tls).unwrap_or(if tls { HTTPS } else { HTTP }),
        protocol: if tls { ListenerProtocol::Https } else { ListenerProtocol::Http },
    }
}
