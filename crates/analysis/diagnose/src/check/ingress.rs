//! Checks an Ingress.

use std::net::SocketAddr;

use uturn_clouds::controller;
use uturn_model::gateway::AttachedRoute;
use uturn_model::ingress::Backend;
use uturn_model::lb::Scope;
use uturn_model::shell::{Advice, Command};
use uturn_model::{
    Client, Destination, Family, Ingress, NamespacedName, Protocol, Unjudged, Unknown,
};
use uturn_path::{Engine, any_client};

use super::service::{cluster_ip, groups, health_of};
use super::{Check, Checklist, State, a_pod_on_each, flow, walked};
use crate::Code;

pub(super) fn check(engine: &Engine<'_>, ingress: &Ingress) -> Checklist {
    let subject = ingress.object().short();
    let passes = ingress.route.as_ref().is_some_and(AttachedRoute::is_of_connections);
    if !controller::is_served(engine.cluster(), ingress) {
        let class = ingress.class.as_deref().unwrap_or("none");
        let is_it = |gap: &&Unjudged| {
            gap.subject.is_of_balancer() && gap.objects.contains(&ingress.object())
        };
        let check = match engine.cluster().unjudged.iter().find(is_it) {
            Some(gap) => {
                let mut check = Check::unknown("what serves it is known", gap.because.to_string())
                    .because(what_serves(&gap.subject));
                let settle = Some(&gap.settle).filter(|settle| !settle.is_empty());
                check.next = settle.map(|settle| Advice::sentence(settle));
                check
            }
            None => Check::unknown(
                "the cloud's load balancer serves it",
                format!("its class is {class}: another controller does"),
            ),
        };
        let are_several = ingress.unjudged.contains(&Unknown::Versions);
        let backends = if are_several { Vec::new() } else { backends(engine, ingress) };
        return Checklist { subject, checks: [vec![check], backends].concat() };
    }
    let mut checks = vec![groups(engine)];
    checks.push(match engine.cluster().controller_for(ingress) {
        Some(found) => Check::ok(
            "what serves it is known",
            format!("pods of {} ({}, {})", found.workload, found.product, found.origin),
        ),
        None => lb_group(engine, ingress),
    });
    checks.extend(backends(engine, ingress));
    // Connections are forwarded without reading hosts and paths.
    checks.extend((!passes).then(|| rules(ingress)));
    let (port, _) = controller::ingress_listens(engine.cluster(), ingress);
    let is_open = ingress.unjudged.contains(&Unknown::Backends);
    for vip in ingress.load_balancer.iter().filter_map(|address| address.ip) {
        let at = SocketAddr::new(vip, port.number());
        checks.extend(health_of(engine, at, Protocol::Tcp, is_open));
    }
    checks.push(calls(engine, ingress));
    checks.extend(outside(engine, ingress));
    Checklist { subject, checks }
}

/// Describes what serves an Ingress that is not judged.
fn what_serves(unknown: &Unknown) -> String {
    let server = match unknown {
        Unknown::Controller(name) | Unknown::ServiceProxy(name) => name.to_string(),
        Unknown::LoadBalancers(kind) => format!("a load balancer of {kind}"),
        Unknown::Endpoints | Unknown::Backends => {
            return "its backends are not given".to_owned();
        }
        Unknown::Listeners => {
            return "the settings of its load balancer's listeners could not be read".to_owned();
        }
        Unknown::Versions => {
            return "it is defined more than once, with different contents".to_owned();
        }
        Unknown::Calls => return "what happens to some calls is not known".to_owned(),
        Unknown::Windows => return "its nodes run Windows".to_owned(),
    };
    format!("{server} serves it, and what it does is not modelled")
}

/// Checks the load balancer's own security group.
fn lb_group(engine: &Engine<'_>, ingress: &Ingress) -> Check {
    let (port, _) = controller::ingress_listens(engine.cluster(), ingress);
    let what = format!("the load balancer's security group lets {port} in");
    let balancer = engine
        .listeners()
        .iter()
        .find(|balancer| ingress.load_balancer.iter().any(|lb| lb.ip == Some(balancer.vip)));
    let Some(balancer) = balancer else { return Check::unknown(what, "it has no address yet") };
    if balancer.security_groups.is_empty() {
        return Check::unknown(
            what,
            "no security group is stated for it: everything is assumed to \
             be let in",
        )
        .next(
            "look at the load balancer's security groups, or state \
             loadBalancers[].securityGroups in Facts",
        );
    }
    let known = &engine.cluster().security_groups;
    let groups: Vec<_> =
        balancer.security_groups.iter().filter_map(|name| known.get(name)).collect();
    if groups.len() < balancer.security_groups.len() {
        return Check::unknown(what, "the rules of its group are not stated");
    }
    let peer = any_client(Family::V4);
    let rule = groups
        .iter()
        .flat_map(|group| &group.inbound)
        .find(|rule| rule.matches(peer, Some(Protocol::Tcp), port.number()));
    match rule {
        Some(rule) if rule.accept => Check::ok(what, format!("{}", rule.origin)),
        Some(rule) => Check::failed(what, format!("{} drops it", rule.origin))
            .next(Code::SecurityGroup.explain()),
        None => Check::failed(
            what,
            format!("no rule of {} accepts it", balancer.security_groups.join(", ")),
        )
        .next(Code::SecurityGroup.explain()),
    }
}

fn backends(engine: &Engine<'_>, ingress: &Ingress) -> Vec<Check> {
    let cluster = engine.cluster();
    let mut all: Vec<Check> = Vec::new();
    let paths = ingress.rules.iter().flat_map(|rule| &rule.paths).map(|path| &path.backend);
    for backend in paths.chain(&ingress.default_backend) {
        let Backend::Service { name, port } = backend else { continue };
        if backend.is_action() {
            all.push(Check::unknown(
                format!("action {name} answers"),
                "an annotation says where it leads, and uturn does not read that annotation",
            ));
            continue;
        }
        let full = NamespacedName { namespace: ingress.name.namespace.clone(), name: name.clone() };
        let what = format!("backend svc/{full}:{port} answers in the cluster");
        if all.iter().any(|check| check.what == what) {
            continue;
        }
        let check = match cluster.services.get(&full) {
            None if cluster.may_have_service(&full) => {
                Check::unknown(&*what, "this Service is not in the input").next(
                    Command::new("kubectl -n")
                        .value(&full.namespace)
                        .words("get service")
                        .value(&full.name),
                )
            }
            None => Check::failed(&*what, "there is no such Service")
                .next(Code::BackendMissing.explain()),
            Some(service) => {
                if service.port_named(port).is_some() {
                    let check = Check { what: what.clone(), ..cluster_ip(engine, service) };
                    match check.state {
                        State::Failed => {
                            check.next(Command::new("uturn check service").value(&full))
                        }
                        _ => check,
                    }
                } else {
                    Check::failed(&*what, service.lacks_port(port))
                        .next(Code::BackendMissing.explain())
                }
            }
        };
        all.push(check);
    }
    all
}

/// Lists the hosts and paths of the rules: a request that matches no rule is answered with 404.
fn rules(ingress: &Ingress) -> Check {
    let what = "the rules name every host and path that is asked for (else 404)";
    let mut check = Check::unknown(what, "what clients ask for is not known here");
    for rule in &ingress.rules {
        let paths: Vec<&str> = rule.paths.iter().map(|path| &*path.path).collect();
        check.evidence.push(format!(
            "{} {}",
            rule.host.as_deref().unwrap_or("any host:"),
            paths.join(" ")
        ));
    }
    if ingress.default_backend.is_some() {
        return Check::ok(what, "a default backend takes the rest");
    }
    let to = format!("{}/HOST/PATH", ingress.object().short());
    check.next(Command::new("uturn trace --from outside --to").value(to))
}

fn targets(ingress: &Ingress) -> Vec<Destination> {
    let rules = ingress.rules.iter().flat_map(|rule| {
        rule.paths.iter().map(|path| Destination::Ingress {
            name: ingress.name.clone(),
            host: rule.host.clone(),
            path: Some(path.path.clone()),
            port: None,
        })
    });
    rules.collect()
}

/// Checks calls from pods to the Ingress, which may loop.
fn calls(engine: &Engine<'_>, ingress: &Ingress) -> Check {
    let mut flows = Vec::new();
    for pod in a_pod_on_each(engine) {
        let from = Client::Pod(pod.name.clone());
        flows.extend(targets(ingress).into_iter().map(|to| flow(from.clone(), to, Protocol::Tcp)));
    }
    walked(engine, "pods that call it are answered at once (a loop takes 4 s, or is a 504)", flows)
}

fn outside(engine: &Engine<'_>, ingress: &Ingress) -> Option<Check> {
    let is_public = engine.listeners().iter().any(|balancer| {
        balancer.scope == Scope::Public
            && ingress.load_balancer.iter().any(|lb| lb.ip == Some(balancer.vip))
    });
    let flows =
        targets(ingress).into_iter().map(|to| flow(Client::Outside(None), to, Protocol::Tcp));
    is_public.then(|| walked(engine, "clients from outside are answered", flows.collect()))
}
