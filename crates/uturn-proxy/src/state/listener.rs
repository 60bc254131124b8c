//! A listener with its rules.

use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use uturn_lb::config::{ListenerSettings, RuleSettings};
use uturn_lb::rules::Router;
use uturn_model::lb::{self, ListenerProtocol, Profile};

use super::rule::Rule;

/// A listener as it is now. A reload puts another in its place; connections stay open, and their
/// next request is served as the new one says.
#[derive(Debug)]
pub(crate) struct Slot(ArcSwap<Listener>);

impl Slot {
    pub(crate) fn new(listener: Listener) -> Self {
        Self(ArcSwap::from_pointee(listener))
    }

    /// The listener as it is now.
    pub(crate) fn current(&self) -> Arc<Listener> {
        self.0.load_full()
    }

    /// Replaces the listener.
    pub(crate) fn replace(&self, listener: Listener) {
        self.0.store(Arc::new(listener));
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
}

impl Listener {
    /// A listener. Its rules take over what `previous` knows of their targets.
    pub(crate) fn new(
        address: SocketAddr,
        config: &lb::Listener,
        settings: &ListenerSettings,
        tls: Option<Arc<ServerConfig>>,
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
        }
    }
}
