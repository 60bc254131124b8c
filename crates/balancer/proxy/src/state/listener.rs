//! A listener with its rules.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use uturn_lb::config::{ListenerSettings, RuleSettings};
use uturn_lb::rules::Router;
use uturn_model::Protocol;
use uturn_model::lb::{self, ListenerProtocol, Profile};
use uturn_model::network::SecurityRule;

use super::gate::Gate;
use super::rule::Rule;
use crate::metrics::ListenerMetrics;

/// The place of a listener. A reload puts another listener in it; connections stay open, and their
/// next request is served by the new one.
#[derive(Debug)]
pub(crate) struct Slot {
    listener: ArcSwap<Listener>,
    /// The limits' counters: what the listener has admitted.
    pub(crate) gate: Arc<Gate>,
    pub(crate) metrics: ListenerMetrics,
}

impl Slot {
    /// Returns the place of a listener that this many workers serve.
    pub(crate) fn new(listener: Listener, workers: usize) -> Self {
        Self {
            listener: ArcSwap::from_pointee(listener),
            gate: Arc::new(Gate::new()),
            metrics: ListenerMetrics::new(workers),
        }
    }

    /// Returns the current listener.
    pub(crate) fn current(&self) -> Arc<Listener> {
        self.listener.load_full()
    }

    /// Replaces the listener.
    pub(crate) fn replace(&self, listener: Listener) {
        self.listener.store(Arc::new(listener));
    }
}

/// A listener with everything that serving needs.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) address: SocketAddr,
    pub(crate) protocol: ListenerProtocol,
    pub(crate) profile: Profile,
    pub(crate) settings: ListenerSettings,
    pub(crate) rules: Vec<Arc<Rule>>,
    pub(crate) router: Router,
    /// The TLS configuration, if the listener terminates TLS.
    pub(crate) tls: Option<Arc<ServerConfig>>,
    /// The rules of its security groups; `None` if it has no group.
    security: Option<Vec<SecurityRule>>,
}

impl Listener {
    /// Returns a listener. Its rules keep the state of their targets in `previous`.
    pub(crate) fn new(
        address: SocketAddr,
        config: &lb::Listener,
        settings: &ListenerSettings,
        tls: Option<Arc<ServerConfig>>,
        security: Option<Vec<SecurityRule>>,
        previous: Option<&Self>,
    ) -> Self {
        let profile = &config.profile;
        let of_rules =
            settings.rules.iter().cloned().chain(std::iter::repeat_with(RuleSettings::default));
        let rules = config.rules.iter().zip(of_rules).map(|(rule, settings)| {
            let same = |other: &&Arc<Rule>| {
                other.config.host == rule.host && other.config.path == rule.path
            };
            let known = previous.and_then(|listener| listener.rules.iter().find(same));
            Arc::new(Rule::new(rule.clone(), settings, profile, known.map(|known| &**known)))
        });
        Self {
            address,
            protocol: config.protocol,
            profile: profile.clone(),
            settings: settings.clone(),
            rules: rules.collect(),
            router: Router::new(&config.rules),
            tls,
            security,
        }
    }

    /// Returns whether security groups admit a client. The first rule that matches decides.
    pub(crate) fn admits(&self, client: IpAddr) -> bool {
        let port = self.address.port();
        self.security.as_ref().is_none_or(|rules| {
            let rule = rules.iter().find(|rule| rule.matches(client, Some(Protocol::Tcp), port));
            rule.is_some_and(|rule| rule.accept)
        })
    }
}
