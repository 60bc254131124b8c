//! The credentials of a request: a token, or a client certificate.

use http::HeaderValue;
use jiff::Timestamp;

/// The credentials that are sent with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Credential {
    pub(crate) header: Option<HeaderValue>,
    pub(crate) identity: Option<Identity>,
    /// The time when the credentials have to be renewed.
    pub(crate) until: Option<Timestamp>,
}

/// A client certificate and its key, as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// Returns the header of a token, without the line end that may follow the token.
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
