//! The destination and the request of a call.

use std::fmt;
use std::net::IpAddr;

use thiserror::Error;
use uturn_model::Port;

/// A call that a pod makes. Its texts are valid in a URL, in a header and as an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    host: String,
    port: Port,
    address: Option<IpAddr>,
    request: Option<HttpRequest>,
}

/// An HTTP request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// Whether the request is sent over TLS.
    pub tls: bool,
    /// The path of the request, with the query.
    pub path: String,
    /// Whether a redirect is followed, once.
    pub follows: bool,
}

/// The error that a text cannot be part of a call.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what} {text:?} cannot be called: {why}")]
pub struct InvalidCall {
    what: &'static str,
    text: String,
    why: &'static str,
}

impl Call {
    /// Makes a call: a connection to a host, and the request that is sent on it; without a request
    /// nothing is sent. The pod resolves a host that is a name, unless `address` states where to
    /// connect.
    ///
    /// # Errors
    /// Returns an error if the host is neither a name nor an address, or the path is invalid.
    pub fn new(
        host: &str,
        port: Port,
        address: Option<IpAddr>,
        request: Option<HttpRequest>,
    ) -> Result<Self, InvalidCall> {
        let invalid = |what, text: &str, why| Err(InvalidCall { what, text: text.to_owned(), why });
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        let is_name = !host.is_empty()
            && host.len() <= 253
            && host.bytes().all(is_plain)
            && !host.starts_with(['-', '.']);
        if host.parse::<IpAddr>().is_err() && !is_name {
            return invalid("host", host, "it is neither a name nor an address");
        }
        if let Some(HttpRequest { path, .. }) = &request {
            if !path.starts_with('/') {
                return invalid("path", path, "it does not begin with a slash");
            }
            if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
                return invalid("path", path, "spaces and letters beyond ASCII have to be escaped");
            }
        }
        Ok(Self { host: host.to_owned(), port, address, request })
    }

    /// Returns the name or address that is called.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port.
    pub fn port(&self) -> Port {
        self.port
    }

    /// Returns the request. Returns `None` if nothing is sent.
    pub fn request(&self) -> Option<&HttpRequest> {
        self.request.as_ref()
    }

    /// Returns the destination of the connection: an address, or the name if the pod resolves it.
    pub(crate) fn connects_to(&self) -> String {
        self.address.map_or_else(|| self.host.clone(), |address| address.to_string())
    }

    /// Returns the address to connect to if the host's own name resolves elsewhere or not at all.
    pub(crate) fn pinned(&self) -> Option<IpAddr> {
        self.address.filter(|address| self.host.parse() != Ok(*address))
    }

    /// Returns the host as URLs and headers have it, with the port if it is not the default one.
    pub(crate) fn authority(&self) -> String {
        let host = bracketed(&self.host);
        if self.request.as_ref().is_some_and(|request| self.port.number() == usual(request)) {
            host
        } else {
            format!("{host}:{}", self.port)
        }
    }

    /// Returns the URL of the request, for a client that resolves the host.
    pub(crate) fn url(&self) -> String {
        self.url_at(&self.authority())
    }

    /// Returns the URL of the request with the address to connect to in place of the host.
    pub(crate) fn url_by_address(&self) -> String {
        self.url_at(&format!("{}:{}", bracketed(&self.connects_to()), self.port))
    }

    fn url_at(&self, authority: &str) -> String {
        match &self.request {
            Some(HttpRequest { tls: true, path, .. }) => format!("https://{authority}{path}"),
            Some(HttpRequest { path, .. }) => format!("http://{authority}{path}"),
            None => authority.to_owned(),
        }
    }
}

impl fmt::Display for Call {
    /// Formats the call as `http://shop.example.com/ at 10.0.0.100` or `10.0.0.100:80`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url())?;
        match self.pinned() {
            Some(address) => write!(f, " at {address}"),
            None => Ok(()),
        }
    }
}

fn usual(request: &HttpRequest) -> u16 {
    if request.tls { 443 } else { 80 }
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(host: &str, path: &str) -> Result<Call, InvalidCall> {
        let request = HttpRequest { tls: false, path: path.to_owned(), follows: false };
        Call::new(host, Port::new(80).unwrap(), None, Some(request))
    }

    #[test]
    fn what_could_be_read_as_something_else_is_refused() {
        for host in ["", "-o", "a b", "a;b", "$(id)", "a\r\nb", "a/b", "a'b", ".a", "a:b"] {
            assert!(call(host, "/").is_err(), "{host:?}");
        }
        for path in ["", "a", "/a b", "/\r\nX: y", "/\u{e4}", "/\0"] {
            assert!(call("a", path).is_err(), "{path:?}");
        }
        for path in ["/", "/$(id)`id`';\"|&", "/a?b=[c]{d}"] {
            assert_eq!(call("a.b-c_d", path).unwrap().url(), format!("http://a.b-c_d{path}"));
        }
    }

    #[test]
    fn addresses_of_the_sixth_version_have_brackets() {
        let call = call("fd00::1", "/").unwrap();
        assert_eq!(call.url(), "http://[fd00::1]/");
        assert_eq!(call.url_by_address(), "http://[fd00::1]:80/");
    }

    #[test]
    fn a_host_may_be_elsewhere() {
        let request = HttpRequest { tls: true, path: "/".to_owned(), follows: false };
        let address = Some([10, 0, 0, 100].into());
        let port = Port::new(8443).unwrap();
        let call = Call::new("shop.example.com", port, address, Some(request)).unwrap();
        assert_eq!(call.to_string(), "https://shop.example.com:8443/ at 10.0.0.100");
        assert_eq!(call.url_by_address(), "https://10.0.0.100:8443/");
        let port = Port::new(80).unwrap();
        let plain = Call::new("10.0.0.100", port, address, None).unwrap();
        assert_eq!((plain.to_string().as_str(), plain.pinned()), ("10.0.0.100:80", None));
    }
}
