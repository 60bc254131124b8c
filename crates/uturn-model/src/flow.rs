//! Flows, their outcomes, and the mechanisms behind these.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use crate::{Name, NamespacedName, ObjectKind, ObjectRef, Port, Protocol, Text, WorkloadKind};

/// A flow from a client to a destination.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// The client.
    pub from: Client,
    /// The destination.
    pub to: Destination,
    /// The protocol.
    pub protocol: Protocol,
}

/// The client of a flow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Client {
    /// A pod.
    Pod(NamespacedName),
    /// Any pod of a workload.
    Workload(WorkloadKind, NamespacedName),
    /// A process on a node, in the host network.
    Node(Name),
    /// A client outside the cluster, with its address if stated.
    Outside(Option<IpAddr>),
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pod(name) => write!(f, "pod/{name}"),
            Self::Workload(kind, name) => write!(f, "{}/{name}", kind.short()),
            Self::Node(name) => write!(f, "node/{name}"),
            Self::Outside(None) => f.write_str("outside"),
            Self::Outside(Some(ip)) => write!(f, "outside/{ip}"),
        }
    }
}

impl FromStr for Client {
    type Err = InvalidFlow;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fault = |what: &str| InvalidFlow(format!("{text:?} is no client: {what}"));
        let (word, rest) = text.split_once('/').unwrap_or((text, ""));
        let named = || {
            rest.parse::<NamespacedName>()
                .map_err(|_| fault(&format!("expected {word}/NAMESPACE/NAME")))
        };
        match word {
            "pod" | "pods" => Ok(Self::Pod(named()?)),
            "node" | "nodes" => {
                Name::new(rest).map(Self::Node).map_err(|_| fault("expected node/NAME"))
            }
            "outside" if rest.is_empty() => Ok(Self::Outside(None)),
            "outside" => rest
                .parse()
                .map(|ip| Self::Outside(Some(ip)))
                .map_err(|_| fault("expected outside or outside/IP")),
            _ => match WorkloadKind::from_word(word) {
                Some(kind) => Ok(Self::Workload(kind, named()?)),
                None => Err(fault(
                    "expected pod/NAMESPACE/NAME, deploy/NAMESPACE/NAME (or another workload), \
                     node/NAME, outside or outside/IP",
                )),
            },
        }
    }
}

/// The destination of a flow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Destination {
    /// A URL.
    Url {
        /// Whether the scheme is https.
        tls: bool,
        /// The host: a name or an address.
        host: Text,
        /// The port; by default, that of the scheme.
        port: Port,
        /// The path; at least `/`.
        path: Text,
    },
    /// A name and a port.
    Host(Text, Port),
    /// An address and a port.
    Address(SocketAddr),
    /// A Service by name: its cluster IP, resolved by the pod's DNS.
    Service(NamespacedName, Option<Text>),
    /// An Ingress: its address, with one of its hosts and paths.
    Ingress {
        /// The Ingress.
        name: NamespacedName,
        /// The host; by default, that of the first rule.
        host: Option<Text>,
        /// The path; by default, the rule's first.
        path: Option<Text>,
    },
    /// A pod and a port.
    Pod(NamespacedName, Port),
}

impl Destination {
    /// The object that it refers to, if any.
    pub fn object(&self) -> Option<ObjectRef> {
        match self {
            Self::Service(name, _) => Some(ObjectRef::namespaced(ObjectKind::Service, name)),
            Self::Ingress { name, .. } => Some(ObjectRef::namespaced(ObjectKind::Ingress, name)),
            Self::Pod(name, _) => Some(ObjectRef::namespaced(ObjectKind::Pod, name)),
            Self::Url { .. } | Self::Host(..) | Self::Address(_) => None,
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url { tls, host, port, path } => {
                let (scheme, usual) = if *tls { ("https", 443) } else { ("http", 80) };
                match host.parse::<std::net::Ipv6Addr>() {
                    Ok(ip) => write!(f, "{scheme}://[{ip}]")?,
                    Err(_) => write!(f, "{scheme}://{host}")?,
                }
                if port.number() != usual {
                    write!(f, ":{port}")?;
                }
                f.write_str(path)
            }
            Self::Host(host, port) => write!(f, "{host}:{port}"),
            Self::Address(address) => address.fmt(f),
            Self::Service(name, None) => write!(f, "svc/{name}"),
            Self::Service(name, Some(port)) => write!(f, "svc/{name}:{port}"),
            Self::Ingress { name, host, path } => {
                write!(f, "ingress/{name}")?;
                let path = path.as_deref().unwrap_or_default();
                match host {
                    Some(host) => write!(f, "/{host}{path}"),
                    None if path.is_empty() => Ok(()),
                    None => write!(f, "/{path}"),
                }
            }
            Self::Pod(name, port) => write!(f, "pod/{name}:{port}"),
        }
    }
}

impl FromStr for Destination {
    type Err = InvalidFlow;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fault = |what: &str| InvalidFlow(format!("{text:?} is no target: {what}"));
        for (scheme, tls, usual) in [("http://", false, 80), ("https://", true, 443)] {
            if let Some(rest) = text.strip_prefix(scheme) {
                let (authority, path) = match rest.find(['/', '?']) {
                    Some(at) if rest[at..].starts_with('/') => rest.split_at(at),
                    Some(_) => return Err(fault("a query needs a path before it")),
                    None => (rest, "/"),
                };
                let (host, port) = host_and_port(authority).ok_or_else(|| fault("bad host"))?;
                let port = match port {
                    Some(port) => port.parse().map_err(|_| fault("bad port"))?,
                    None => Port::new(usual).ok_or_else(|| fault("bad port"))?,
                };
                return Ok(Self::Url { tls, host, port, path: path.into() });
            }
        }
        if let Some(rest) = text.strip_prefix("svc/").or_else(|| text.strip_prefix("service/")) {
            let (name, port) = match rest.split_once(':') {
                Some((name, port)) if !port.is_empty() => (name, Some(Text::from(port))),
                Some(_) => return Err(fault("nothing after the colon")),
                None => (rest, None),
            };
            let name = name.parse().map_err(|_| fault("expected svc/NAMESPACE/NAME[:PORT]"))?;
            return Ok(Self::Service(name, port));
        }
        if let Some(rest) = text.strip_prefix("ingress/").or_else(|| text.strip_prefix("ing/")) {
            let form = "expected ingress/NAMESPACE/NAME[/HOST/PATH]";
            let mut parts = rest.splitn(4, '/');
            let (Some(namespace), Some(name)) = (parts.next(), parts.next()) else {
                return Err(fault(form));
            };
            return Ok(Self::Ingress {
                name: NamespacedName::new(namespace, name).map_err(|_| fault(form))?,
                host: parts.next().filter(|host| !host.is_empty()).map(Text::from),
                path: parts.next().map(|path| format!("/{path}").into()),
            });
        }
        if let Some(rest) = text.strip_prefix("pod/") {
            let form = "expected pod/NAMESPACE/NAME:PORT";
            let (name, port) = rest.split_once(':').ok_or_else(|| fault(form))?;
            return Ok(Self::Pod(
                name.parse().map_err(|_| fault(form))?,
                port.parse().map_err(|_| fault(form))?,
            ));
        }
        if let Ok(address) = text.parse::<SocketAddr>() {
            return match address.port() {
                0 => Err(fault("port 0")),
                _ => Ok(Self::Address(address)),
            };
        }
        match host_and_port(text) {
            Some((host, Some(port))) => {
                let port = port.parse().map_err(|_| fault("bad port"))?;
                Ok(Self::Host(host, port))
            }
            _ => Err(fault(
                "expected a URL, HOST:PORT, IP:PORT, svc/NAMESPACE/NAME[:PORT], \
                 ingress/NAMESPACE/NAME[/HOST/PATH] or pod/NAMESPACE/NAME:PORT",
            )),
        }
    }
}

/// Splits `host`, `host:port`, `[v6]` and `[v6]:port`; an IPv6 address is converted to canonical
/// form.
fn host_and_port(text: &str) -> Option<(Text, Option<&str>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        let host = host.parse::<std::net::Ipv6Addr>().ok()?.to_string().into();
        return match rest.strip_prefix(':') {
            Some(port) => Some((host, Some(port))),
            None => rest.is_empty().then_some((host, None)),
        };
    }
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    (!host.is_empty() && host.bytes().all(plain)).then(|| (host.into(), port))
}

/// The text is not a client or destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidFlow(String);

impl fmt::Display for InvalidFlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidFlow {}

/// The outcome of a flow, as its client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// A successful answer after this time (zero: at once).
    Answered {
        /// The time spent waiting for other targets to fail.
        after: Duration,
    },
    /// An HTTP error status.
    Status {
        /// The status.
        code: u16,
        /// The time until the answer.
        after: Duration,
    },
    /// The connection was refused: nothing listens on the port.
    Refused,
    /// The connection was reset.
    Reset,
    /// The TLS handshake was answered with something other than TLS.
    TlsError,
    /// An ICMP error reports that the destination is unreachable.
    Unreachable,
    /// No answer arrives.
    Hangs,
    /// The name does not resolve.
    NameNotFound,
    /// The outcome depends on something that is not given or not modelled.
    Unknown,
}

impl Outcome {
    /// A successful answer at once.
    pub const AT_ONCE: Self = Self::Answered { after: Duration::ZERO };

    /// Whether the client gets a successful answer, at whatever time.
    pub fn is_answered(&self) -> bool {
        matches!(self, Self::Answered { .. })
    }

    /// Whether the outcome is a successful answer at once.
    pub fn is_fine(&self) -> bool {
        *self == Self::AT_ONCE
    }

    /// Whether the outcome is unknown.
    pub fn is_unknown(&self) -> bool {
        *self == Self::Unknown
    }

    /// Whether the outcome is known, and not a successful answer at once.
    pub fn is_bad(&self) -> bool {
        !self.is_fine() && !self.is_unknown()
    }

    /// The time until the answer; `None` if there is none.
    pub fn after(&self) -> Option<Duration> {
        match self {
            Self::Answered { after } | Self::Status { after, .. } => Some(*after),
            Self::Hangs | Self::Unknown => None,
            Self::Refused
            | Self::Reset
            | Self::TlsError
            | Self::Unreachable
            | Self::NameNotFound => Some(Duration::ZERO),
        }
    }

    /// The outcome after an additional wait.
    #[must_use]
    pub fn later(self, waited: Duration) -> Self {
        match self {
            Self::Answered { after } => Self::Answered { after: after + waited },
            Self::Status { code, after } => Self::Status { code, after: after + waited },
            other => other,
        }
    }

    /// The word in JSON output.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Answered { .. } => "answered",
            Self::Status { .. } => "status",
            Self::Refused => "refused",
            Self::Reset => "reset",
            Self::TlsError => "tls-error",
            Self::Unreachable => "unreachable",
            Self::Hangs => "hangs",
            Self::NameNotFound => "name-not-found",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Outcome {
    /// `answered at once`, `answered after 4 s`, `504 after 4 s`, `hangs`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered { after } => write!(f, "answered {}", When(*after)),
            Self::Status { code, after } => write!(f, "{code} {}", When(*after)),
            Self::NameNotFound => f.write_str("name not found"),
            Self::TlsError => f.write_str("TLS error"),
            Self::Unknown => f.write_str("not known"),
            other => f.write_str(other.word()),
        }
    }
}

/// `at once` or `after 4 s`.
struct When(Duration);

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_zero() {
            f.write_str("at once")
        } else {
            write!(f, "after {} s", self.0.as_secs_f64())
        }
    }
}

/// Why a route fails, is slow, or bypasses the load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mechanism {
    /// The reply goes directly to the client and bypasses the load balancer.
    AsymmetricReturn,
    /// The kernel drops a packet whose source is one of its own addresses.
    LocalSourceDrop,
    /// The reverse path filter drops the packet.
    ReversePathFilter,
    /// The load balancer has no eligible target.
    NoCandidate,
    /// Replies to health checks do not return.
    ProbeBlackhole,
    /// A security group drops the packet.
    SecurityGroup,
    /// The Service has no endpoint.
    NoEndpoint,
    /// Nothing listens on the port.
    WrongPort,
    /// A node lacks rules that it should have.
    RuleMissing,
    /// The node has no internet bandwidth.
    NoBandwidth,
    /// The name does not resolve.
    NameUnresolved,
    /// No rule matches the host and path.
    NoRuleForPath,
    /// TLS is not terminated, because the load balancer is bypassed.
    TlsBypassed,
    /// A node's firewall drops or rejects the packet.
    Firewall,
    /// There is no route to the destination.
    NoRoute,
    /// Nodes cannot reach each other's pods.
    CrossNode,
    /// A component that decides, such as a load balancer or proxy, is not modelled.
    NotModelled,
    /// An object that decides is not given.
    NotGiven,
}

impl Mechanism {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::AsymmetricReturn,
        Self::LocalSourceDrop,
        Self::ReversePathFilter,
        Self::NoCandidate,
        Self::ProbeBlackhole,
        Self::SecurityGroup,
        Self::NoEndpoint,
        Self::WrongPort,
        Self::RuleMissing,
        Self::NoBandwidth,
        Self::NameUnresolved,
        Self::NoRuleForPath,
        Self::TlsBypassed,
        Self::Firewall,
        Self::NoRoute,
        Self::CrossNode,
        Self::NotModelled,
        Self::NotGiven,
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AsymmetricReturn => "asymmetric-return",
            Self::LocalSourceDrop => "local-source-drop",
            Self::ReversePathFilter => "reverse-path-filter",
            Self::NoCandidate => "no-candidate",
            Self::ProbeBlackhole => "probe-blackhole",
            Self::SecurityGroup => "security-group",
            Self::NoEndpoint => "no-endpoint",
            Self::WrongPort => "wrong-port",
            Self::RuleMissing => "rule-missing",
            Self::NoBandwidth => "no-bandwidth",
            Self::NameUnresolved => "name-unresolved",
            Self::NoRuleForPath => "no-rule-for-path",
            Self::TlsBypassed => "tls-bypassed",
            Self::Firewall => "firewall",
            Self::NoRoute => "no-route",
            Self::CrossNode => "cross-node",
            Self::NotModelled => "not-modelled",
            Self::NotGiven => "not-given",
        }
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Mechanism {
    type Err = UnknownMechanism;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|mechanism| mechanism.as_str() == text).ok_or(UnknownMechanism)
    }
}

/// The text is not a mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownMechanism;

impl fmt::Display for UnknownMechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a mechanism")
    }
}

impl std::error::Error for UnknownMechanism {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_printed_back() {
        for text in ["pod/shop/web-0", "deploy/shop/web", "node/n1", "outside", "outside/1.2.3.4"] {
            assert_eq!(text.parse::<Client>().unwrap().to_string(), text);
        }
        for text in [
            "http://10.0.0.100/",
            "https://shop.example.com:8443/a/b?c=d",
            "http://[fd00::1]:8080/",
            "shop.example.com:80",
            "10.0.0.1:443",
            "[fd00::1]:443",
            "svc/shop/front",
            "svc/shop/front:http",
            "ingress/shop/front",
            "ingress/shop/front/shop.example.com/api/v1",
            "ingress/shop/front//api/v1",
            "pod/shop/web-0:8080",
        ] {
            assert_eq!(text.parse::<Destination>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_neither_is_refused() {
        for text in ["", "pod/web-0", "svc/front", "web", "deploy/shop", "outside/here", "node/N"] {
            assert!(text.parse::<Client>().is_err(), "{text}");
        }
        for text in [
            "",
            "front",
            "http://",
            "http://a:0/",
            "10.0.0.1",
            "10.0.0.1:0",
            "svc/front:",
            "pod/shop/web-0",
            "http://a?b",
            "[::1",
            "a/b:80",
            "http://[x]/",
            "10.0.0.1:+80",
            "[::1]:+80",
        ] {
            assert!(text.parse::<Destination>().is_err(), "{text}");
        }
    }
}
