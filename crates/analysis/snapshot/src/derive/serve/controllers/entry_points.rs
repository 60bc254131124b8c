//! Reads Traefik's entry points from its arguments.

use uturn_model::controller::{EntryPoint, EntryRedirect, ProxyExpectation};
use uturn_model::gateway::RouteRedirect;
use uturn_model::{IpNet, Port};

use super::arguments::Arguments;

/// The entry point of Traefik's own pages, which only routers that name it use.
const INTERNAL: &str = "traefik";
/// The priority below which a redirect may come after the routers of Ingresses.
const LOW: i64 = 1_000_000;

/// Returns the entry point that listens on a port of the pods. Returns `None` if the arguments do
/// not show it: a file or the environment may define it.
pub(super) fn at(arguments: &Arguments<'_>, port: Port) -> Option<EntryPoint> {
    if arguments.get("configfile").is_some() {
        return None;
    }
    let all = || names(arguments).into_iter().filter(|name| port_of(arguments, name).is_some());
    let name = all().find(|name| port_of(arguments, name) == Some(port))?;
    let of = |what: &str| format!("entrypoints.{name}.{what}");
    let is_flagged = |name: &str| arguments.is_on(&format!("entrypoints.{name}.asdefault"));
    let is_default =
        if all().any(|name| is_flagged(&name)) { is_flagged(&name) } else { name != INTERNAL };
    let tls = arguments.is_on(&of("http.tls")) || arguments.has_below(&of("http.tls."));
    let redirect = redirect(arguments, &name);
    Some(EntryPoint { name: name.as_str().into(), is_default, tls, redirect })
}

/// Returns the place to which clients of an entry point are redirected.
fn redirect(arguments: &Arguments<'_>, name: &str) -> EntryRedirect {
    let of = |what: &str| format!("entrypoints.{name}.http.redirections.entrypoint.{what}");
    let Some(to) = arguments.get(&of("to")).filter(|to| !to.is_empty()) else {
        return EntryRedirect::None;
    };
    let is_low = arguments
        .get(&of("priority"))
        .is_some_and(|own| own.parse::<i64>().is_ok_and(|priority| priority < LOW));
    let port = match to.strip_prefix(':') {
        Some(port) => port.parse().ok().and_then(Port::new),
        None => port_of(arguments, &to.to_ascii_lowercase()),
    };
    let Some(port) = port.filter(|_| !is_low) else { return EntryRedirect::Unknown };
    let scheme = arguments.get(&of("scheme")).unwrap_or("https");
    let is_permanent =
        arguments.get(&of("permanent")).is_none() || arguments.is_on(&of("permanent"));
    EntryRedirect::To(RouteRedirect {
        code: if is_permanent { 301 } else { 302 },
        tls: Some(scheme.eq_ignore_ascii_case("https")),
        host: None,
        port: Some(port),
    })
}

/// Returns the names of all entry points, in lower case.
fn names(arguments: &Arguments<'_>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for below in arguments.below("entrypoints.") {
        let name = below.split(['.', '=']).next().unwrap_or_default().to_ascii_lowercase();
        if !name.is_empty() && !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

/// Returns the port of the pods on which an entry point for TCP listens.
fn port_of(arguments: &Arguments<'_>, name: &str) -> Option<Port> {
    let address = arguments.get(&format!("entrypoints.{name}.address"))?;
    let (address, protocol) = address.split_once('/').unwrap_or((address, "tcp"));
    if !protocol.eq_ignore_ascii_case("tcp") {
        return None;
    }
    let port: u16 = address.rsplit(':').next()?.parse().ok()?;
    Port::new(port)
}

/// Returns whether the entry point on a port accepts a PROXY header. The entry point has an address
/// with the number of the port, or else the name of the container's port.
pub(super) fn proxy_header(
    arguments: &Arguments<'_>,
    port: Port,
    declared: Option<&str>,
) -> ProxyExpectation {
    let listens = names(arguments).into_iter().find(|name| port_of(arguments, name) == Some(port));
    let Some(entry) = listens.or_else(|| declared.map(str::to_owned)) else {
        return ProxyExpectation::Unknown("which entry point listens there is not known".into());
    };
    let of = |what: &str| format!("entrypoints.{entry}.proxyprotocol.{what}");
    if arguments.is_on(&of("insecure")) {
        return ProxyExpectation::Accepted(Vec::new());
    }
    match arguments.get(&of("trustedips")).map(ranges) {
        None => ProxyExpectation::NotExpected,
        Some(Some(from)) => ProxyExpectation::Accepted(from),
        Some(None) => ProxyExpectation::Unknown(format!("mend {}", of("trustedips")).into()),
    }
}

/// Parses addresses and ranges that are separated by commas. Returns `None` if one is neither.
pub(super) fn ranges(text: &str) -> Option<Vec<IpNet>> {
    let words = text.split([',', ' ', '\n']).map(str::trim).filter(|word| !word.is_empty());
    words
        .map(|word| {
            word.parse().ok().or_else(|| Some(IpNet::from(word.parse::<std::net::IpAddr>().ok()?)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_addresses_are_ranges_too() {
        let all = ranges("10.0.0.0/8, 192.0.2.1").unwrap();
        assert_eq!(all, ["10.0.0.0/8".parse().unwrap(), "192.0.2.1/32".parse().unwrap()]);
        assert_eq!(ranges("10.0.0.0/8,everyone"), None);
    }
}
