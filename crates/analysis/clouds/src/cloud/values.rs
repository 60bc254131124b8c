//! Values of annotations that several controllers write alike.

use uturn_model::Service;
use uturn_model::lb::{ListenerProtocol, ProxyVersion};
use uturn_model::service::ServicePort;

use super::product::plain_protocol;

/// Returns whether an annotation is switched on.
pub(crate) fn is_on(service: &Service, key: &str) -> bool {
    let value = service.annotations.get(key).unwrap_or_default().trim();
    ["true", "1", "t"].iter().any(|on| value.eq_ignore_ascii_case(on))
}

/// Returns the protocol that a word asks for on a TCP port: `http` or `https`. Other ports and
/// other words get the default protocol.
pub(crate) fn protocol_of(word: Option<&str>, port: &ServicePort) -> ListenerProtocol {
    let word = word.unwrap_or_default().trim();
    match plain_protocol(port) {
        ListenerProtocol::Tcp if word.eq_ignore_ascii_case("http") => ListenerProtocol::Http,
        ListenerProtocol::Tcp if word.eq_ignore_ascii_case("https") => ListenerProtocol::Https,
        plain => plain,
    }
}

/// Returns the version of the PROXY header that a word asks for: `v1` or `v2`.
pub(crate) fn version_of(word: &str) -> Option<ProxyVersion> {
    let word = word.trim();
    if word.eq_ignore_ascii_case("v2") {
        Some(ProxyVersion::V2)
    } else {
        word.eq_ignore_ascii_case("v1").then_some(ProxyVersion::V1)
    }
}

/// Returns whether the list of ports in an annotation contains a port: by its number, by a `*` for
/// all ports, or by `true`.
pub(crate) fn names_port(service: &Service, key: &str, port: u16) -> bool {
    lists_port(service.annotations.get(key).unwrap_or_default(), port)
}

/// Returns whether a list of ports contains a port, for a list that is part of an annotation's
/// value.
pub(crate) fn lists_port(list: &str, port: u16) -> bool {
    let mut all = list.split(',').map(str::trim);
    all.any(|item| item == "*" || item.eq_ignore_ascii_case("true") || item.parse() == Ok(port))
}

#[cfg(test)]
mod tests {
    use uturn_model::{Origin, Service};

    use super::*;

    #[test]
    fn switches_and_lists() {
        let mut service = Service::new("shop/web".parse().unwrap(), Origin::file("a.yaml"));
        let annotations = [("on", "True"), ("off", "false"), ("list", "80, 443"), ("all", "*")];
        service.annotations = annotations.into_iter().collect();
        assert!(is_on(&service, "on") && !is_on(&service, "off") && !is_on(&service, "none"));
        assert!(names_port(&service, "list", 443) && !names_port(&service, "list", 8080));
        assert!(names_port(&service, "all", 1) && !names_port(&service, "off", 80));
        assert!(!names_port(&service, "none", 80));
    }
}
