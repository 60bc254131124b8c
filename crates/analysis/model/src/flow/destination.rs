//! The destination of a flow.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use super::InvalidFlow;
use crate::{NamespacedName, ObjectKind, ObjectRef, Port, Text};

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
        /// The port of a listener, if several have the host and path; by default, the first's.
        port: Option<Port>,
    },
    /// A pod and a port.
    Pod(NamespacedName, Port),
}

/// The suffixes of Ingress names that represent routes, with the kind of route.
const ROUTES: [(&str, ObjectKind); 4] = [
    (".httproute", ObjectKind::HttpRoute),
    (".grpcroute", ObjectKind::GrpcRoute),
    (".tcproute", ObjectKind::TcpRoute),
    (".tlsroute", ObjectKind::TlsRoute),
];

impl Destination {
    /// Returns the host of a URL, or of a name with a port.
    pub fn host(&self) -> Option<&Text> {
        match self {
            Self::Url { host, .. } | Self::Host(host, _) => Some(host),
            Self::Address(_) | Self::Service(..) | Self::Ingress { .. } | Self::Pod(..) => None,
        }
    }

    /// Returns the object to which the destination refers, if any.
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
            Self::Ingress { name, host, path, port } => {
                let route = ROUTES.iter().find_map(|(suffix, _)| {
                    Some((&suffix[1..], name.name.as_str().strip_suffix(suffix)?))
                });
                match route {
                    Some((word, route)) => write!(f, "{word}/{}/{route}", name.namespace)?,
                    None => write!(f, "ingress/{name}")?,
                }
                if let Some(port) = port {
                    write!(f, ":{port}")?;
                }
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
        let fault = |what: &str| InvalidFlow(format!("{text:?} is not a target: {what}"));
        for (scheme, tls, usual) in [("http://", false, 80), ("https://", true, 443)] {
            if let Some(rest) = text.strip_prefix(scheme) {
                let (authority, path) = match rest.find(['/', '?']) {
                    Some(at) if rest[at..].starts_with('/') => rest.split_at(at),
                    Some(_) => return Err(fault("a query needs a path before it")),
                    None => (rest, "/"),
                };
                if let Some(why) = unbracketed(authority) {
                    return Err(fault(&why));
                }
                let (host, port) = host_and_port(authority).ok_or_else(|| fault("bad host"))?;
                check_host(&host).map_err(|why| fault(&why))?;
                let port = match port {
                    Some(port) => port.parse().map_err(|_| fault("bad port"))?,
                    None => Port::new(usual).ok_or_else(|| fault("bad port"))?,
                };
                return Ok(Self::Url { tls, host, port, path: path.into() });
            }
        }
        if let Some((scheme, rest)) = text.split_once("://") {
            let authority = rest.split('/').next().unwrap_or_default();
            let port = if authority.contains(':') { "" } else { ":PORT" };
            return Err(fault(&format!(
                "expected the scheme http or https; to call {scheme}, name the connection: \
                 {authority}{port}"
            )));
        }
        let (word, rest) = text.split_once('/').unwrap_or((text, ""));
        let kind = ObjectKind::from_word(word);
        if kind == Some(ObjectKind::Service) {
            let (name, port) = match rest.split_once(':') {
                Some((name, port)) if !port.is_empty() => (name, Some(Text::from(port))),
                Some(_) => return Err(fault("expected a port after the colon")),
                None => (rest, None),
            };
            let name = name.parse().map_err(|_| fault("expected svc/NAMESPACE/NAME[:PORT]"))?;
            return Ok(Self::Service(name, port));
        }
        if kind == Some(ObjectKind::Ingress) || kind.is_some_and(ObjectKind::is_route) {
            return by_rules(kind, rest).map_err(|form| fault(&form));
        }
        if kind == Some(ObjectKind::Pod) {
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
        if let Some(why) = unbracketed(text) {
            return Err(fault(&why));
        }
        match host_and_port(text) {
            Some((_, None)) if text.starts_with('[') => {
                Err(fault(&format!("a port is missing: {text}:80")))
            }
            Some((host, Some(port))) => {
                let port = port.parse().map_err(|_| fault("bad port"))?;
                check_host(&host).map_err(|why| fault(&why))?;
                Ok(Self::Host(host, port))
            }
            Some((host, None)) if host.contains('.') && !text.contains('[') => {
                Err(fault(&format!("expected a scheme or a port too: http://{host}/ or {host}:80")))
            }
            _ => Err(fault(
                "expected a URL, HOST:PORT, IP:PORT, svc/NAMESPACE/NAME[:PORT], \
                 ingress/NAMESPACE/NAME[/HOST/PATH], httproute/NAMESPACE/NAME[/HOST/PATH], \
                 tcproute/NAMESPACE/NAME[:PORT], tlsroute/NAMESPACE/NAME[:PORT][/HOST] or \
                 pod/NAMESPACE/NAME:PORT",
            )),
        }
    }
}

/// Parses the part after `ingress/` or the word of a route. Returns the expected form if the part
/// does not have it.
fn by_rules(kind: Option<ObjectKind>, rest: &str) -> Result<Destination, String> {
    let route = ROUTES.iter().find(|(_, known)| Some(*known) == kind);
    let form = || match kind {
        Some(ObjectKind::TcpRoute) => "expected tcproute/NAMESPACE/NAME[:PORT]".to_owned(),
        Some(ObjectKind::TlsRoute) => "expected tlsroute/NAMESPACE/NAME[:PORT][/HOST]".to_owned(),
        _ => {
            let word = route.map_or("ingress", |(suffix, _)| &suffix[1..]);
            format!("expected {word}/NAMESPACE/NAME[/HOST/PATH]")
        }
    };
    let mut parts = rest.splitn(4, '/');
    let (Some(namespace), Some(name)) = (parts.next(), parts.next()) else { return Err(form()) };
    let is_of_connections = kind.is_some_and(ObjectKind::is_route_of_connections);
    let (name, port) = match name.split_once(':').filter(|_| is_of_connections) {
        Some((name, port)) => (name, Some(port.parse().map_err(|_| form())?)),
        None => (name, None),
    };
    let name = format!("{name}{}", route.map_or("", |(suffix, _)| suffix));
    let name = NamespacedName::new(namespace, &name).map_err(|_| form())?;
    let host = parts.next().filter(|host| !host.is_empty()).map(Text::from);
    let path = parts.next().map(|path| Text::from(format!("/{path}")));
    match kind {
        Some(ObjectKind::TcpRoute) if host.is_some() || path.is_some() => Err(form()),
        Some(ObjectKind::TlsRoute) if path.is_some() => Err(form()),
        _ => Ok(Destination::Ingress { name, host, path, port }),
    }
}

/// Refuses a host that looks like an IPv4 address and is none, such as `10.0.0.300`: no name ends
/// in a number.
fn check_host(host: &str) -> Result<(), String> {
    let is_number = |label: &str| !label.is_empty() && label.bytes().all(|b| b.is_ascii_digit());
    let ends_in_number = host.rsplit('.').next().is_some_and(is_number);
    if ends_in_number && host.parse::<std::net::Ipv4Addr>().is_err() {
        Err(format!("{host} is neither an IPv4 address nor a name"))
    } else {
        Ok(())
    }
}

/// Explains how an IPv6 address is written, if brackets are missing or it has a zone.
fn unbracketed(text: &str) -> Option<String> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, _) = rest.split_once(']')?;
        return match host.split_once('%') {
            Some(_) => Some(format!("zones such as that of {host} are not supported")),
            None => host.parse::<std::net::Ipv4Addr>().ok().map(|ip| {
                format!("brackets are for IPv6 addresses: {ip}{}", &rest[host.len() + 1..])
            }),
        };
    }
    let is_bare = text.matches(':').count() > 1;
    is_bare.then(|| "an IPv6 address is written in brackets: [ADDRESS]:PORT".to_owned())
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
