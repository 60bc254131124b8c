//! Converts listeners, with the behaviour of each.

use std::net::SocketAddr;
use std::time::Duration;

use uturn_clouds::cloud::tke::profile;
use uturn_lb::config::{ListenerSettings, ProxyVersion};
use uturn_model::lb::{self, ListenerProtocol, Profile, Source};
use uturn_model::{Port, Text};

use super::rule::{host, without_twins};
use super::{Planner, certificates, custom_config, probe};
use crate::state::{HealthCheck, Listener, LoadBalancer, Protocol, Rescheduling, Scheduler};

impl Planner<'_> {
    /// Returns a listener at one of its ports; `None`, with a note, if this data plane cannot serve
    /// it.
    pub(super) fn listener(
        &self,
        load_balancer: &LoadBalancer,
        listener: &Listener,
        address: SocketAddr,
        notes: &mut Vec<String>,
    ) -> Option<(lb::Listener, ListenerSettings)> {
        let protocol = match listener.protocol {
            Protocol::Tcp => ListenerProtocol::Tcp,
            Protocol::Udp => ListenerProtocol::Udp,
            Protocol::TcpSsl => ListenerProtocol::TcpSsl,
            Protocol::Http => ListenerProtocol::Http,
            Protocol::Https => ListenerProtocol::Https,
            Protocol::Quic => {
                notes.push("QUIC is not served".to_owned());
                return None;
            }
        };
        let certificates = self.certificates(listener, notes);
        if listener.protocol.ends_tls() && certificates.is_empty() {
            notes.push("it is not served: it has no certificate with a private key".to_owned());
            return None;
        }
        let authority = match self.authority(listener) {
            Ok(authority) => authority,
            Err(why) => {
                notes.push(format!("it is not served: {why}"));
                return None;
            }
        };
        let (rules, of_rules) = if listener.protocol.is_layer_7() {
            let rules = self.layer_7_rules(load_balancer, listener, address.ip(), notes);
            without_twins(rules, notes)
        } else {
            let (rule, settings) = self.layer_4_rule(listener, notes);
            (vec![rule], vec![settings])
        };
        let mut settings = ListenerSettings::of(protocol);
        settings.rules = of_rules;
        settings.certificates = certificates::named(&certificates);
        settings.client_certificates = authority.map(|(_, clients)| clients);
        settings.http2 = listener.rules.iter().any(|rule| rule.http2);
        settings.default_host = default_host(listener);
        settings.proxy_to = listener.proxy_protocol.then_some(ProxyVersion::V2);
        settings.limits.connections = usize::try_from(listener.max_connections).ok();
        settings.limits.connections_per_second = u32::try_from(listener.max_new_connections).ok();
        if let Some(seconds) = listener.idle_seconds.and_then(|seconds| u64::try_from(seconds).ok())
        {
            settings.timeouts.idle = Duration::from_secs(seconds);
        }
        if !listener.keepalive && listener.protocol.is_layer_7() {
            settings.keepalive.connections = 0;
        }
        let mut profile = profile_of(listener, protocol, notes);
        if listener.protocol.is_layer_7() {
            profile.path_normalization = self.context.path_normalization;
        }
        if listener.keepalive || listener.snat {
            self.replace_source(&mut profile, &rules, notes);
        }
        if let Some(content) = self.custom_config(load_balancer)
            && listener.protocol.is_layer_7()
        {
            custom_config::set(content, &mut profile, &mut settings, notes);
        }
        note_ignored(listener, notes);
        Some((
            lb::Listener { port: Port::new(address.port())?, protocol, profile, rules },
            settings,
        ))
    }
}

impl Planner<'_> {
    /// Makes the range replace clients' addresses, if all targets have the range's version of IP.
    fn replace_source(&self, profile: &mut Profile, rules: &[lb::Rule], notes: &mut Vec<String>) {
        let source = self.context.snat_range.map_or_else(profile::snat, Source::Replaced);
        let Source::Replaced(range) = source else { return };
        let is_v4 = range.addr().is_ipv4();
        let mut targets = rules.iter().flat_map(|rule| &rule.targets);
        if targets.all(|target| target.address.is_ipv4() == is_v4) {
            profile.source = source;
        } else {
            notes.push(format!(
                "clients' addresses are kept: {range}, which would replace them, does not reach \
                 all targets"
            ));
        }
    }

    /// Returns the directives of the custom configuration that is bound to a load balancer.
    fn custom_config(&self, load_balancer: &LoadBalancer) -> Option<&str> {
        let config = self.account.custom_configs.get(load_balancer.custom_config.as_ref()?)?;
        Some(&config.content)
    }
}

/// Notes the settings of a listener that the data plane ignores.
fn note_ignored(listener: &Listener, notes: &mut Vec<String>) {
    if listener.compression.is_some() {
        notes.push("bodies are not compressed".to_owned());
    }
    if listener.resets_on_unbind {
        notes.push("connections to targets that are unbound are not reset".to_owned());
    }
    if listener.rescheduling != Rescheduling::default() {
        notes.push("connections do not move to other targets".to_owned());
    }
}

/// Returns the behaviour of a listener: the cloud's defaults with the listener's settings.
fn profile_of(listener: &Listener, protocol: ListenerProtocol, notes: &mut Vec<String>) -> Profile {
    let mut profile = profile::clb(protocol.layer());
    // A listener of the data plane has one scheduler and one health check; on layer 7 those of the
    // first rule.
    let (scheduler, check) = match listener.rules.first() {
        Some(rule) => (rule.scheduler, Some(&rule.health_check)),
        None => (listener.scheduler, listener.health_check.as_ref()),
    };
    let differs = |other: &HealthCheck| Some(probe::check(other)) != check.map(probe::check);
    if listener.rules.iter().any(|rule| rule.scheduler != scheduler || differs(&rule.health_check))
    {
        notes.push(
            "all rules have the first one's scheduler and the times of its health check".to_owned(),
        );
    }
    profile.scheduler = match scheduler {
        Scheduler::Wrr => lb::Scheduler::WeightedRoundRobin,
        Scheduler::LeastConn => lb::Scheduler::LeastConnections,
        Scheduler::IpHash => lb::Scheduler::SourceHash,
    };
    profile.health_check = check.and_then(probe::check);
    profile
}

/// Returns the domain that serves requests for hosts that no rule matches.
fn default_host(listener: &Listener) -> Option<Text> {
    let rule = listener.rules.iter().find(|rule| rule.is_default_server)?;
    let domain = rule.domains.first().filter(|domain| !domain.is_empty())?;
    Some(host(domain))
}
