//! The configuration that `uturn lb run` serves: load balancers, and the settings that only a data
//! plane needs.
//!
//! A prediction needs a load balancer's addresses, listeners, rules, targets and behaviour: a
//! [`LoadBalancer`]. Certificates, limits and time-outs of connections do not change its decisions.
//! They are kept separately, in a [`ListenerSettings`] for each listener.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use uturn_model::lb::ProxyVersion;
use uturn_model::lb::{Listener, ListenerProtocol, Source};
use uturn_model::network::SecurityGroup;
use uturn_model::{IpNet, LoadBalancer, Text};

/// The configuration that one process serves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// The settings of the process.
    pub process: ProcessSettings,
    /// The load balancers.
    pub load_balancers: Vec<BalancerConfig>,
    /// The security groups that load balancers name.
    pub security_groups: Vec<SecurityGroup>,
}

impl Config {
    /// Makes the configuration of load balancers that were derived from a cluster: nothing but
    /// their decisions is configured. If the client's address is kept, each request has its own
    /// connection to its target.
    pub fn plain(load_balancers: Vec<LoadBalancer>) -> Self {
        let settings = |listener: &Listener| {
            let mut settings = ListenerSettings {
                rules: vec![RuleSettings::default(); listener.rules.len()],
                proxy_to: listener.profile.proxy_header,
                ..ListenerSettings::of(listener.protocol)
            };
            if listener.profile.source == Source::Kept {
                settings.keepalive.connections = 0;
            }
            settings
        };
        let load_balancers = load_balancers.into_iter().map(|load_balancer| BalancerConfig {
            listeners: load_balancer.listeners.iter().map(settings).collect(),
            load_balancer,
            derived: true,
        });
        Self { load_balancers: load_balancers.collect(), ..Self::default() }
    }
}

/// A load balancer with the settings of its listeners.
#[derive(Clone, Debug, PartialEq)]
pub struct BalancerConfig {
    /// The load balancer.
    pub load_balancer: LoadBalancer,
    /// The settings of each listener of the load balancer, in the same order.
    pub listeners: Vec<ListenerSettings>,
    /// Whether a program derived the load balancer from a cluster, as the lab does. It was then not
    /// checked for errors that only people make, and may name security groups that the
    /// configuration lacks.
    pub derived: bool,
}

/// The settings of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessSettings {
    /// The number of worker threads; `None` for one per core.
    pub workers: Option<usize>,
    /// The address that serves metrics, the state of targets and the health of the process.
    pub admin: Option<SocketAddr>,
    /// The file with the token that is required to read and change the configuration at the admin
    /// address; without a file, neither is possible.
    pub admin_token: Option<PathBuf>,
    /// Other names by which clients may call the admin address.
    pub admin_hosts: Vec<Text>,
    /// Whether a configuration that is received over HTTP may have targets with addresses that
    /// belong to no other machine.
    pub local_targets: bool,
    /// The destination of the access log.
    pub access_log: AccessLog,
    /// The time that connections have to end when a listener or the process stops.
    pub drain: Duration,
    /// The maximum number of concurrent connections from clients, over all listeners; `None` for as
    /// many as the limit of open files allows, and no more than 20,000.
    pub connections: Option<usize>,
}

impl Default for ProcessSettings {
    fn default() -> Self {
        Self {
            workers: None,
            admin: None,
            admin_token: None,
            admin_hosts: Vec::new(),
            local_targets: false,
            access_log: AccessLog::Off,
            drain: Duration::from_secs(30),
            connections: None,
        }
    }
}

/// The destination of the access log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AccessLog {
    /// No access log.
    #[default]
    Off,
    /// Standard output.
    Stdout,
    /// This file, to which the log is appended.
    File(PathBuf),
}

/// The settings of a listener on which decisions do not depend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerSettings {
    /// The certificates with which the listener terminates TLS, selected by server name (SNI). The
    /// first is for clients whose server name matches none. If there is none, the process generates
    /// one.
    pub certificates: Vec<CertificateFiles>,
    /// The authorities of client certificates; `None` if clients are not asked for a certificate.
    pub client_certificates: Option<ClientCertificates>,
    /// The clients whose connections begin with a PROXY header, version 1 or 2.
    pub proxy_from: Vec<IpNet>,
    /// The PROXY header with which connections to targets begin.
    pub proxy_to: Option<ProxyVersion>,
    /// Limits on connections and requests.
    pub limits: Limits,
    /// Time limits of connections and requests.
    pub timeouts: Timeouts,
    /// Connections to targets that are kept open for further requests; layer 7 only.
    pub keepalive: Keepalive,
    /// Whether clients may use HTTP/2; layer 7 only.
    pub http2: bool,
    /// Whether a request is aborted when its client closes its side of the connection before the
    /// answer, as when it gives up. A reset aborts the request in any case; layer 7 only.
    pub abort_on_close: bool,
    /// The host whose rules serve requests for hosts without a rule; layer 7 only.
    pub default_host: Option<Text>,
    /// The treatment of headers in which earlier proxies describe the client; layer 7 only.
    pub forwarded_for: ForwardedFor,
    /// The forwarding settings of each rule, in the order of the listener's rules.
    pub rules: Vec<RuleSettings>,
}

impl ListenerSettings {
    /// Returns the default settings of a listener of this protocol.
    pub fn of(protocol: ListenerProtocol) -> Self {
        Self { timeouts: Timeouts::of(protocol), ..Self::default() }
    }
}

impl Default for ListenerSettings {
    fn default() -> Self {
        Self {
            certificates: Vec::new(),
            client_certificates: None,
            proxy_from: Vec::new(),
            proxy_to: None,
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            keepalive: Keepalive::default(),
            http2: true,
            abort_on_close: false,
            default_host: None,
            forwarded_for: ForwardedFor::Append,
            rules: Vec::new(),
        }
    }
}

/// The treatment of `X-Forwarded-For`, and of other headers that describe the client and its
/// connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ForwardedFor {
    /// The client's address is appended to the list: other proxies may be in front of this one.
    #[default]
    Append,
    /// The client's address replaces the headers: no other proxy is in front of this one.
    Replace,
}

/// The forwarding settings of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleSettings {
    /// The protocol towards the targets of the rule; layer 7 only.
    pub forward: Forward,
    /// The stickiness of the rule; `None` if a client does not stay with its target.
    pub stickiness: Option<Stickiness>,
    /// The probe that a health check sends; `None` for the default of the listener's transport: a
    /// connection, or an ICMP echo request for UDP.
    pub probe: Option<Probe>,
}

/// The protocol towards targets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Forward {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2 without TLS and without an upgrade, as gRPC servers accept it.
    H2c,
}

/// The means by which a client stays with its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stickiness {
    /// The client's address, for this long after its latest connection.
    Source(Duration),
    /// A cookie of this name, which the load balancer sets; layer 7 only.
    Cookie {
        /// The name of the cookie.
        name: Text,
        /// The maximum age of the cookie; `None` for the client's session.
        max_age: Option<Duration>,
    },
}

/// The probe that a health check sends to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// An HTTP request.
    Http {
        /// The method of the request.
        method: HttpMethod,
        /// The path of the request.
        path: Text,
        /// The host of the request; `None` for the target's address.
        host: Option<Text>,
        /// The classes of status codes that count as healthy, such as 2 for 200 to 299.
        classes: Vec<u8>,
    },
    /// Bytes that are sent at once, and bytes with which the answer must begin.
    Exchange {
        /// The bytes that are sent; may be empty for protocols in which the server sends first.
        send: Vec<u8>,
        /// The beginning of a good answer; may be empty over TCP, where a connection is enough.
        expect: Vec<u8>,
    },
}

/// The method of a health check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpMethod {
    /// `HEAD`, which requests only the headers.
    #[default]
    Head,
    /// `GET`, which also requests the body.
    Get,
}

/// The files of a certificate, in PEM.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CertificateFiles {
    /// The certificate, followed by the intermediate certificates up to its authority.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub key: PathBuf,
}

/// The authorities of client certificates.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClientCertificates {
    /// The file with the authorities' certificates, in PEM.
    pub authorities: PathBuf,
    /// Whether clients without a certificate are served too.
    pub optional: bool,
}

impl ListenerSettings {
    /// Returns the files with which TLS is configured.
    pub fn tls_files(&self) -> impl Iterator<Item = &PathBuf> {
        let files = self.certificates.iter().flat_map(|files| [&files.certificate, &files.key]);
        files.chain(self.client_certificates.iter().map(|clients| &clients.authorities))
    }

    /// Returns the files with which TLS is configured, mutably.
    pub fn tls_files_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let certificates = self.certificates.iter_mut();
        let files = certificates.flat_map(|files| [&mut files.certificate, &mut files.key]);
        files.chain(self.client_certificates.iter_mut().map(|clients| &mut clients.authorities))
    }
}

/// Limits on connections and requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of concurrent connections.
    pub connections: Option<usize>,
    /// The maximum number of concurrent connections from one IPv4 address, or from one /64 of IPv6.
    pub connections_per_client: Option<usize>,
    /// The maximum number of new connections per second.
    pub connections_per_second: Option<u32>,
    /// The maximum number of requests per second; layer 7 only.
    pub requests_per_second: Option<u32>,
    /// The maximum size of a request's line and headers in bytes; layer 7 only.
    pub header_bytes: usize,
    /// The maximum number of headers of a request; layer 7 only.
    pub headers: usize,
    /// The maximum size of a request's body in bytes; layer 7 only.
    pub body_bytes: Option<u64>,
    /// The minimum rate of a request's body in bytes per second, once the body is late by
    /// [`Timeouts::read`] in total; 0 for no minimum, as for rules that forward HTTP/2. Layer 7
    /// only.
    pub body_bytes_per_second: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: None,
            connections_per_client: None,
            connections_per_second: None,
            requests_per_second: None,
            header_bytes: 32 * 1024,
            headers: 100,
            body_bytes: None,
            body_bytes_per_second: 240,
        }
    }
}

/// Time limits of connections and requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// The time until a request's headers are complete, from the first byte of the connection or of
    /// the request.
    pub header: Duration,
    /// The time between two parts of a body or an answer, on either side.
    pub read: Duration,
    /// The time for which a client's connection may have no request, or no packet on layer 4.
    pub idle: Duration,
    /// The time for which a connection that has switched protocols, as for WebSocket, may have no
    /// byte in either direction; layer 7 only.
    pub tunnel: Duration,
}

impl Timeouts {
    /// Returns the defaults of a listener of this protocol. A layer 4 connection may be idle for
    /// minutes.
    pub fn of(protocol: ListenerProtocol) -> Self {
        let idle = match protocol {
            ListenerProtocol::Tcp | ListenerProtocol::TcpSsl => 900,
            ListenerProtocol::Udp => 300,
            ListenerProtocol::Http | ListenerProtocol::Https => 75,
        };
        Self { idle: Duration::from_secs(idle), ..Self::default() }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            header: Duration::from_secs(30),
            read: Duration::from_secs(60),
            idle: Duration::from_secs(75),
            tunnel: Duration::from_secs(3600),
        }
    }
}

/// Connections to targets that are kept open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// The number of idle connections that a worker keeps for each target; for each target and
    /// client if the source is kept. 0 keeps none.
    pub connections: usize,
    /// The time for which an idle connection is kept.
    pub idle: Duration,
}

impl Default for Keepalive {
    fn default() -> Self {
        Self { connections: 64, idle: Duration::from_secs(50) }
    }
}
