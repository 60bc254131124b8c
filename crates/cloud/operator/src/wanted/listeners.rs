//! The listeners of an object as `uturn-lb` decides them, with their rules and targets.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use uturn_clouds::cloud::Owner;
use uturn_model::ingress::PathKind;
use uturn_model::lb::{self, Layer, ListenerOverride, TargetKind};
use uturn_model::{ObjectRef, Text};

use super::certificates::Certificates;
use super::{Maker, Wish, balancer, settings};
use crate::clb::{
    DomainSettings, Holder, Listener, ListenerKey, Redirect, Rule, RuleAt, RuleKey, TargetKey,
    Targets,
};
use crate::event::Event;

/// The longest URL of a rule.
const MAX_URL: usize = 200;
/// The longest domain of a rule.
const MAX_DOMAIN: usize = 80;
/// The largest weight of a target.
const MAX_WEIGHT: u32 = 100;

impl Maker<'_> {
    /// Returns the listeners of an object.
    pub(super) fn listeners(&mut self, owner: Owner<'_>) -> BTreeMap<ListenerKey, Wish> {
        let family = balancer::family(owner);
        let decided = match owner {
            Owner::Service(service) => self.model.service_listeners(self.cluster, service, family),
            Owner::Ingress(ingress) => self.model.ingress_listeners(self.cluster, ingress, family),
        };
        let mut listeners = BTreeMap::new();
        for listener in &decided {
            let key = ListenerKey::new(listener.port.number(), listener.protocol);
            let wish = self.listener(owner, listener);
            // If several protocols compete for a port, the first one gets it.
            listeners.entry(key).or_insert(wish);
        }
        self.add_redirects(&owner.object(), &decided, &mut listeners);
        listeners
    }

    fn listener(&mut self, owner: Owner<'_>, decided: &lb::Listener) -> Wish {
        let object = owner.object();
        let at = (decided.port, decided.protocol);
        let stated = self.model.listener_override(self.cluster, owner, at);
        let mut listener = Listener::new(decided.protocol);
        listener.settings = settings::of_listener(owner, decided.protocol, stated);
        let certificates = decided
            .protocol
            .ends_tls()
            .then(|| Certificates::of(self.environment, owner, decided.port));
        match decided.protocol.layer() {
            Layer::L4 => {
                listener.targets =
                    decided.rules.iter().flat_map(|rule| self.targets(rule)).collect();
            }
            Layer::L7 => self.add_rules(&object, decided, stated, &mut listener),
        }
        let is_blocked = match certificates {
            Some(certificates) => self.add_certificates(&object, &certificates, &mut listener),
            None => false,
        };
        Wish { owner: object, listener, is_blocked, is_kept: false, rules_of: BTreeMap::new() }
    }

    fn add_rules(
        &mut self,
        object: &ObjectRef,
        decided: &lb::Listener,
        stated: Option<&ListenerOverride>,
        listener: &mut Listener,
    ) {
        for rule in &decided.rules {
            let key = key_of(rule);
            let path = key.url.trim_start_matches('=');
            if !path.starts_with('/') || key.url.len() > MAX_URL {
                let message = format!("the path {path} has no form that rules have");
                self.events.push(Event::new(object, "E4031", message));
                continue;
            }
            if key.domain.len() > MAX_DOMAIN {
                let message = format!("the host {} is too long for a rule", key.domain);
                self.events.push(Event::new(object, "E4052", message));
                continue;
            }
            let settings = settings::of_rule(stated, &key);
            let rule = Rule { settings, targets: self.targets(rule), redirect: None };
            listener.rules.entry(key).or_insert(rule);
        }
        let default = stated.and_then(|stated| stated.default_domain.as_deref());
        for key in listener.rules.keys() {
            let settings = stated.and_then(|stated| {
                stated.domains.iter().find(|domain| *domain.domain == *key.domain)
            });
            // Unless a default domain is stated, rules without a host are for all hosts.
            let is_default = key.domain == default.unwrap_or_default();
            let settings = DomainSettings {
                certificate: None,
                http2: settings
                    .and_then(|settings| settings.http2)
                    .filter(|_| decided.protocol.ends_tls()),
                is_default: is_default.then_some(true),
            };
            listener.domains.insert(key.domain.clone(), settings);
        }
    }

    /// Sets the certificates of a listener. Returns whether the listener cannot be created because
    /// one is missing.
    fn add_certificates(
        &mut self,
        object: &ObjectRef,
        certificates: &Certificates,
        listener: &mut Listener,
    ) -> bool {
        listener.sni = certificates.sni && listener.protocol.layer() == Layer::L7;
        let default = certificates.of_host("");
        let mut is_blocked = false;
        match default {
            Ok(certificate) => listener.certificate = Some(certificate.clone()),
            Err((code, message)) if !listener.sni => {
                self.events.push(Event::new(object, code, message));
                is_blocked = true;
            }
            Err(_) => {}
        }
        let mut without = Vec::new();
        for (domain, settings) in &mut listener.domains {
            match certificates.of_host(domain) {
                Ok(certificate) => settings.certificate = Some(certificate.clone()),
                Err((code, message)) if listener.sni => {
                    self.events.push(Event::new(object, code, message));
                    without.push(domain.clone());
                }
                Err(_) => {}
            }
        }
        listener.domains.retain(|domain, _| !without.contains(domain));
        listener.rules.retain(|key, _| !without.contains(&key.domain));
        is_blocked
    }

    fn targets(&self, rule: &lb::Rule) -> Targets {
        let target = |target: &lb::Target| {
            let weight = u8::try_from(target.weight.min(MAX_WEIGHT)).unwrap_or_default();
            (self.target(target.address, &target.kind), weight)
        };
        rule.targets.iter().map(target).collect()
    }

    fn target(&self, address: SocketAddr, kind: &TargetKind) -> TargetKey {
        let instance = match kind {
            TargetKind::NodePort(name) => {
                self.cluster.nodes.get(name).and_then(|node| self.environment.instance(node))
            }
            TargetKind::Pod { .. } => None,
        };
        let holder = match instance {
            Some(id) => Holder::Instance(id),
            None => Holder::Interface(address.ip()),
        };
        TargetKey { holder, port: address.port() }
    }

    /// Turns redirects to URLs, as `uturn-lb` has them, into redirects to the rules that serve
    /// these URLs, as the API has them.
    fn add_redirects(
        &mut self,
        object: &ObjectRef,
        decided: &[lb::Listener],
        listeners: &mut BTreeMap<ListenerKey, Wish>,
    ) {
        for listener in decided {
            let at = ListenerKey::new(listener.port.number(), listener.protocol);
            for rule in &listener.rules {
                let Some(redirect) = &rule.redirect else { continue };
                let from = key_of(rule);
                let host = redirect.host.as_deref().unwrap_or(&from.domain);
                let path = redirect.path.as_deref().unwrap_or(&from.url);
                let to = RuleAt {
                    listener: ListenerKey { port: redirect.port.number(), ..at },
                    rule: RuleKey { domain: host.to_owned(), url: path.to_owned() },
                };
                let is_served = listeners.get(&to.listener).is_some_and(|wish| {
                    !wish.is_blocked && wish.listener.rules.contains_key(&to.rule)
                }) && !redirects(decided, &to);
                let wish = listeners.get_mut(&at);
                let Some(source) = wish.and_then(|wish| wish.listener.rules.get_mut(&from)) else {
                    continue;
                };
                if is_served {
                    let keeps_url = redirect.path.is_none();
                    source.redirect = Some(Redirect { to, code: redirect.code, keeps_url });
                    continue;
                }
                let message = format!("{from} redirects to {}, which no rule serves", to.rule);
                self.events.push(Event::new(object, "E4068", message));
            }
        }
    }
}

/// Returns whether a rule redirects.
fn redirects(decided: &[lb::Listener], at: &RuleAt) -> bool {
    decided.iter().any(|listener| {
        ListenerKey::new(listener.port.number(), listener.protocol) == at.listener
            && listener.rules.iter().any(|rule| rule.redirect.is_some() && key_of(rule) == at.rule)
    })
}

/// Returns the key of a rule in the API. The URL of an exact path begins with `=`; any other path
/// is a prefix.
pub fn key_of(rule: &lb::Rule) -> RuleKey {
    let url = match &rule.path {
        None => "/".to_owned(),
        Some((path, PathKind::Exact)) => format!("={path}"),
        Some((path, _)) => path.to_string(),
    };
    RuleKey { domain: rule.host.as_ref().map(Text::to_string).unwrap_or_default(), url }
}
