//! Flows from a client to a destination, as text and as types.

mod destination;

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

pub use destination::Destination;

use crate::shell::Command;
use crate::{Name, NamespacedName, ObjectKind, Protocol, WorkloadKind};

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

impl Flow {
    /// Returns the flow as arguments of a command: `--from pod/shop/web-0 --to svc/shop/dns --proto
    /// udp`.
    pub fn arguments(&self) -> Command {
        let Self { from, to, protocol } = self;
        let command = Command::new("--from").value(from).words("--to").value(to);
        match protocol {
            Protocol::Tcp => command,
            other => command.words("--proto").value(other.lower()),
        }
    }
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
        let fault = |what: &str| InvalidFlow(format!("{text:?} is not a client: {what}"));
        let (word, rest) = text.split_once('/').unwrap_or((text, ""));
        let named = || {
            rest.parse::<NamespacedName>().map_err(|_| {
                fault(&format!("expected {word}/NAMESPACE/NAME, such as {word}/default/web"))
            })
        };
        match ObjectKind::from_word(word) {
            Some(ObjectKind::Pod) => return Ok(Self::Pod(named()?)),
            Some(ObjectKind::Node) => {
                return Name::new(rest).map(Self::Node).map_err(|_| fault("expected node/NAME"));
            }
            _ => {}
        }
        match word {
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

/// The error that a text is not a client or destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidFlow(String);

impl fmt::Display for InvalidFlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidFlow {}

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
            "tcproute/shop/db",
            "tcproute/shop/db:5432",
            "tlsroute/shop/web/a.example.com",
            "tlsroute/shop/web:8443/a.example.com",
            "pod/shop/web-0:8080",
        ] {
            assert_eq!(text.parse::<Destination>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn kinds_are_those_of_kubectl() {
        for (text, shown) in [
            ("po/shop/web-0", "pod/shop/web-0"),
            ("nodes/n1", "node/n1"),
            ("deployments/shop/web", "deploy/shop/web"),
        ] {
            assert_eq!(text.parse::<Client>().unwrap().to_string(), shown);
        }
        for (text, shown) in [
            ("service/shop/front:80", "svc/shop/front:80"),
            ("ing/shop/front", "ingress/shop/front"),
            ("httproutes/shop/front/a.example.com/", "httproute/shop/front/a.example.com/"),
            ("pods/shop/web-0:8080", "pod/shop/web-0:8080"),
        ] {
            assert_eq!(text.parse::<Destination>().unwrap().to_string(), shown);
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
            "tcproute/db",
            "tcproute/shop/db:http",
            "tcproute/shop/db/a.example.com",
            "tlsroute/shop/web/a.example.com/path",
        ] {
            assert!(text.parse::<Destination>().is_err(), "{text}");
        }
    }
}
