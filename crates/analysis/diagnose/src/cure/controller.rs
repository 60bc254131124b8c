//! Cures of calls to backends of a controller in the cluster: the calls bypass the load balancer,
//! with the controller or without it.

use uturn_clouds::ingress_controller::{
    BackendRef, ControllerRule, ControllerRules, RoutingResult, RuleBackend,
};
use uturn_document::edit::{At, Change, Tree};
use uturn_model::controller::{
    ControllerBehaviour, ControllerListener, IngressController, ProxyExpectation,
};
use uturn_model::ingress::BackendPort;
use uturn_model::service::ServicePort;
use uturn_model::shell::Advice;
use uturn_model::{
    Destination, Mechanism, NamespacedName, ObjectKind, ObjectRef, Outcome, Service,
};

use super::facts::facts;
use super::{Case, CaseState, Proposal, name, way};
use crate::cloud;

pub(super) fn propose(case: &Case<'_>) -> Vec<Proposal> {
    if case.has(Mechanism::ProxyHeader) && case.walked().is_some() {
        proxy_header(case)
    } else {
        Vec::new()
    }
}

/// Returns whether a controller behind the load balancer of a case answers, and its backend fails.
pub(super) fn answers(case: &Case<'_>) -> bool {
    let CaseState::Flow { outcomes, .. } = &case.before else { return false };
    let mut failing = outcomes.iter().filter(|(outcome, _)| !outcome.is_fine()).peekable();
    let is_behind = failing.peek().is_some() && behind(case).is_some();
    is_behind && failing.all(|(outcome, _)| matches!(outcome, Outcome::Status { .. }))
}

/// Returns the controller whose pods are behind the load balancer of a case, or at the called
/// address.
pub(super) fn behind<'a>(case: &Case<'a>) -> Option<&'a IngressController> {
    let cluster = case.cluster();
    let of_service = || {
        let slices = cluster.slices(case.aim.service.as_ref()?);
        let mut pods = slices
            .iter()
            .flat_map(|slice| &slice.endpoints)
            .filter_map(|endpoint| cluster.pods.get(endpoint.pod.as_ref()?));
        cluster.controller_of(pods.next()?)
    };
    let met = || cluster.controller_of(cluster.pods.get(&case.met.at.as_ref()?.0)?);
    of_service().or_else(met)
}

/// The Service and the port to which a controller's rule leads, as the rule names them.
pub(super) struct Routed<'c> {
    pub(super) controller: &'c IngressController,
    pub(super) behaviour: ControllerBehaviour,
    pub(super) service: NamespacedName,
    pub(super) port: BackendPort,
}

/// Returns the Service to which a controller passes the call of a case, and its port. Returns
/// `None` if the call passes no controller, or if no rule matches the call.
pub(super) fn backend<'a>(case: &Case<'a>) -> Option<(&'a Service, &'a ServicePort)> {
    let routed = routed(case)?;
    let service = case.cluster().services.get(&routed.service)?;
    Some((service, service.port_named(&routed.port)?))
}

/// Returns what the rule for the call of a case names. Returns `None` if the call passes no
/// controller, if no rule matches it, or if the rule names several Services.
pub(super) fn routed<'a>(case: &Case<'a>) -> Option<Routed<'a>> {
    with_rule(case, |controller, rule| {
        // Calls that are distributed over several Services have no single name to call instead.
        let [RuleBackend { to: BackendRef::Service(name, port), .. }] = rule.backends.as_slice()
        else {
            return None;
        };
        Some(Routed {
            controller,
            behaviour: rule.behaviour.clone(),
            service: name.clone(),
            port: port.clone(),
        })
    })
}

/// Reads the controller's rule for the call of a case. Returns `None` if the call passes no controller,
/// or if no rule matches it.
pub(super) fn with_rule<'a, T>(
    case: &Case<'a>,
    read: impl FnOnce(&'a IngressController, &ControllerRule) -> Option<T>,
) -> Option<T> {
    let (cluster, controller) = (case.cluster(), behind(case)?);
    let rules = ControllerRules::new(cluster, controller);
    let path = case.aim.path.as_deref().unwrap_or("/");
    let listener = called_listener(case, controller)?;
    // A call without a host requests the address.
    let of_flow = || match &case.walked()?.to {
        Destination::Address(address) => Some(address.ip().to_string()),
        Destination::Url { host, .. } | Destination::Host(host, _) => Some(host.to_string()),
        Destination::Ingress { name, .. } => {
            let mut all = case.cluster().ingresses.get(name)?.load_balancer.iter();
            all.find_map(|address| address.ip).map(|ip| ip.to_string())
        }
        Destination::Service(..) | Destination::Pod(..) => None,
    };
    let of_address = || case.aim.vip.map(|vip| vip.ip().to_string()).or_else(of_flow);
    let host = case.aim.host.as_ref().map(ToString::to_string).or_else(of_address)?;
    match rules.serve(controller, listener, listener.tls, &host, path) {
        RoutingResult::Forwarded(rule) | RoutingResult::Redirected(Some(rule), _) => {
            read(controller, rule)
        }
        RoutingResult::NoRule
        | RoutingResult::Refused(..)
        | RoutingResult::Redirected(None, _)
        | RoutingResult::Unknown(..) => None,
    }
}

/// Returns the port of the controller's pods that the call reaches: the one at which a walk arrived,
/// or the one to which the Service's port leads, or else one without TLS.
pub(super) fn called_listener<'c>(
    case: &Case<'_>,
    controller: &'c IngressController,
) -> Option<&'c ControllerListener> {
    // The client may be a pod of the controller, too.
    let met = case.met.at.as_ref().and_then(|(_, port)| controller.listener(port.number()));
    if met.is_some() {
        return met;
    }
    let called = (case.aim.service.as_ref(), case.aim.called);
    let mut listeners = controller.listeners.iter();
    let is_called = |listener: &&ControllerListener| {
        let mut services = listener.services.iter();
        services.any(|(name, port)| (Some(name), Some(*port)) == called)
    };
    let plain = || controller.listeners.iter().find(|listener| !listener.tls);
    listeners.find(is_called).or_else(plain)
}

/// Proposes that the load balancer and the controller agree on a PROXY header: the controller reads
/// one, or the load balancer sends none.
fn proxy_header(case: &Case<'_>) -> Vec<Proposal> {
    let Some(controller) = behind(case) else {
        // Programs behind a load balancer that no Service owns, such as API servers.
        let made =
            case.service().is_none().then(|| without_stated(case, Proposal::default())).flatten();
        let title = "no PROXY header from the load balancer".to_owned();
        let named = |made| Proposal { name: "no-proxy-header", title, rank: 20, ..made };
        return made.map(|made| named(made).trial()).into_iter().collect();
    };
    let listener = called_listener(case, controller);
    let Some(expected) = listener.map(|listener| &listener.proxy_header) else {
        return Vec::new();
    };
    let no_address =
        "servers see an address of the load balancer or of a node instead of the client's";
    let mut all = Vec::new();
    match expected {
        ProxyExpectation::NotExpected => {
            all.extend(settings(controller, 15, true).map(|made| {
                made.costs("every connection has to begin with a header: calls that bypass the load balancer fail")
            }));
            all.extend(without_header(case, Proposal::default()).map(|made| {
                let owner = match case.service() {
                    Some(service) => format!("the load balancer of svc/{}", service.name),
                    None => "the load balancer".to_owned(),
                };
                let title = format!("no PROXY header from {owner}");
                Proposal { name: "no-proxy-header", title, rank: 20, ..made }
                    .costs(no_address)
                    .trial()
            }));
        }
        ProxyExpectation::Required(_) => {
            let made = settings(controller, 60, false);
            let made = made.and_then(|made| without_header(case, made));
            all.extend(made.map(|made| made.costs(no_address).trial()));
        }
        ProxyExpectation::Accepted(_)
        | ProxyExpectation::Unasked(_)
        | ProxyExpectation::Unknown(_) => {}
    }
    all
}

/// Switches the PROXY header off where it is asked for: in the annotations of the Service, or in
/// Facts for a load balancer that no Service owns.
fn without_header(case: &Case<'_>, made: Proposal) -> Option<Proposal> {
    match case.service() {
        Some(service) => without_annotation(case, made, service),
        None => without_stated(case, made),
    }
}

/// Switches off the PROXY header that Facts state for the load balancer's listener.
fn without_stated(case: &Case<'_>, made: Proposal) -> Option<Proposal> {
    let (balancer, listener) = case.listener()?;
    let many = case.manifests.items_at(&facts(), &[At::from("loadBalancers")])?;
    let host = case.aim.host.as_deref();
    // A balancer that is stated by its name has an address that stands for it.
    let named = case.cluster().load_balancers.iter().find(|fact| fact.vip == balancer.vip);
    let named = named.and_then(|fact| fact.hostname.as_deref());
    let is_its = |name: &str| Some(name) == host || named == Some(name);
    let at = (0..many).find(|at| {
        let text = |key: &str| {
            let place = [At::from("loadBalancers"), At::Item(*at), At::from(key)];
            case.manifests.text_at(&facts(), &place)
        };
        text("vip").is_some_and(|vip| vip == balancer.vip.to_string())
            || text("hostname").is_some_and(|name| is_its(&name))
    })?;
    let port = At::Where("port".to_owned(), listener.port.to_string());
    let place = way!["loadBalancers", at, "listeners", port, "proxyHeader"];
    case.manifests.text_at(&facts(), &place)?;
    let advice = format!(
        "{}listener {} of the load balancer: no PROXY header for its targets",
        cloud::at_place(case.cluster()),
        listener.port
    );
    Some(
        made.edit(facts(), place, Change::Set(Tree::bare("null"))).types(Advice::sentence(&advice)),
    )
}

/// Sets in a controller's ConfigMap whether it reads a PROXY header.
fn settings(controller: &IngressController, rank: u8, is_on: bool) -> Option<Proposal> {
    let config_map = controller.settings.as_ref()?;
    let key = match &*controller.product {
        "ingress-nginx" | "HAProxy Ingress" => "use-proxy-protocol",
        "NGINX Ingress Controller" => "proxy-protocol",
        _ => return None,
    };
    let value = if is_on { "true" } else { "false" };
    let object = ObjectRef::namespaced(ObjectKind::ConfigMap, config_map);
    let title = format!("{key}: {value:?} in ConfigMap {config_map} of {}", controller.product);
    let change = Change::Set(Tree::text(value));
    Some(Proposal::new("proxy-header", rank, title).edit(object, way!["data", key], change))
}

/// Switches the PROXY header off in the annotations of a Service. Returns `None` if none of them
/// switches it on.
fn without_annotation(case: &Case<'_>, made: Proposal, service: &Service) -> Option<Proposal> {
    if !case.manifests.has(&service.object()) {
        return None;
    }
    let mut count = 0;
    let edited = service.annotations.iter().fold(made, |made, (key, value)| {
        let bare = key.replace(['-', '_'], "");
        let without = match value {
            "true" if bare.contains("proxyprotocol") => "false".to_owned(),
            list if list.contains(TARGET_GROUPS_HEADER) => {
                list.replace(TARGET_GROUPS_HEADER, "proxy_protocol_v2.enabled=false")
            }
            _ => return made,
        };
        count += 1;
        let change = Change::Set(Tree::text(without));
        made.edit(service.object(), way!["metadata", "annotations", key], change)
    });
    (count > 0).then_some(edited)
}

/// The setting with which the targets of a network load balancer get a PROXY header.
const TARGET_GROUPS_HEADER: &str = "proxy_protocol_v2.enabled=true";

/// Proposes to rewrite the host to the controller's own Service: routing by host and path, TLS and
/// headers stay as they are.
pub(super) fn rewrite(case: &Case<'_>) -> Option<Proposal> {
    let controller = behind(case)?;
    let service = case.service()?;
    if matches!(case.walked()?.to, Destination::Service(..)) {
        return None;
    }
    let host = name::host_of(case)?;
    let title = format!(
        "let CoreDNS answer {host} with svc/{}, which is {}'s",
        service.name, controller.product
    );
    let ends_tls = case.listener().is_some_and(|(_, listener)| listener.protocol.ends_tls());
    let made = name::needs_corefile(case, Proposal::new("dns-rewrite", 40, title)).when(
        "the load balancer does not end TLS",
        !ends_tls,
        if ends_tls { "it does, and the controller would get plain calls" } else { "it does not" },
    );
    let to = name::name_of(case, service);
    let is_tls = called_listener(case, controller).is_some_and(|listener| listener.tls);
    Some(name::to_host(case, made, Some(&host), &to, is_tls))
}
