//! What `uturn lb run` serves: load balancers, and the settings that only a data plane needs.
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

/// Everything that one process serves.
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
    /// Load balancers that were derived from a cluster: nothing but their decisions is
    /// configured. Where the client's address is kept, each request has a connection to its
    /// target for itself.
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
    /// The settings of each of its listeners, in the same order.
    pub listeners: Vec<ListenerSettings>,
    /// Whether a program derived it from a cluster, as the lab does. It was then not checked for
    /// what only people get wrong, and may name security groups that are not here.
    pub derived: bool,
}

/// The settings of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessSettings {
    /// The number of threads that serve; `None` for one a core.
    pub workers: Option<usize>,
    /// The address that serves metrics, the state of targets and the health of the process.
    pub admin: Option<SocketAddr>,
    /// The file with the token that reading and changing the configuration there takes; without
    /// it, neither is possible.
    pub admin_token: Option<PathBuf>,
    /// Other names by which clients may call the admin address.
    pub admin_hosts: Vec<Text>,
    /// Whether a configuration that comes over HTTP may have targets that are of no other machine.
    pub local_targets: bool,
    /// Where the access log goes.
    pub access_log: AccessLog,
    /// How long connections may take to end when a listener or the process stops.
    pub drain: Duration,
    /// The most connections from clients at a time, over all listeners; `None` for as many as the
    /// limit of open files allows, and no more than 20,000.
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

/// Where the access log goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AccessLog {
    /// Not written.
    #[default]
    Off,
    /// To standard output.
    Stdout,
    /// To this file, which is appended to.
    File(PathBuf),
}

/// The settings of a listener that decisions do not depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerSettings {
    /// The certificates that it terminates TLS with, selected by server name (SNI). The first is for
    /// clients whose server name matches none. If there is none, the process generates one.
    pub certificates: Vec<CertificateFiles>,
    /// The authorities of client certificates; `None` if clients are not asked for a certificate.
    pub client_certificates: Option<ClientCertificates>,
    /// Clients whose connections begin with a PROXY header, version 1 or 2.
    pub proxy_from: Vec<IpNet>,
    /// The PROXY header that connections to targets begin with.
    pub proxy_to: Option<ProxyVersion>,
    /// Limits on connections and requests.
    pub limits: Limits,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// Connections to targets that are kept open for further requests; layer 7 only.
    pub keepalive: Keepalive,
    /// Whether clients may use HTTP/2; layer 7 only.
    pub http2: bool,
    /// Whether a request ends when its client closes its side of the connection before the
    /// answer, as when it gives up. A reset ends it in any case; layer 7 only.
    pub abort_on_close: bool,
    /// The host whose rules serve requests for a host that no rule is for; layer 7 only.
    pub default_host: Option<Text>,
    /// What becomes of what a request says of the proxies before; layer 7 only.
    pub forwarded_for: ForwardedFor,
    /// How each rule forwards, in the order of the listener's rules.
    pub rules: Vec<RuleSettings>,
}

impl ListenerSettings {
    /// The default settings of a listener of this protocol.
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

/// What becomes of `X-Forwarded-For`, and of other headers that say who asked, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ForwardedFor {
    /// The client's address is added to the list: other proxies may be before this one.
    #[default]
    Append,
    /// The client's address takes their place: there is no other proxy before this one.
    Replace,
}

/// How a rule forwards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleSettings {
    /// The protocol towards its targets; layer 7 only.
    pub forward: Forward,
    /// Whether, and how, a client stays with its target.
    pub stickiness: Option<Stickiness>,
    /// What a health check sends; `None` for the default of the listener's transport: a connection, or
    /// an ICMP echo request for UDP.
    pub probe: Option<Probe>,
}

/// The protocol towards targets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Forward {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2 without TLS and without an upgrade, as gRPC servers take it.
    H2c,
}

/// How a client stays with its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stickiness {
    /// By its address, for this long after its latest connection.
    Source(Duration),
    /// By a cookie of this name, which the load balancer sets; layer 7 only.
    Cookie {
        /// The cookie's name.
        name: Text,
        /// Its age at most; `None` for the client's session.
        max_age: Option<Duration>,
    },
}

/// What a health check sends to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// A request.
    Http {
        /// `GET` or `HEAD`.
        method: HttpMethod,
        /// The path.
        path: Text,
        /// The host; `None` for the target's address.
        host: Option<Text>,
        /// The classes of status codes that count as healthy, such as 2 for 200 to 299.
        classes: Vec<u8>,
    },
    /// Bytes that are sent in one piece, and bytes that the answer begins with.
    Exchange {
        /// The request; may be empty for protocols in which the server sends first.
        send: Vec<u8>,
        /// The beginning of a good answer; may be empty over TCP, where a connection is enough.
        expect: Vec<u8>,
    },
}

/// The method of a health check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpMethod {
    /// Asks for the head alone.
    #[default]
    Head,
    /// Asks for the body too.
    Get,
}

/// The files of a certificate, in PEM.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CertificateFiles {
    /// The certificate, followed by those that lead to its authority.
    pub certificate: PathBuf,
    /// Its private key.
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
    /// The files that TLS is made of.
    pub fn tls_files(&self) -> impl Iterator<Item = &PathBuf> {
        let files = self.certificates.iter().flat_map(|files| [&files.certificate, &files.key]);
        files.chain(self.client_certificates.iter().map(|clients| &clients.authorities))
    }

    /// The files that TLS is configured with, mutably.
    pub fn tls_files_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let certificates = self.certificates.iter_mut();
        let files = certificates.flat_map(|files| [&mut files.certificate, &mut files.key]);
        files.chain(self.client_certificates.iter_mut().map(|clients| &mut clients.authorities))
    }
}

/// Limits on connections and requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most connections at a time.
    pub connections: Option<usize>,
    /// The most connections at a time from one IPv4 address, or from one /64 of IPv6.
    pub connections_per_client: Option<usize>,
    /// The most new connections a second.
    pub connections_per_second: Option<u32>,
    /// The most requests a second; layer 7 only.
    pub requests_per_second: Option<u32>,
    /// The most bytes that a request's line and headers may have; layer 7 only.
    pub header_bytes: usize,
    /// The most headers of a request; layer 7 only.
    pub headers: usize,
    /// The most bytes that a request's body may have; layer 7 only.
    pub body_bytes: Option<u64>,
    /// The fewest bytes a second that a request's body may come with, once it is late by
    /// [`Timeouts::read`] in all; 0 for any, as for rules that forward HTTP/2. Layer 7 only.
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

/// How long things may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until a request's headers are complete, from the connection's or the request's first byte.
    pub header: Duration,
    /// Between two parts of a body or an answer, on either side.
    pub read: Duration,
    /// A client's connection without a request, or without a packet on layer 4.
    pub idle: Duration,
    /// A connection that has switched protocols, as for WebSocket, without a byte in either
    /// direction; layer 7 only.
    pub tunnel: Duration,
}

impl Timeouts {
    /// The defaults of a listener of this protocol. A connection on layer 4 may well be idle for
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
    /// How many idle connections a worker keeps for each target; for each target and client if the
    /// source is kept. 0 keeps none.
    pub connections: usize,
    /// How long one is kept idle.
    pub idle: Duration,
}

impl Default for Keepalive {
    fn default() -> Self {
        Self { connections: 64, idle: Duration::from_secs(50) }
    }
}
