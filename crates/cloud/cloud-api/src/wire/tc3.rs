//! The signature TC3-HMAC-SHA256: the signed text, and the key that signs it.
//!
//! A client and a server do the same: they write the request in a canonical form, hash it, and
//! authenticate the hash with a key that is derived from the secret key for one day and one
//! service.

use std::fmt::Write as _;

use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use sha2::{Digest as _, Sha256};

/// The name of the algorithm, the first word of an `Authorization` header.
pub const ALGORITHM: &str = "TC3-HMAC-SHA256";

/// The last word of a credential's scope.
pub const SCOPE_END: &str = "tc3_request";

/// The value of `X-TC-Content-SHA256` by which a client leaves its body out of the signature.
pub const UNSIGNED_PAYLOAD: &str = "UNSIGNED-PAYLOAD";

/// The parts of a request that are signed.
#[derive(Clone, Debug)]
pub struct Signable<'a> {
    /// `GET` or `POST`.
    pub method: &'a str,
    /// The query string as it stands in the request line, without its question mark.
    pub query: &'a str,
    /// The signed headers in the order in which the client lists them: names and values.
    pub headers: Vec<(&'a str, &'a str)>,
    /// The payload, which represents the body.
    pub payload: Payload<'a>,
}

/// The representation of the body in a canonical request.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// The hash of these bytes.
    Signed(&'a [u8]),
    /// The hash of [`UNSIGNED_PAYLOAD`].
    Unsigned,
}

impl Signable<'_> {
    /// Returns the canonical form. The path is always `/`, and header values are in lower case.
    pub fn canonical(&self) -> String {
        let mut text = format!("{}\n/\n{}\n", self.method, self.query);
        for (name, value) in &self.headers {
            let (name, value) = (name.to_ascii_lowercase(), value.trim().to_lowercase());
            writeln!(text, "{name}:{value}").expect("a String takes every text");
        }
        text.push('\n');
        for (position, (name, _)) in self.headers.iter().enumerate() {
            if position > 0 {
                text.push(';');
            }
            text.push_str(&name.to_ascii_lowercase());
        }
        text.push('\n');
        text.push_str(&hash(match self.payload {
            Payload::Signed(body) => body,
            Payload::Unsigned => UNSIGNED_PAYLOAD.as_bytes(),
        }));
        text
    }

    /// Returns the text that is authenticated.
    pub fn string_to_sign(&self, timestamp: Timestamp, scope: &Scope<'_>) -> String {
        let seconds = timestamp.as_second();
        format!("{ALGORITHM}\n{seconds}\n{scope}\n{}", hash(self.canonical().as_bytes()))
    }
}

/// The day and the service for which a signature is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope<'a> {
    /// The UTC date of the request's timestamp, `YYYY-MM-DD`.
    pub date: &'a str,
    /// The service, such as `clb`.
    pub service: &'a str,
}

impl std::fmt::Display for Scope<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}/{SCOPE_END}", self.date, self.service)
    }
}

/// Returns the UTC date of a timestamp in the form of a scope.
pub fn date(timestamp: Timestamp) -> String {
    timestamp.to_zoned(TimeZone::UTC).date().to_string()
}

/// Returns the authentication code of a text, which can be finalized or compared in constant time.
pub fn authenticate(secret_key: &str, scope: &Scope<'_>, text: &str) -> Hmac<Sha256> {
    let date = keyed(format!("TC3{secret_key}").as_bytes(), scope.date);
    let service = keyed(&date.finalize().into_bytes(), scope.service);
    let signing = keyed(&service.finalize().into_bytes(), SCOPE_END);
    keyed(&signing.finalize().into_bytes(), text)
}

/// Returns the signature of a request in hexadecimal digits.
pub fn sign(secret_key: &str, scope: &Scope<'_>, text: &str) -> String {
    hex(&authenticate(secret_key, scope, text).finalize().into_bytes())
}

/// Returns the value of the `Authorization` header for a request, signed with this credential.
pub fn authorization(
    secret_id: &str,
    secret_key: &str,
    signable: &Signable<'_>,
    timestamp: Timestamp,
    service: &str,
) -> String {
    let date = date(timestamp);
    let scope = Scope { date: &date, service };
    let signature = sign(secret_key, &scope, &signable.string_to_sign(timestamp, &scope));
    let names: Vec<&str> = signable.headers.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    format!(
        "{ALGORITHM} Credential={secret_id}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
}

fn keyed(key: &[u8], message: &str) -> Hmac<Sha256> {
    let mut code = Hmac::new_from_slice(key).expect("HMAC takes keys of every length");
    code.update(message.as_bytes());
    code
}

fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Returns bytes in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes every text");
        text
    })
}

/// Returns the bytes that hexadecimal digits encode.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] =
        br#"{"Limit": 1, "Filters": [{"Values": ["\u672a\u547d\u540d"], "Name": "instance-name"}]}"#;

    /// Both vectors that Tencent Cloud publishes, which differ in the headers they sign.
    #[test]
    fn the_published_vectors() {
        let timestamp = Timestamp::from_second(1_551_113_065).unwrap();
        let date = date(timestamp);
        assert_eq!(date, "2019-02-25");
        let scope = Scope { date: &date, service: "cvm" };
        let mut request = Signable {
            method: "POST",
            query: "",
            headers: vec![
                ("Content-Type", "application/json; charset=utf-8"),
                ("Host", "cvm.tencentcloudapi.com"),
            ],
            payload: Payload::Signed(BODY),
        };
        assert_eq!(
            hash(request.canonical().as_bytes()),
            "5ffe6a04c0664d6b969fab9a13bdab201d63ee709638e2749d62a09ca18d7031"
        );
        assert_eq!(
            sign(
                "Gu5t9xGARNpq86cd98joQYCN3EXAMPLE",
                &scope,
                &request.string_to_sign(timestamp, &scope)
            ),
            "72e494ea809ad7a8c8f7a4507b9bddcbaa8e581f516e8da2f66e2c5a96525168"
        );

        request.headers.push(("X-TC-Action", "DescribeInstances"));
        assert_eq!(
            hash(request.canonical().as_bytes()),
            "7019a55be8395899b900fb5564e4200d984910f34794a27cb3fb7d10ff6a1e84"
        );
        assert_eq!(
            sign(&"*".repeat(32), &scope, &request.string_to_sign(timestamp, &scope)),
            "10b1a37a7301a02ca19a647ad722d5e43b4b3cff309d421d85b46093f6ab6c4f"
        );
    }

    #[test]
    fn hexadecimal_digits_are_read_back() {
        assert_eq!(unhex("00ff7A"), Some(vec![0, 255, 0x7a]));
        assert_eq!(unhex("0"), None);
        assert_eq!(unhex("0g"), None);
        assert_eq!(unhex("é"), None);
    }
}
