//! Load balancers in the API's terms: the types in which wanted and observed ones are compared.
//!
//! A setting is `None` if users leave it to the cloud. Only stated settings are compared, so that
//! all others stay as they are.

mod settings;

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use uturn_cloud_api::clb::CertificateInput;
use uturn_model::Protocol;
use uturn_model::lb::{Layer, ListenerProtocol};

pub use self::settings::{
    BalancerSettings, DomainSettings, ListenerSettings, RuleSettings, SnatAddress,
};

/// The name of the listeners that the controllers make. A listener with another name is the
/// user's.
pub const LISTENER_NAME: &str = "TKE-DEDICATED-LISTENER";

/// The key of a listener of a load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerKey {
    /// The port.
    pub port: u16,
    /// The transport protocol.
    pub transport: Protocol,
}

impl ListenerKey {
    /// Returns the key of a listener with this port and protocol.
    pub fn new(port: u16, protocol: ListenerProtocol) -> Self {
        Self { port, transport: protocol.transport() }
    }
}

impl fmt::Display for ListenerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.port, self.transport)
    }
}

/// The key of a rule of a listener.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleKey {
    /// The domain; empty for the load balancer's address.
    pub domain: String,
    /// The URL.
    pub url: String,
}

impl fmt::Display for RuleKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let domain = if self.domain.is_empty() { "VIP" } else { &self.domain };
        write!(f, "{domain}{}", self.url)
    }
}

/// A rule of a listener of a load balancer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleAt {
    /// The listener.
    pub listener: ListenerKey,
    /// The rule.
    pub rule: RuleKey,
}

/// The key of a target of a listener or a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetKey {
    /// The instance or network interface that listens.
    pub holder: Holder,
    /// The port.
    pub port: u16,
}

impl fmt::Display for TargetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.holder {
            Holder::Instance(id) => write!(f, "{id}:{}", self.port),
            Holder::Interface(IpAddr::V4(address)) => write!(f, "{address}:{}", self.port),
            Holder::Interface(IpAddr::V6(address)) => write!(f, "[{address}]:{}", self.port),
        }
    }
}

/// The instance or network interface that listens at a target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Holder {
    /// The instance with this id.
    Instance(String),
    /// A network interface with this address.
    Interface(IpAddr),
}

/// The weights of targets.
pub type Targets = BTreeMap<TargetKey, u8>;

/// A listener.
#[derive(Clone, Debug, PartialEq)]
pub struct Listener {
    /// The protocol that clients speak.
    pub protocol: ListenerProtocol,
    /// The settings.
    pub settings: ListenerSettings,
    /// The certificate of a listener that terminates TLS without SNI.
    pub certificate: Option<Certificate>,
    /// Whether its domains have certificates of their own.
    pub sni: bool,
    /// The targets; layer 4 only.
    pub targets: Targets,
    /// The domains; layer 7 only.
    pub domains: BTreeMap<String, DomainSettings>,
    /// The rules; layer 7 only.
    pub rules: BTreeMap<RuleKey, Rule>,
}

impl Listener {
    /// Returns a listener without stated settings.
    pub fn new(protocol: ListenerProtocol) -> Self {
        Self {
            protocol,
            settings: ListenerSettings::default(),
            certificate: None,
            sni: false,
            targets: Targets::new(),
            domains: BTreeMap::new(),
            rules: BTreeMap::new(),
        }
    }

    /// Returns the targets of each group: the listener's own on layer 4, each rule's on layer 7.
    pub fn groups(&self) -> BTreeMap<Option<RuleKey>, &Targets> {
        match self.protocol.layer() {
            Layer::L4 => BTreeMap::from([(None, &self.targets)]),
            Layer::L7 => {
                let rules = self.rules.iter();
                rules.map(|(key, rule)| (Some(key.clone()), &rule.targets)).collect()
            }
        }
    }
}

/// A rule of a listener on layer 7.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    /// The settings.
    pub settings: RuleSettings,
    /// The targets; none if the rule redirects.
    pub targets: Targets,
    /// The redirection; `None` if requests go to targets.
    pub redirect: Option<Redirect>,
}

/// The redirection of a rule's requests.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Redirect {
    /// The rule that serves the new URL.
    pub to: RuleAt,
    /// The status.
    pub code: u16,
    /// Whether the path of the request is kept.
    pub keeps_url: bool,
}

/// The certificates of a listener or a domain, by their ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The id of the server's certificate.
    pub server: String,
    /// The id of the authority of clients' certificates; `None` if clients need no certificate.
    pub authority: Option<String>,
}

impl Certificate {
    /// Returns the certificate in the form of requests.
    pub fn input(&self) -> CertificateInput {
        let mode = if self.authority.is_some() { "MUTUAL" } else { "UNIDIRECTIONAL" };
        CertificateInput {
            ssl_mode: Some(mode.to_owned()),
            cert_id: Some(self.server.clone()),
            cert_ca_id: self.authority.clone(),
            ..CertificateInput::default()
        }
    }
}
