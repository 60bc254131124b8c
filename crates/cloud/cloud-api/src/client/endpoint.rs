//! The endpoint of the API, and the body of requests.

use std::str::FromStr;

use http::Uri;
use serde_json::Value;

use super::CallError;
use crate::api::Action;

/// The endpoint of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Tencent Cloud: a host for each service.
    Public,
    /// One address for all services, such as `http://127.0.0.1:8443`.
    At {
        /// `http` or `https`.
        scheme: String,
        /// The host, and the port if there is one.
        authority: String,
    },
}

/// A text that is not the address of an API.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an address such as https://clb.example.com or http://127.0.0.1:8443")]
pub struct InvalidEndpoint(String);

impl FromStr for Endpoint {
    type Err = InvalidEndpoint;

    fn from_str(text: &str) -> Result<Self, InvalidEndpoint> {
        let invalid = || InvalidEndpoint(text.to_owned());
        let uri: Uri = text.parse().map_err(|_| invalid())?;
        let scheme = uri.scheme_str().filter(|scheme| ["http", "https"].contains(scheme));
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'));
        let has_path = !matches!(uri.path(), "" | "/") || uri.query().is_some();
        match (scheme, authority) {
            (Some(scheme), Some(authority)) if !has_path => {
                Ok(Self::At { scheme: scheme.to_owned(), authority: authority.as_str().to_owned() })
            }
            _ => Err(invalid()),
        }
    }
}

impl Endpoint {
    pub(super) fn needs_tls(&self) -> bool {
        match self {
            Self::Public => true,
            Self::At { scheme, .. } => scheme == "https",
        }
    }

    /// Returns the value of the `Host` header.
    pub(super) fn host(&self, service: &str) -> String {
        match self {
            Self::Public => format!("{service}.tencentcloudapi.com"),
            Self::At { authority, .. } => authority.clone(),
        }
    }

    pub(super) fn url(&self, service: &str) -> String {
        let scheme = if self.needs_tls() { "https" } else { "http" };
        format!("{scheme}://{}/", self.host(service))
    }
}

/// Returns the body of a request.
pub(super) fn body<A: Action>(request: &A) -> Result<Value, CallError> {
    let setup = |error| CallError::Setup(format!("{}: {error}", A::NAME));
    request.parameters().map_err(setup)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_scheme_and_a_host() {
        let endpoint: Endpoint = "http://127.0.0.1:8443".parse().unwrap();
        assert_eq!(endpoint.url("clb"), "http://127.0.0.1:8443/");
        assert_eq!(endpoint.host("cvm"), "127.0.0.1:8443");
        assert!(!endpoint.needs_tls());
        assert_eq!(Endpoint::Public.url("clb"), "https://clb.tencentcloudapi.com/");
        for text in
            ["127.0.0.1:8443", "ftp://a", "http://", "http://a/b", "http://u@a", "http:///x"]
        {
            assert!(text.parse::<Endpoint>().is_err(), "{text}");
        }
    }
}
