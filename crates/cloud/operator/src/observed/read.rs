//! Reads the API's answers.

use std::collections::BTreeMap;
use std::net::IpAddr;

use uturn_cloud_api::clb::{self as wire, CertificateOutput, ListenerBackend};
use uturn_cloud_api::unserved::Unserved;
use uturn_model::Protocol;
use uturn_model::lb::{Layer, ListenerProtocol};

use super::{Balancer, Foreign, Listener};
use crate::clb::{
    self, BalancerSettings, Certificate, DomainSettings, Holder, LISTENER_NAME, ListenerKey,
    ListenerSettings, Redirect, Rule, RuleAt, RuleKey, RuleSettings, SnatAddress, TargetKey,
    Targets,
};

/// Returns a load balancer without its listeners.
pub(super) fn head(described: &wire::LoadBalancer) -> Balancer {
    let texts = described.load_balancer_vips.iter().flatten().chain(&described.address_ipv6);
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let tags = described.tags.iter().flatten();
    Balancer {
        id: described.load_balancer_id.clone().unwrap_or_default(),
        is_public: described.load_balancer_type.as_deref() == Some("OPEN"),
        subnet: given(&described.subnet_id),
        domain: given(&described.load_balancer_domain).or(given(&described.domain)),
        tags: tags.map(|tag| (tag.tag_key.clone(), tag.tag_value.clone())).collect(),
        settings: BalancerSettings {
            passes_to_target: described.load_balancer_pass_to_target,
            security_groups: Some(described.secure_groups.clone().unwrap_or_default()),
            snat_addresses: described.snat_ips.as_ref().map(|all| {
                let address = |found: &wire::SnatIp| SnatAddress {
                    subnet: found.subnet_id.clone(),
                    address: found.ip.clone(),
                };
                all.iter().map(address).collect()
            }),
        },
        addresses: texts.filter_map(|text| text.parse().ok()).collect(),
        unserved: unserved(described.attribute_flags.as_ref()),
        has_unserved_listeners: {
            let mut flags = described.attribute_flags.iter().flatten();
            flags.any(|flag| flag == Unserved::SOME_LISTENERS)
        },
        listeners: BTreeMap::new(),
        foreign: Vec::new(),
    }
}

/// Returns the reason in the flag that reports a part as not served.
fn unserved(flags: Option<&Vec<String>>) -> Option<Unserved> {
    flags.into_iter().flatten().find_map(|flag| Unserved::of_flag(flag))
}

/// Adds the listeners of a load balancer, and their targets.
pub(super) fn fill(
    balancer: &mut Balancer,
    listeners: &[wire::Listener],
    targets: &[ListenerBackend],
) {
    for described in listeners {
        add(balancer, described, targets);
    }
    let places = places(balancer);
    for listener in balancer.listeners.values_mut() {
        resolve_redirects(listener, &places);
    }
}

fn add(balancer: &mut Balancer, described: &wire::Listener, targets: &[ListenerBackend]) {
    let port = |port: Option<i64>| port.and_then(|port| u16::try_from(port).ok());
    let (Some(id), Some(first)) = (&described.listener_id, port(described.port)) else { return };
    let last = port(described.end_port).filter(|last| *last > first);
    let name = described.listener_name.clone().unwrap_or_default();
    let text = described.protocol.as_deref().unwrap_or_default();
    let protocol = protocol(text).filter(|_| name == LISTENER_NAME && last.is_none());
    let Some(protocol) = protocol else {
        let is_udp = matches!(text, "UDP" | "QUIC");
        return balancer.foreign.push(Foreign {
            id: id.clone(),
            name,
            ports: first..=last.unwrap_or(first),
            transport: if is_udp { Protocol::Udp } else { Protocol::Tcp },
        });
    };
    let targets = targets.iter().find(|backend| backend.listener_id.as_ref() == Some(id));
    let listener = listener(id, protocol, described, targets, &balancer.addresses);
    balancer.listeners.insert(ListenerKey::new(first, protocol), listener);
}

fn protocol(text: &str) -> Option<ListenerProtocol> {
    let all = [
        ListenerProtocol::Tcp,
        ListenerProtocol::Udp,
        ListenerProtocol::TcpSsl,
        ListenerProtocol::Http,
        ListenerProtocol::Https,
    ];
    all.into_iter().find(|protocol| protocol.to_string() == text)
}

fn listener(
    id: &str,
    protocol: ListenerProtocol,
    described: &wire::Listener,
    backends: Option<&ListenerBackend>,
    addresses: &[IpAddr],
) -> Listener {
    let mut listener = clb::Listener::new(protocol);
    let flags = described.attr_flags.as_ref();
    listener.settings = ListenerSettings {
        session_seconds: described.session_expire_time,
        scheduler: described.scheduler.clone(),
        health_check: described.health_check.clone(),
        keepalive: described.keepalive_enable.map(|on| on == 1),
        snat: Some(flags.is_some_and(|flags| flags.iter().any(|flag| flag == "SnatEnable"))),
        resets_on_unbind: described.deregister_target_rst,
    };
    listener.certificate = described.certificate.as_ref().and_then(certificate);
    listener.sni = described.sni_switch == Some(1);
    let (mut rules, mut redirects) = (BTreeMap::new(), BTreeMap::new());
    if protocol.layer() == Layer::L4 {
        listener.targets = targets(backends.and_then(|backends| backends.targets.as_ref()));
    }
    for rule in described.rules.iter().flatten() {
        let Some(location) = &rule.location_id else { continue };
        let key =
            RuleKey { domain: domain(rule, addresses), url: rule.url.clone().unwrap_or_default() };
        let of_rule = backends.and_then(|backends| backends.rules.as_ref()).into_iter().flatten();
        let of_rule = of_rule.filter(|targets| targets.location_id.as_ref() == Some(location));
        let settings = DomainSettings {
            certificate: rule.certificate.as_ref().and_then(certificate),
            http2: rule.http2,
            is_default: rule.default_server,
        };
        listener.domains.insert(key.domain.clone(), settings);
        let found = Rule {
            settings: RuleSettings {
                session_seconds: rule.session_expire_time,
                scheduler: rule.scheduler.clone(),
                health_check: rule.health_check.clone(),
                forward_type: rule.forward_type.clone(),
            },
            targets: targets(of_rule.filter_map(|rule| rule.targets.as_ref()).next()),
            redirect: None,
        };
        listener.rules.insert(key.clone(), found);
        rules.insert(key.clone(), location.clone());
        let to = rule.rewrite_target.as_ref();
        let to = to.and_then(|to| to.target_listener_id.clone().zip(to.target_location_id.clone()));
        if let Some(to) = to.filter(|(listener, _)| !listener.is_empty()) {
            let target = rule.rewrite_target.as_ref();
            // The rule that the redirect leads to can only be found after all listeners are read.
            let unresolved = Redirect {
                to: RuleAt {
                    listener: ListenerKey::new(0, protocol),
                    rule: RuleKey { domain: String::new(), url: String::new() },
                },
                code: target
                    .and_then(|target| u16::try_from(target.rewrite_code?).ok())
                    .unwrap_or_default(),
                keeps_url: target.and_then(|target| target.take_url).unwrap_or_default(),
            };
            if let Some(found) = listener.rules.get_mut(&key) {
                found.redirect = Some(unresolved);
            }
            redirects.insert(key, to);
        }
    }
    let unserved = unserved(described.attr_flags.as_ref());
    Listener { id: id.to_owned(), listener, unserved, rules, redirects }
}

/// Returns the domain of a rule; empty if it is the load balancer's own address. A rule with
/// several domains, which the controllers do not make, has all of them in one text.
fn domain(rule: &wire::RuleOutput, addresses: &[IpAddr]) -> String {
    let domains = rule.domains.clone().filter(|domains| !domains.is_empty());
    let domains = domains.unwrap_or_else(|| rule.domain.iter().cloned().collect());
    let is_own =
        |text: &String| text.parse::<IpAddr>().is_ok_and(|address| addresses.contains(&address));
    match domains.as_slice() {
        [domain] if is_own(domain) => String::new(),
        _ => domains.join(","),
    }
}

fn certificate(found: &CertificateOutput) -> Option<Certificate> {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    Some(Certificate { server: given(&found.cert_id)?, authority: given(&found.cert_ca_id) })
}

fn targets(backends: Option<&Vec<wire::Backend>>) -> Targets {
    let target = |backend: &wire::Backend| {
        let instance = backend.instance_id.clone().filter(|id| !id.is_empty());
        let holder = match instance.filter(|_| backend.r#type.as_deref() == Some("CVM")) {
            Some(id) => Holder::Instance(id),
            None => {
                let address = backend.private_ip_addresses.as_ref()?.first()?;
                Holder::Interface(address.parse().ok()?)
            }
        };
        let port = u16::try_from(backend.port?).ok()?;
        let weight = u8::try_from(backend.weight.unwrap_or_default()).ok()?;
        Some((TargetKey { holder, port }, weight))
    };
    backends.into_iter().flatten().filter_map(target).collect()
}

/// Returns the rules of a load balancer, by the ids of listener and rule.
fn places(balancer: &Balancer) -> BTreeMap<(String, String), RuleAt> {
    let mut places = BTreeMap::new();
    for (key, listener) in &balancer.listeners {
        for (rule, id) in &listener.rules {
            let at = RuleAt { listener: *key, rule: rule.clone() };
            places.insert((listener.id.clone(), id.clone()), at);
        }
    }
    places
}

/// Sets the rules that redirects lead to. A redirect to a rule of the user's is left unresolved, so
/// that it differs from every wanted one.
fn resolve_redirects(listener: &mut Listener, places: &BTreeMap<(String, String), RuleAt>) {
    for (key, to) in &listener.redirects {
        let redirect = listener.listener.rules.get_mut(key).and_then(|rule| rule.redirect.as_mut());
        if let (Some(redirect), Some(at)) = (redirect, places.get(to)) {
            redirect.to = at.clone();
        }
    }
}
