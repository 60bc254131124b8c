//! Finds the proxy to the API server, by the rules of kubectl.

use std::net::IpAddr;

use http::Uri;
use uturn_model::IpNet;

use crate::error::LiveError;

/// Returns the proxy to a server: the one that the kubeconfig states, whatever the environment
/// says; else that of `HTTPS_PROXY`, unless the server is this machine or `NO_PROXY` names it.
pub(crate) fn proxy_before(
    server: &Uri,
    stated: Option<&str>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Uri>, LiveError> {
    let parsed = |of: &str, text: &str| {
        let text = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let uri: Option<Uri> = text.parse().ok().filter(|uri: &Uri| uri.host().is_some());
        uri.ok_or_else(|| {
            LiveError::Kubeconfig(format!("{of}: {text:?} is not the URL of a proxy"))
        })
    };
    if let Some(stated) = stated.filter(|stated| !stated.is_empty()) {
        return parsed("proxy-url", stated).map(Some);
    }
    // The first variable that is set to something counts, as in Go.
    let first = |names: [&'static str; 2]| {
        names.into_iter().find_map(|name| {
            let value = variable(name).filter(|value| !value.is_empty())?;
            Some((name, value))
        })
    };
    let names = match server.scheme_str() {
        Some("http") => ["HTTP_PROXY", "http_proxy"],
        _ => ["HTTPS_PROXY", "https_proxy"],
    };
    let Some((name, proxy)) = first(names) else { return Ok(None) };
    let exempt = first(["NO_PROXY", "no_proxy"]).map(|(_, exempt)| exempt).unwrap_or_default();
    if is_direct(server, &exempt) {
        return Ok(None);
    }
    parsed(name, &proxy).map(Some)
}

/// Returns whether a server is reached without a proxy.
fn is_direct(server: &Uri, exempt: &str) -> bool {
    let host = server.host().unwrap_or_default().trim_end_matches('.').to_lowercase();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port = server.port_u16().unwrap_or(match server.scheme_str() {
        Some("http") => 80,
        _ => 443,
    });
    let address: Option<IpAddr> = host.parse().ok();
    if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
        return true;
    }
    let mut entries = exempt.split(',').map(|entry| entry.trim().to_lowercase());
    entries.any(|entry| {
        if entry == "*" {
            return true;
        }
        if let (Some(address), Ok(range)) = (address, entry.parse::<IpNet>()) {
            return range.contains(&address);
        }
        let (name, stated) = name_and_port(&entry);
        if name.is_empty() || stated.is_some_and(|stated| stated != port) {
            return false;
        }
        match (address, name.parse::<IpAddr>()) {
            (Some(address), Ok(named)) => return address == named,
            (Some(_), Err(_)) | (None, Ok(_)) => return false,
            (None, Err(_)) => {}
        }
        // `example.com` stands for itself and all names below it, `.example.com` and
        // `*.example.com` only for the names below it.
        let below = name.strip_prefix('*').unwrap_or(name);
        match below.strip_prefix('.') {
            Some(_) => host.ends_with(below),
            None => {
                host == below || host.strip_suffix(below).is_some_and(|rest| rest.ends_with('.'))
            }
        }
    })
}

/// Returns the name or address of an entry, and its port.
fn name_and_port(entry: &str) -> (&str, Option<u16>) {
    if let Some((address, rest)) = entry.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return (address, rest.strip_prefix(':').and_then(|port| port.parse().ok()));
    }
    match entry.split_once(':') {
        // Several colons make an IPv6 address.
        Some((name, port)) if !port.contains(':') => (name, Some(port.parse().unwrap_or(0))),
        _ => (entry, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(server: &str, stated: Option<&str>, variables: &[(&str, &str)]) -> Option<String> {
        let variable = |name: &str| {
            let mut own = variables.iter().filter(|(own, _)| *own == name);
            own.next().map(|(_, value)| (*value).to_owned())
        };
        let server = server.parse().unwrap();
        proxy_before(&server, stated, &variable).unwrap().map(|uri| uri.to_string())
    }

    const SERVER: &str = "https://api.example.com:6443";

    #[test]
    fn the_kubeconfig_counts_before_the_environment() {
        let stated = Some("http://stated:3128");
        let all = [("HTTPS_PROXY", "http://other:3128"), ("NO_PROXY", "*")];
        assert_eq!(proxy(SERVER, stated, &all).unwrap(), "http://stated:3128/");
        assert_eq!(proxy("https://127.0.0.1:6443", stated, &all).unwrap(), "http://stated:3128/");
        assert_eq!(proxy(SERVER, Some(""), &all[..1]).unwrap(), "http://other:3128/");
        assert_eq!(proxy(SERVER, None, &[]), None);
    }

    #[test]
    fn the_scheme_of_the_server_picks_the_variable() {
        let all = [("HTTPS_PROXY", "s:1"), ("HTTP_PROXY", "socks5://p:2")];
        assert_eq!(proxy(SERVER, None, &all).unwrap(), "http://s:1/");
        assert_eq!(proxy("http://api.example.com", None, &all).unwrap(), "socks5://p:2/");
        assert_eq!(proxy(SERVER, None, &[("https_proxy", "s:1")]).unwrap(), "http://s:1/");
        // An empty variable counts as not set.
        let second = [("HTTPS_PROXY", ""), ("https_proxy", "s:1")];
        assert_eq!(proxy(SERVER, None, &second).unwrap(), "http://s:1/");
    }

    #[test]
    fn this_machine_needs_no_proxy() {
        for server in ["https://localhost:1", "https://127.0.0.9:1", "https://[::1]:1"] {
            assert_eq!(proxy(server, None, &[("HTTPS_PROXY", "http://s:1")]), None, "{server}");
        }
    }

    #[test]
    fn servers_are_exempt_by_name_address_range_and_port() {
        for (server, exempt, is_direct) in [
            (SERVER, "*", true),
            (SERVER, "example.com", true),
            (SERVER, "EXAMPLE.com, other", true),
            (SERVER, ".example.com", true),
            (SERVER, "*.example.com", true),
            (SERVER, "api.example.com:6443", true),
            (SERVER, "api.example.com:443", false),
            (SERVER, "ample.com", false),
            (SERVER, "i.example.com", false),
            (SERVER, "10.0.0.0/8", false),
            (SERVER, "", false),
            ("https://example.com", ".example.com", false),
            ("https://example.com", "example.com:443", true),
            ("https://10.1.2.3:6443", "10.0.0.0/8", true),
            ("https://10.1.2.3:6443", "10.1.2.3", true),
            ("https://10.1.2.3:6443", "10.1.2.3:1", false),
            ("https://10.1.2.3:6443", "a,, 11.0.0.0/8,10.1.2.30", false),
            ("https://[fd00::1]:6443", "fd00::/16", true),
            ("https://[fd00::1]:6443", "fd00::1", true),
            ("https://[fd00::1]:6443", "[fd00::1]:6443", true),
            ("https://[fd00::1]:6443", "[fd00::1]:1", false),
        ] {
            let variables = [("HTTPS_PROXY", "http://s:1"), ("NO_PROXY", exempt)];
            let found = proxy(server, None, &variables);
            assert_eq!(found.is_none(), is_direct, "{server} {exempt:?}: {found:?}");
        }
    }

    #[test]
    fn what_is_no_proxy_is_refused() {
        let server = SERVER.parse().unwrap();
        let refused = proxy_before(&server, Some("http://a b"), &|_| None).unwrap_err();
        assert!(refused.to_string().starts_with("proxy-url: "), "{refused}");
    }
}
