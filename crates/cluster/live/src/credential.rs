//! What is sent with a request: a token, or a client certificate.

use http::HeaderValue;
use jiff::Timestamp;

/// What is sent with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Credential {
    pub(crate) header: Option<HeaderValue>,
    pub(crate) identity: Option<Identity>,
    /// When they have to be had anew.
    pub(crate) until: Option<Timestamp>,
}

/// A client certificate and its key, as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// The header of a token. A line's end behind it does not count.
pub(crate) fn bearer(token: &str) -> Result<HeaderValue, String> {
    let token = token.trim();
    if token.is_empty() {
        return Err("is empty".to_owned());
    }
    let header = HeaderValue::try_from(format!("Bearer {token}"));
    let mut header = header.map_err(|_| "has letters that no header may have".to_owned())?;
    header.set_sensitive(true);
    Ok(header)
}
