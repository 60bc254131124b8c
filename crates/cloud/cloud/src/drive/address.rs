//! The admin address of a machine, and the token that authorizes its use.

use std::fmt;
use std::net::IpAddr;

use http::{HeaderValue, Uri};

/// The fewest characters of a token, as for `uturn lb run`.
const SHORTEST_TOKEN: usize = 16;

/// The admin address of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaneAddress {
    scheme: String,
    authority: String,
}

/// The reason why an address or a token is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPlane {
    /// The address has another form.
    #[error("{0:?} is not an address such as https://lb1.example.com or http://127.0.0.1:9900")]
    Form(String),
    /// The address would send keys and the token unencrypted.
    #[error(
        "{0}: keys and the token could be read on the way: use https, or an address of this \
         machine such as 127.0.0.1"
    )]
    Plain(String),
    /// The token is too short, or has spaces or control characters.
    #[error("a token has at least 16 letters, digits and signs, without space between them")]
    Token,
}

impl PlaneAddress {
    /// Parses an address. Without TLS it has to be a loopback address, unless plain HTTP is
    /// allowed.
    ///
    /// # Errors
    ///
    /// Returns why the address is invalid.
    pub fn parse(text: &str, allows_plain: bool) -> Result<Self, InvalidPlane> {
        let invalid = || InvalidPlane::Form(text.to_owned());
        let uri: Uri = text.parse().map_err(|_| invalid())?;
        let has_path = !matches!(uri.path(), "" | "/") || uri.query().is_some();
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'));
        let (Some(scheme), Some(authority), false) = (uri.scheme_str(), authority, has_path) else {
            return Err(invalid());
        };
        match scheme {
            "https" => {}
            "http" if allows_plain || is_loopback(authority.host()) => {}
            "http" => return Err(InvalidPlane::Plain(text.to_owned())),
            _ => return Err(invalid()),
        }
        Ok(Self { scheme: scheme.to_owned(), authority: authority.as_str().to_owned() })
    }

    /// Returns the IP address; `None` if the address has a host name.
    pub fn ip(&self) -> Option<IpAddr> {
        let authority: http::uri::Authority = self.authority.parse().ok()?;
        authority.host().trim_matches(['[', ']']).parse().ok()
    }

    pub(super) fn needs_tls(&self) -> bool {
        self.scheme == "https"
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("{self}{path}")
    }
}

impl fmt::Display for PlaneAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}://{}", self.scheme, self.authority)
    }
}

/// Returns whether a host is a loopback address. Names do not count, not even `localhost`, because
/// they could resolve to another machine.
fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The token that authorizes changes of a machine's configuration. It is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct PlaneToken(HeaderValue);

impl PlaneToken {
    /// Parses a token, without white space around it.
    ///
    /// # Errors
    ///
    /// Returns [`InvalidPlane::Token`] for an invalid token.
    pub fn parse(text: &str) -> Result<Self, InvalidPlane> {
        let token = text.trim();
        if token.len() < SHORTEST_TOKEN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(InvalidPlane::Token);
        }
        let value = HeaderValue::try_from(format!("Bearer {token}"));
        let mut value = value.map_err(|_| InvalidPlane::Token)?;
        value.set_sensitive(true);
        Ok(Self(value))
    }

    /// Returns the value of the header `Authorization`.
    pub(super) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Debug for PlaneToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PlaneToken(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_stays_on_this_machine() {
        let parse = |text| PlaneAddress::parse(text, false);
        for text in ["http://127.0.0.1:9900", "http://127.9.9.9:1/", "http://[::1]:9900"] {
            assert!(parse(text).is_ok(), "{text}");
        }
        for text in ["http://10.0.0.1:9900", "http://localhost:9900", "http://127.0.0.1.example"] {
            assert_eq!(parse(text), Err(InvalidPlane::Plain(text.to_owned())));
            assert!(PlaneAddress::parse(text, true).is_ok(), "{text}");
        }
        assert_eq!(parse("https://lb1").unwrap().url("/config"), "https://lb1/config");
        for text in ["127.0.0.1:9900", "ftp://a", "https://a/b", "https://u@a", "https://a?b"] {
            assert_eq!(parse(text), Err(InvalidPlane::Form(text.to_owned())));
        }
    }

    #[test]
    fn a_token_is_long_enough_and_not_printed() {
        let token = PlaneToken::parse(" 0123456789abcdef\n").unwrap();
        assert_eq!(token.header(), "Bearer 0123456789abcdef");
        assert!(!format!("{token:?} {:?}", token.header()).contains("0123"));
        for text in ["", "0123456789", "0123456789 abcdefgh"] {
            assert_eq!(PlaneToken::parse(text), Err(InvalidPlane::Token));
        }
    }
}
