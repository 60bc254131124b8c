//! Listeners: how each behaves.

use std::net::SocketAddr;
use std::time::Duration;

use uturn_lb::cloud::tke::profile;
use uturn_lb::config::{ListenerSettings, ProxyVersion};
use uturn_model::lb::{self, ListenerProtocol, Profile};
use uturn_model::{Port, Text};

use super::{Planner, certificates, probe};
use crate::state::{HealthCheck, Listener, LoadBalancer, Protocol, Scheduler};

impl Planner<'_> {
    /// A listener at one of its ports; `None`, with a note, if this data plane cannot serve it.
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
        let (rules, of_rules) = match listener.protocol.is_layer_7() {
            true => listener
                .rules
                .iter()
                .flat_map(|rule| self.rules(load_balancer, listener, rule, address.ip(), notes))
                .unzip(),
            false => {
                let (rule, settings) = self.layer_4_rule(listener, notes);
                (vec![rule], vec![settings])
            }
        };
        let mut settings = ListenerSettings::of(protocol);
        settings.rules = of_rules;
        settings.certificates = certificates::named(&self.certificates(listener, notes));
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
        let profile = profile_of(listener, protocol, notes);
        Some((lb::Listener { port: Port::new(address.port())?, protocol, profile, rules }, settings))
    }
}

/// How the listener behaves: as the cloud's, with what is set on it.
fn profile_of(listener: &Listener, protocol: ListenerProtocol, notes: &mut Vec<String>) -> Profile {
    let mut profile = profile::clb(protocol.layer());
    if listener.keepalive || listener.snat {
        profile.source = profile::snat();
    }
    // A listener has one scheduler and one health check in the data plane; on layer 7 the first
    // rule's.
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

/// The domain that serves requests for hosts that no rule is for.
fn default_host(listener: &Listener) -> Option<Text> {
    let rule = listener.rules.iter().find(|rule| rule.is_default_server)?;
    let domain = rule.domains.first().filter(|domain| !domain.is_empty())?;
    Some(Text::from(domain.as_str()))
}
