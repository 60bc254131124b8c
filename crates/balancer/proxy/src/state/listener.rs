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

/// A listener as it is now. A reload puts another in its place; connections stay open, and their
/// next request is served as the new one says.
#[derive(Debug)]
pub(crate) struct Slot {
    listener: ArcSwap<Listener>,
    /// What it has taken in.
    pub(crate) gate: Arc<Gate>,
    pub(crate) metrics: ListenerMetrics,
}

impl Slot {
    /// A listener that so many workers serve.
    pub(crate) fn new(listener: Listener, workers: usize) -> Self {
        Self {
            listener: ArcSwap::from_pointee(listener),
            gate: Arc::new(Gate::new()),
            metrics: ListenerMetrics::new(workers),
        }
    }

    /// The listener as it is now.
    pub(crate) fn current(&self) -> Arc<Listener> {
        self.listener.load_full()
    }

    /// Replaces the listener.
    pub(crate) fn replace(&self, listener: Listener) {
        self.listener.store(Arc::new(listener));
    }
}

/// A listener that serves.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) address: SocketAddr,
    pub(crate) protocol: ListenerProtocol,
    pub(crate) profile: Profile,
    pub(crate) settings: ListenerSettings,
    pub(crate) rules: Vec<Arc<Rule>>,
    pub(crate) router: Router,
    /// Where it terminates TLS.
    pub(crate) tls: Option<Arc<ServerConfig>>,
    /// The rules of its security groups; `None` where it has no group.
    security: Option<Vec<SecurityRule>>,
}

impl Listener {
    /// A listener. Its rules take over what `previous` knows of their targets.
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

    /// Whether security groups let a client in: the first rule that is for it decides.
    pub(crate) fn admits(&self, client: IpAddr) -> bool {
        let port = self.address.port();
        self.security.as_ref().is_none_or(|rules| {
            let rule = rules.iter().find(|rule| rule.matches(client, Some(Protocol::Tcp), port));
            rule.is_some_and(|rule| rule.accept)
        })
    }
}
