//! The path by which a request's rule is found, and with which the request is forwarded.
//!
//! One resource has many paths: a target may accept `//admin`, `/x/../admin`, `/%61dmin` and
//! `/admin;x` as `/admin`. Rules compare characters, so each of these could be served by a rule
//! that is not meant for it.
//!
//! # Guarantees
//! With [`PathNormalization::Merge`] and [`PathNormalization::Reject`]:
//! - The path that is forwarded is the one by which the rule was found.
//! - The path is in its normal form ([`normal`]): no empty and no dot segments, no letter or digit
//!   as `%XX`, hexadecimal digits in upper case.
//! - The rule is the same for every reading of the path: decoded once or twice, with `\` as `/`,
//!   without the part after `;` in a segment. If it is not, the request is refused.
//! - A path without any of these forms costs one check of each of its bytes.
//!
//! # Assumptions
//! - Targets distinguish upper case from lower case. A rule is not an access control.

use std::borrow::Cow;

use thiserror::Error;
use uturn_model::lb::PathNormalization;

/// The number of times that a target may decode a path.
const DECODED: usize = 2;

/// The path of a request, and the index of its rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routed<'p> {
    /// The path with its query, in the form in which it is forwarded.
    pub path: Cow<'p, str>,
    /// The index of the rule in the listener's list, if there is a rule.
    pub rule: Option<usize>,
}

/// The reason why a path is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RefusedPath {
    /// A `%` without two hexadecimal digits.
    #[error("the path has a % without two hexadecimal digits")]
    Encoding,
    /// A control character as `%XX`.
    #[error("the path has a control character")]
    Control,
    /// An overlong encoding of a character, such as `%C0%AF` for `/`.
    #[error("the path has a character in more bytes than UTF-8 allows")]
    Overlong,
    /// A path that is not in its normal form.
    #[error("the path is not in its normal form")]
    NotNormal,
    /// A path that a target may read as a path of another rule.
    #[error("a target may read the path as one that another rule is for")]
    Ambiguous,
}

/// Finds the rule for a path with its query. `position` returns the index of the rule for a path.
///
/// # Errors
/// Returns an error if the path is refused.
pub fn route(
    how: PathNormalization,
    sent: &str,
    position: impl Fn(&str) -> Option<usize>,
) -> Result<Routed<'_>, RefusedPath> {
    let (path, query) = sent.split_at(sent.find(['?', '#']).unwrap_or(sent.len()));
    if how == PathNormalization::Off || is_plain(path) {
        return Ok(Routed { path: Cow::Borrowed(sent), rule: position(path) });
    }
    let own = normal(path)?;
    if how == PathNormalization::Reject
        && (!own.eq_ignore_ascii_case(path) || !has_same_letters(&own, path) || is_doubtful(&own))
    {
        return Err(RefusedPath::NotNormal);
    }
    let rule = position(&own);
    for reading in readings(&own)? {
        if position(&reading) != rule {
            return Err(RefusedPath::Ambiguous);
        }
    }
    let path = if own == path { Cow::Borrowed(sent) } else { Cow::Owned(own + query) };
    Ok(Routed { path, rule })
}

/// Returns the normal form of a path without a query (RFC 3986, section 6.2.2): letters, digits and
/// `-._~` unencoded, other characters as they were sent, hexadecimal digits in upper case, no dot
/// segments; and no empty segments.
///
/// # Errors
/// Returns an error if the path has no normal form, because its decoded bytes are not text.
pub fn normal(path: &str) -> Result<String, RefusedPath> {
    let mut own = Vec::with_capacity(path.len());
    let mut decoded = Vec::with_capacity(path.len());
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        let value = match byte {
            b'%' => {
                let value = pair(&mut bytes).ok_or(RefusedPath::Encoding)?;
                push_encoded(&mut own, value);
                value
            }
            _ if byte.is_ascii() => {
                own.push(byte);
                byte
            }
            _ => {
                push_encoded(&mut own, byte);
                byte
            }
        };
        decoded.push(value);
    }
    check_decoded(&decoded)?;
    Ok(without_dots(&String::from_utf8_lossy(&own)))
}

/// Returns whether a path is in its normal form and has only one reading, as most paths do.
fn is_plain(path: &str) -> bool {
    let mut before = 0;
    path.bytes().all(|byte| {
        let is_plain = match byte {
            b'%' | b'\\' | b';' => false,
            b'/' | b'.' => before != b'/',
            _ => byte.is_ascii_graphic(),
        };
        before = byte;
        is_plain
    })
}

/// Returns whether two paths that differ only in the case of letters differ in hexadecimal digits
/// only.
fn has_same_letters(own: &str, sent: &str) -> bool {
    let mut digits = 0;
    own.bytes().zip(sent.bytes()).all(|(own, sent)| {
        let is_digit = digits > 0;
        digits = if own == b'%' { 2 } else { digits.max(1) - 1 };
        own == sent || is_digit
    })
}

/// Returns whether a path in its normal form has parts that targets read in different ways: an
/// encoded slash or backslash, a backslash, an encoded `%` that begins another encoding, or a dot
/// segment before `;`.
fn is_doubtful(own: &str) -> bool {
    let encodes_again = |rest: &str| pair(&mut rest.bytes()).is_some();
    own.contains('\\')
        || own.match_indices('%').any(|(at, _)| match own.get(at + 1..at + 3) {
            Some("2F" | "5C") => true,
            Some("25") => own.get(at + 3..).is_some_and(encodes_again),
            _ => false,
        })
        || own.split('/').any(|segment| matches!(segment.split(';').next(), Some("." | "..")))
}

/// Returns the other paths as which a target may read a path in its normal form.
///
/// # Errors
/// Returns an error if one of these paths is not text.
fn readings(own: &str) -> Result<Vec<String>, RefusedPath> {
    let mut readings: Vec<String> = Vec::new();
    let mut add = |reading: &str| {
        let reading = without_dots(reading);
        if reading != own && !readings.contains(&reading) {
            readings.push(reading);
        }
    };
    let mut decoded = own.to_owned();
    for times in 0..=DECODED {
        if times > 0 {
            let before = std::mem::take(&mut decoded);
            decoded = decode(&before)?;
            if decoded == before {
                break;
            }
        }
        let slashes = decoded.replace('\\', "/");
        for reading in [&decoded, &slashes] {
            add(reading);
            if reading.contains(';') {
                add(&without_parameters(reading));
            }
        }
    }
    Ok(readings)
}

/// Decodes every `%XX` of a path once. Non-ASCII bytes stay encoded.
fn decode(path: &str) -> Result<String, RefusedPath> {
    let mut decoded = Vec::with_capacity(path.len());
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        let mut after = bytes.clone();
        match pair(&mut after).filter(|_| byte == b'%') {
            Some(value) => {
                decoded.push(value);
                bytes = after;
            }
            None => decoded.push(byte),
        }
    }
    check_decoded(&decoded)?;
    let mut text = Vec::with_capacity(decoded.len());
    for byte in decoded {
        if byte.is_ascii() { text.push(byte) } else { push_encoded(&mut text, byte) }
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Refuses control characters and overlong encodings of characters.
fn check_decoded(bytes: &[u8]) -> Result<(), RefusedPath> {
    if bytes.iter().any(u8::is_ascii_control) {
        return Err(RefusedPath::Control);
    }
    let is_overlong = |pair: &[u8]| {
        matches!(
            pair,
            [0xc0 | 0xc1, 0x80..=0xbf]
                | [0xe0, 0x80..=0x9f]
                | [0xf0, 0x80..=0x8f]
                | [0xf8, 0x80..=0x87]
                | [0xfc, 0x80..=0x83]
        )
    };
    if bytes.windows(2).any(is_overlong) { Err(RefusedPath::Overlong) } else { Ok(()) }
}

/// Reads the value of two hexadecimal digits.
fn pair(bytes: &mut impl Iterator<Item = u8>) -> Option<u8> {
    let mut digit = || char::from(bytes.next()?).to_digit(16);
    let (high, low) = (digit()?, digit()?);
    u8::try_from(high << 4 | low).ok()
}

/// Appends a byte in its normal form.
fn push_encoded(path: &mut Vec<u8>, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
        return path.push(byte);
    }
    path.extend([b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
}

/// Removes empty segments and dot segments from a path. `..` at the root stays at the root.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut is_folder = false;
    for segment in path.split('/') {
        is_folder = matches!(segment, "" | "." | "..");
        match segment {
            "" | "." => {}
            ".." => drop(kept.pop()),
            _ => kept.push(segment),
        }
    }
    let mut own = String::with_capacity(path.len());
    for segment in kept {
        own.push('/');
        own.push_str(segment);
    }
    if is_folder || own.is_empty() {
        own.push('/');
    }
    own
}

/// Removes the part after `;` in each segment of a path.
fn without_parameters(path: &str) -> String {
    let names: Vec<&str> =
        path.split('/').map(|segment| segment.split(';').next().unwrap_or_default()).collect();
    names.join("/")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the rule of the tests: `/admin` is the first, everything else the second.
    fn position(path: &str) -> Option<usize> {
        let path = path.split(['?', '#']).next().unwrap_or(path);
        let is_admin = path == "/admin" || path.starts_with("/admin/");
        Some(usize::from(!is_admin))
    }

    #[test]
    fn every_way_to_write_a_path_meets_its_rule_or_is_refused() {
        use PathNormalization::{Merge, Reject};
        use RefusedPath::{Ambiguous, Control, Encoding, NotNormal, Overlong};
        // The path, the path that Merge forwards or the reason why it refuses it, and the result of
        // Reject.
        type Row = (&'static str, Result<&'static str, RefusedPath>, Option<RefusedPath>);
        let rows: &[Row] = &[
            ("/admin", Ok("/admin"), None),
            ("/", Ok("/"), None),
            ("/admin?a=//../%2e", Ok("/admin?a=//../%2e"), None),
            ("/x?next=/admin", Ok("/x?next=/admin"), None),
            ("/.well-known/a.b", Ok("/.well-known/a.b"), None),
            ("/...", Ok("/..."), None),
            ("/a%20b", Ok("/a%20b"), None),
            ("/caf%c3%a9", Ok("/caf%C3%A9"), None),
            ("/caf%E9", Ok("/caf%E9"), None),
            ("/cafe\u{301}", Ok("/cafe%CC%81"), Some(NotNormal)),
            ("//admin", Ok("/admin"), Some(NotNormal)),
            ("///admin//x", Ok("/admin/x"), Some(NotNormal)),
            ("/./admin", Ok("/admin"), Some(NotNormal)),
            ("/x/../admin", Ok("/admin"), Some(NotNormal)),
            ("/x/%2e%2E/admin", Ok("/admin"), Some(NotNormal)),
            ("/../../admin", Ok("/admin"), Some(NotNormal)),
            ("/admin/..", Ok("/"), Some(NotNormal)),
            ("/admin/.", Ok("/admin/"), Some(NotNormal)),
            ("/a/../", Ok("/"), Some(NotNormal)),
            ("/%61dmin", Ok("/admin"), Some(NotNormal)),
            ("/%41dmin", Ok("/Admin"), Some(NotNormal)),
            ("/%7Ea", Ok("/~a"), Some(NotNormal)),
            ("/%7ea", Ok("/~a"), Some(NotNormal)),
            ("/admin%2fx", Err(Ambiguous), Some(NotNormal)),
            ("/%2fadmin", Err(Ambiguous), Some(NotNormal)),
            ("/x/..%2fadmin", Err(Ambiguous), Some(NotNormal)),
            ("/x%2f..%2Fadmin", Err(Ambiguous), Some(NotNormal)),
            ("/a%2fb", Ok("/a%2Fb"), Some(NotNormal)),
            ("/%5cadmin", Err(Ambiguous), Some(NotNormal)),
            ("/\\admin", Err(Ambiguous), Some(NotNormal)),
            ("/x/..\\admin", Err(Ambiguous), Some(NotNormal)),
            ("/x\\..\\..\\admin", Err(Ambiguous), Some(NotNormal)),
            ("/x\\y", Ok("/x\\y"), Some(NotNormal)),
            ("/%2561dmin", Err(Ambiguous), Some(NotNormal)),
            ("/x/%252e%252e/admin", Err(Ambiguous), Some(NotNormal)),
            ("/x/%252e%252e%252fadmin", Err(Ambiguous), Some(NotNormal)),
            ("/100%25", Ok("/100%25"), None),
            ("/a%2520b", Ok("/a%2520b"), Some(NotNormal)),
            ("/admin;x=1", Err(Ambiguous), Some(Ambiguous)),
            ("/admin%3bx", Err(Ambiguous), Some(Ambiguous)),
            ("/x/..;/admin", Err(Ambiguous), Some(NotNormal)),
            ("/;/admin", Err(Ambiguous), Some(Ambiguous)),
            ("/page;session=1/x", Ok("/page;session=1/x"), None),
            ("/admin%3fx", Err(Ambiguous), Some(Ambiguous)),
            ("/admin%23x", Err(Ambiguous), Some(Ambiguous)),
            ("/admin%00", Err(Control), Some(Control)),
            ("/admin%0d%0a", Err(Control), Some(Control)),
            ("/admin%7f", Err(Control), Some(Control)),
            ("/admin%2500", Err(Control), Some(NotNormal)),
            ("/%c0%afadmin", Err(Overlong), Some(Overlong)),
            ("/x/%c0%ae%c0%ae/admin", Err(Overlong), Some(Overlong)),
            ("/%e0%80%afadmin", Err(Overlong), Some(Overlong)),
            ("/%f0%80%80%afadmin", Err(Overlong), Some(Overlong)),
            ("/%fc%80%80%80%80%afadmin", Err(Overlong), Some(Overlong)),
            ("/%25c0%25afadmin", Err(Overlong), Some(NotNormal)),
            ("/%", Err(Encoding), Some(Encoding)),
            ("/%6", Err(Encoding), Some(Encoding)),
            ("/%zz", Err(Encoding), Some(Encoding)),
            ("/%u002fadmin", Err(Encoding), Some(Encoding)),
        ];
        for (sent, merged, rejected) in rows {
            let found = route(Merge, sent, position);
            let expected = merged.map(|path| Routed { path: path.into(), rule: position(path) });
            assert_eq!(found, expected, "{sent}");
            let found = route(Reject, sent, position);
            assert_eq!(found.err(), *rejected, "{sent}");
            let raw = Routed { path: (*sent).into(), rule: position(sent) };
            assert_eq!(route(PathNormalization::Off, sent, position), Ok(raw));
        }
    }

    /// Generates paths from parts that servers read in different ways.
    fn path() -> impl Strategy<Value = String> {
        let part = prop::sample::select(vec![
            "/", "//", ".", "..", "%2e", "%2E", "%2f", "%252F", "%5C", "\\", ";", "%3b", "%",
            "%25", "admin", "%61", "a", "x", "\u{e9}", "%C3%A9", "%c0%af", "%00", "?",
        ]);
        prop::collection::vec(part, 0..9).prop_map(|parts| format!("/{}", parts.concat()))
    }

    /// Returns the path as a careless server reads it.
    fn read_by_target(path: &str, times: usize, slashes: bool, cuts: bool) -> String {
        let mut path = path.split('?').next().unwrap().to_owned();
        for _ in 0..times {
            path = decode(&path).unwrap_or_default();
        }
        if slashes {
            path = path.replace('\\', "/");
        }
        without_dots(&if cuts { without_parameters(&path) } else { path })
    }

    proptest! {
        #[test]
        fn what_is_forwarded_has_one_rule_however_it_is_read(
            sent in path(), times in 0usize..=2, slashes: bool, cuts: bool,
        ) {
            if let Ok(routed) = route(PathNormalization::Merge, &sent, position) {
                let read = read_by_target(&routed.path, times, slashes, cuts);
                prop_assert_eq!(position(&read), routed.rule, "{} as {}", sent, read);
            }
        }

        #[test]
        fn a_normal_form_is_its_own(sent in path()) {
            let path = sent.split('?').next().unwrap();
            if let Ok(own) = normal(path) {
                prop_assert_eq!(normal(&own), Ok(own.clone()));
                prop_assert!(!own.contains("//"));
            }
        }

        #[test]
        fn no_text_makes_it_panic(sent: String) {
            let _ = route(PathNormalization::Reject, &sent, position);
            let _ = route(PathNormalization::Merge, &sent, position);
        }

        #[test]
        fn a_plain_path_is_in_its_normal_form(sent in "(/[a-c.]{0,3}){1,4}") {
            if is_plain(&sent) {
                prop_assert_eq!(normal(&sent), Ok(sent));
            }
        }
    }
}
