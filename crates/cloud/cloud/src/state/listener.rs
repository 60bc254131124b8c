//! Listeners, rules and targets.

use std::net::IpAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{HealthCheck, ListenerCertificate};

/// A listener.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listener {
    /// The id, `lbl-` and eight letters and digits.
    pub id: String,
    /// The name.
    pub name: String,
    /// The protocol that clients speak.
    pub protocol: Protocol,
    /// The port, the first one of a range.
    pub port: u16,
    /// The last port of a range.
    pub end_port: Option<u16>,
    /// The health check; layer 4 only.
    pub health_check: Option<HealthCheck>,
    /// The certificates of a listener that terminates TLS without SNI.
    pub certificate: Option<ListenerCertificate>,
    /// Whether each domain has certificates of its own.
    pub sni: bool,
    /// The way in which targets are chosen; layer 4 only.
    pub scheduler: Scheduler,
    /// Seconds a client stays with its target; 0 for no session persistence. Layer 4 only.
    pub session_seconds: u32,
    /// `NORMAL` or `QUIC_CID`.
    pub session_type: String,
    /// Whether connections to targets are kept open, from an address of the load balancer; layer 7
    /// only.
    pub keepalive: bool,
    /// Whether the load balancer replaces the client's address.
    pub snat: bool,
    /// Whether connections to a target that is unbound are reset.
    pub resets_on_unbind: bool,
    /// The events at which connections move to other targets.
    #[serde(default)]
    pub rescheduling: Rescheduling,
    /// The most connections; -1 for no limit.
    pub max_connections: i64,
    /// The most new connections a second; -1 for no limit.
    pub max_new_connections: i64,
    /// Seconds after which an idle connection is closed; `None` for the protocol's default.
    pub idle_seconds: Option<i64>,
    /// Whether targets get a PROXY header.
    pub proxy_protocol: bool,
    /// The compression of bodies, `transparent` or `compatibility`; layer 7 only.
    pub compression: Option<String>,
    /// Whether the listener was stopped.
    pub is_stopped: bool,
    /// The time of its creation.
    pub created: Timestamp,
    /// The rules; layer 7 only.
    pub rules: Vec<Rule>,
    /// The targets; layer 4 only.
    pub targets: Vec<Target>,
}

impl Listener {
    /// Returns a listener without an id and a name. All other settings have the defaults of the
    /// API.
    pub fn new(protocol: Protocol, port: u16, created: Timestamp) -> Self {
        Self {
            id: String::new(),
            name: String::new(),
            protocol,
            port,
            end_port: None,
            health_check: None,
            certificate: None,
            sni: false,
            scheduler: Scheduler::Wrr,
            session_seconds: 0,
            session_type: "NORMAL".to_owned(),
            keepalive: false,
            snat: false,
            resets_on_unbind: false,
            rescheduling: Rescheduling::default(),
            max_connections: -1,
            max_new_connections: -1,
            idle_seconds: None,
            proxy_protocol: false,
            compression: None,
            is_stopped: false,
            created,
            rules: Vec::new(),
            targets: Vec::new(),
        }
    }

    /// Returns the rule with this id.
    pub fn rule(&self, id: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.id == id)
    }

    /// Returns the rule for this domain and URL. The empty domain is the load balancer's own
    /// address.
    pub fn rule_for(&self, domain: &str, url: &str) -> Option<&Rule> {
        self.rules
            .iter()
            .find(|rule| rule.url == url && rule.domains.iter().any(|known| known == domain))
    }

    /// Returns the targets of each group: the listener's own on layer 4, each rule's on layer 7.
    pub fn groups(&self) -> Vec<TargetsOf<'_>> {
        if self.protocol.is_layer_7() {
            self.rules
                .iter()
                .map(|rule| TargetsOf { rule: Some(rule), targets: &rule.targets })
                .collect()
        } else {
            vec![TargetsOf { rule: None, targets: &self.targets }]
        }
    }

    /// Returns the targets of a rule, or, without an id, of a listener on layer 4.
    pub fn targets_mut(&mut self, rule: Option<&str>) -> Option<&mut Vec<Target>> {
        match rule {
            None => Some(&mut self.targets),
            Some(id) => {
                let rule = self.rules.iter_mut().find(|rule| rule.id == id);
                rule.map(|rule| &mut rule.targets)
            }
        }
    }
}

/// The events at which the connections of a TCP listener move to other targets, and the timing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rescheduling {
    /// Whether connections move when a target's weight becomes 0.
    pub on_zero_weight: bool,
    /// Whether connections move when a target fails its health check.
    pub on_death: bool,
    /// Whether connections move when the set of targets changes.
    pub on_change: bool,
    /// Seconds until connections begin to move.
    pub start_seconds: Option<i64>,
    /// Seconds over which connections move.
    pub seconds: Option<i64>,
}

/// The targets of one group, among which the scheduler chooses.
#[derive(Clone, Copy, Debug)]
pub struct TargetsOf<'a> {
    /// The rule that the targets belong to; `None` for the listener itself.
    pub rule: Option<&'a Rule>,
    /// The targets.
    pub targets: &'a [Target],
}

/// A rule of a listener on layer 7.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// The id, `loc-` and eight letters and digits.
    pub id: String,
    /// The domains; one empty text for the load balancer's own address.
    pub domains: Vec<String>,
    /// The path.
    pub url: String,
    /// Seconds a client stays with its target; 0 for no session persistence.
    pub session_seconds: u32,
    /// The name of the target's cookie that identifies a client's session; `None` if no cookie
    /// does.
    pub cookie: Option<String>,
    /// The health check.
    pub health_check: HealthCheck,
    /// The certificates of the domain on a listener with SNI.
    pub certificate: Option<ListenerCertificate>,
    /// The way in which targets are chosen.
    pub scheduler: Scheduler,
    /// The protocol towards targets: `HTTP`, `HTTPS`, `GRPC` or `GRPCS`.
    pub forward_type: String,
    /// Whether the domain serves requests for hosts that no rule matches.
    pub is_default_server: bool,
    /// Whether clients may speak HTTP/2.
    pub http2: bool,
    /// Whether clients may speak QUIC.
    pub quic: bool,
    /// The rule that requests are redirected to; `None` if they go to a target.
    pub redirection: Option<Redirection>,
    /// The time of its creation.
    pub created: Timestamp,
    /// The targets.
    pub targets: Vec<Target>,
}

/// The redirection of a rule's requests to another rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redirection {
    /// The id of the listener that requests are redirected to.
    pub listener: String,
    /// The id of the rule on that listener.
    pub rule: String,
    /// The status: 301, 302 or 307.
    pub code: u16,
    /// Whether the path of the request is kept.
    pub keeps_url: bool,
    /// Whether the load balancer made the redirection from a pair of listeners, rather than the
    /// user.
    pub is_automatic: bool,
}

/// A target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The instance or network interface that listens.
    pub holder: TargetHolder,
    /// The port.
    pub port: u16,
    /// The weight, from 0 to 100, which determines the target's share of the traffic.
    pub weight: u8,
    /// A label.
    pub tag: Option<String>,
    /// The time at which the target was bound.
    pub registered: Timestamp,
}

impl Target {
    /// Returns whether the target has this holder and this port.
    pub fn is_same(&self, holder: &TargetHolder, port: u16) -> bool {
        self.holder == *holder && self.port == port
    }
}

/// The instance or network interface that listens at a target.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TargetHolder {
    /// The instance with this id, at its first private address.
    Instance(String),
    /// A network interface with this address.
    Interface(IpAddr),
}

/// The protocol that a listener's clients speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(missing_docs, reason = "the names are the protocols'")]
pub enum Protocol {
    Tcp,
    Udp,
    TcpSsl,
    Quic,
    Http,
    Https,
}

impl Protocol {
    /// Returns the protocol with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "TCP" => Self::Tcp,
            "UDP" => Self::Udp,
            "TCP_SSL" => Self::TcpSsl,
            "QUIC" => Self::Quic,
            "HTTP" => Self::Http,
            "HTTPS" => Self::Https,
            _ => return None,
        })
    }

    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::TcpSsl => "TCP_SSL",
            Self::Quic => "QUIC",
            Self::Http => "HTTP",
            Self::Https => "HTTPS",
        }
    }

    /// Returns whether rules route the protocol's requests.
    pub fn is_layer_7(self) -> bool {
        matches!(self, Self::Http | Self::Https)
    }

    /// Returns whether the protocol's datagrams come over UDP.
    pub fn is_over_udp(self) -> bool {
        matches!(self, Self::Udp | Self::Quic)
    }

    /// Returns whether the load balancer terminates TLS.
    pub fn ends_tls(self) -> bool {
        matches!(self, Self::TcpSsl | Self::Https | Self::Quic)
    }
}

/// The way in which targets are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scheduler {
    /// Weighted round robin.
    Wrr,
    /// The fewest connections.
    LeastConn,
    /// A hash of the client's address.
    IpHash,
}

impl Scheduler {
    /// Returns the scheduler with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "WRR" => Self::Wrr,
            "LEAST_CONN" => Self::LeastConn,
            "IP_HASH" => Self::IpHash,
            _ => return None,
        })
    }

    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Wrr => "WRR",
            Self::LeastConn => "LEAST_CONN",
            Self::IpHash => "IP_HASH",
        }
    }
}
