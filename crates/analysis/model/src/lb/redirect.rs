//! Redirects that a load balancer sends instead of forwarding a request.

use crate::{Port, Text};

/// A response that redirects the client to another URL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Redirect {
    /// The status code: 301, 302, 307 or 308.
    pub code: u16,
    /// Whether the new URL uses TLS.
    pub tls: bool,
    /// The host; `None` for that of the request.
    pub host: Option<Text>,
    /// The port.
    pub port: Port,
    /// The path; `None` for that of the request.
    pub path: Option<Text>,
}

impl Redirect {
    /// Returns the host and path to which a request is redirected. `host` may contain a port.
    pub fn aim<'s>(&'s self, host: &'s str, path: &'s str) -> (&'s str, &'s str) {
        let bare = match host.rsplit_once(':') {
            Some((name, port))
                if port.bytes().all(|byte| byte.is_ascii_digit())
                    && (!name.contains(':') || name.ends_with(']')) =>
            {
                name
            }
            _ => host,
        };
        (self.host.as_deref().unwrap_or(bare), self.path.as_deref().unwrap_or(path))
    }

    /// Returns the value of the `Location` header.
    pub fn location(&self, host: &str, path: &str) -> String {
        let (host, path) = self.aim(host, path);
        match (self.tls, self.port.number()) {
            (true, 443) => format!("https://{host}{path}"),
            (false, 80) => format!("http://{host}{path}"),
            (true, port) => format!("https://{host}:{port}{path}"),
            (false, port) => format!("http://{host}:{port}{path}"),
        }
    }
}
