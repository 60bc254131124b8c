//! Access control: only a request with the token may read and change the configuration.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use http::header::{AUTHORIZATION, ORIGIN, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use subtle::ConstantTimeEq;

use super::Known;
use super::pages::{TEXT, page};

/// The fewest characters of a token.
const SHORTEST: usize = 16;

/// The most characters of a token.
const LONGEST: usize = 4096;

/// The token that permits reading and changing the configuration.
pub(super) struct Token(Vec<u8>);

impl Token {
    /// Reads a token from a file, ignoring surrounding space.
    ///
    /// # Errors
    /// When the file cannot be read, or does not hold a token.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let mut bytes = Vec::new();
        File::open(path)?.take(2 * LONGEST as u64).read_to_end(&mut bytes)?;
        let token = bytes.trim_ascii();
        let is_token = token.iter().all(u8::is_ascii_graphic);
        if is_token && (SHORTEST..=LONGEST).contains(&token.len()) {
            return Ok(Self(token.to_vec()));
        }
        let expected = format!(
            "expected {SHORTEST} to {LONGEST} letters, digits and signs, without space between them"
        );
        Err(io::Error::new(io::ErrorKind::InvalidData, expected))
    }

    /// Compares in a time that depends only on the lengths.
    fn is(&self, other: &[u8]) -> bool {
        self.0.ct_eq(other).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// Checks whether a request may read and change the configuration.
///
/// # Errors
/// The answer to a request that may not.
pub(super) fn check(headers: &HeaderMap, known: &Known) -> Result<(), Box<Response<String>>> {
    let refuse = |status, text: &str| Err(Box::new(page(status, TEXT, format!("{text}\n"))));
    let token = known.token.load();
    let Some(token) = token.as_ref() else {
        return refuse(
            StatusCode::FORBIDDEN,
            "This needs a token, and none is configured: write one into a file, and name the file \
             in the DataPlane document: admin: {address: ADDRESS:PORT, tokenFile: PATH}",
        );
    };
    // A browser adds this header to requests of other sites' pages.
    if headers.contains_key(ORIGIN) {
        return refuse(StatusCode::FORBIDDEN, "This is not for web pages.");
    }
    let mut stated = headers.get_all(AUTHORIZATION).iter();
    let proof = stated.next().filter(|_| stated.next().is_none()).map(HeaderValue::as_bytes);
    let proof = proof.and_then(|value| match value.split_at_checked(7) {
        Some((scheme, proof)) if scheme.eq_ignore_ascii_case(b"bearer ") => Some(proof),
        _ => None,
    });
    if proof.is_some_and(|proof| token.is(proof)) {
        return Ok(());
    }
    let text = "This needs the header Authorization: Bearer TOKEN, with the token of \
                spec.admin.tokenFile\n";
    let mut response = page(StatusCode::UNAUTHORIZED, TEXT, text.into());
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    Err(Box::new(response))
}
