//! Reads YAML scalars as kubectl reads them.

use std::borrow::Cow;

use base64::engine::general_purpose::{GeneralPurpose, PAD};
use base64::{Engine as _, alphabet};
use serde_json::Number;

use super::Value;

const TRUE: [&str; 11] = ["true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y"];
const FALSE: [&str; 11] =
    ["false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N"];

/// The length of the longest word of [`TRUE`] and [`FALSE`].
const LONGEST: usize = 5;

/// The tag of a scalar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tagged<'a> {
    Not,
    /// A tag of YAML itself: `str`.
    Core(Cow<'a, str>),
    Other,
}

/// Returns the truth value of a boolean's word.
pub fn truth(word: &str) -> bool {
    TRUE.contains(&word)
}

/// Returns the value of a scalar with its tag.
///
/// # Errors
/// Returns an error if the scalar is invalid for its tag.
pub(super) fn read<'a>(
    text: Cow<'a, str>,
    is_plain: bool,
    tag: &Tagged<'_>,
) -> Result<Value<'a>, String> {
    let core = match tag {
        Tagged::Not if is_plain => return finite(plain(text)),
        Tagged::Not | Tagged::Other => return Ok(Value::String(text)),
        Tagged::Core(core) => &**core,
    };
    let described = || format!("{:?} is not a !!{core}", super::shorten(&text));
    let value = match core {
        // Bytes that are not UTF-8 are replaced.
        "binary" => {
            let bytes = from_base64(&text).ok_or_else(described)?;
            Value::String(String::from_utf8_lossy(&bytes).into_owned().into())
        }
        "null" | "bool" | "int" | "float" | "timestamp" => match (core, plain(text.clone())) {
            ("null", Value::Null) => Value::Null,
            ("bool", value @ Value::Bool(_)) => value,
            ("int", Value::Number(_)) if integer_text(&text).is_none() => return Err(described()),
            ("int" | "float", value @ Value::Number(_)) => value,
            ("timestamp", value @ Value::String(_)) => value,
            _ => return Err(described()),
        },
        _ => Value::String(text),
    };
    finite(value)
}

fn finite(value: Value<'_>) -> Result<Value<'_>, String> {
    match &value {
        Value::Number(text) if text.ends_with(['f', 'F', 'n', 'N']) && text.contains('.') => {
            Err(format!("{text} is a number that JSON does not have: kubectl refuses it"))
        }
        _ => Ok(value),
    }
}

/// Reads a plain (unquoted) scalar: null, a boolean (`yes` and `on` too), a number or a string.
pub(super) fn plain(text: Cow<'_, str>) -> Value<'_> {
    match &*text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        word if word.len() <= LONGEST && (TRUE.contains(&word) || FALSE.contains(&word)) => {
            Value::Bool(text)
        }
        other if is_number(other) => Value::Number(text),
        _ => Value::String(text),
    }
}

fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    match unsigned.as_bytes().first() {
        Some(b'0'..=b'9') => {}
        Some(b'_') if unsigned.len() < text.len() => {}
        Some(b'.') => {
            let word = unsigned.get(1..).unwrap_or_default();
            let infinite = matches!(word, "inf" | "Inf" | "INF");
            let none = matches!(word, "nan" | "NaN" | "NAN") && unsigned.len() == text.len();
            if infinite || none {
                return true;
            }
        }
        _ => return false,
    }
    // Only a text that begins with a digit or a sign may have underscores.
    let clean = if text.starts_with('.') { Cow::Borrowed(text) } else { without_underscores(text) };
    integer_text(&clean).is_some()
        || (is_decimal(&clean) && clean.parse().is_ok_and(f64::is_finite))
}

fn without_underscores(text: &str) -> Cow<'_, str> {
    if text.contains('_') { text.replace('_', "").into() } else { text.into() }
}

/// Returns whether a text consists of digits with at most one point, and an optional exponent.
fn is_decimal(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (number, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, Some(exponent)),
        None => (unsigned, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let number = match number.split_once('.') {
        Some(("", after)) => !after.is_empty() && digits(after),
        Some((before, after)) => digits(before) && digits(after),
        None => !number.is_empty() && digits(number),
    };
    let exponent = exponent.is_none_or(|text| {
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        !unsigned.is_empty() && digits(unsigned)
    });
    number && exponent
}

/// Parses a whole number of 64 bits in any notation of YAML 1.1: `0x`, `0o` and `0b`, and octal
/// with a leading zero.
fn integer_text(text: &str) -> Option<i128> {
    let text = without_underscores(text);
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(&text)),
    };
    let (digits, radix) = match digits.get(..2) {
        Some("0x" | "0X") => (&digits[2..], 16),
        Some("0o" | "0O") => (&digits[2..], 8),
        Some("0b" | "0B") => (&digits[2..], 2),
        Some(two) if two.starts_with('0') => (&digits[1..], 8),
        _ => (digits, 10),
    };
    // `from_str_radix` would accept a second sign.
    if !digits.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    let number = sign * i128::from_str_radix(digits, radix).ok()?;
    // A number with a plus sign is limited to the range of `i64`.
    let most = if text.starts_with('+') { i128::from(i64::MAX) } else { i128::from(u64::MAX) };
    (i128::from(i64::MIN)..=most).contains(&number).then_some(number)
}

/// Returns a number as JSON has it. `None` if JSON has no such number.
pub(super) fn json_number(text: &str) -> Option<Number> {
    let whole = integer(text).map(Number::from);
    let large = || u64::try_from(integer_text(text)?).ok().map(Number::from);
    let real = || Number::from_f64(without_underscores(text).parse().ok()?);
    whole.or_else(large).or_else(real)
}

/// Parses a whole number in any notation of YAML.
pub fn integer(text: &str) -> Option<i64> {
    if let Some(whole) = integer_text(text) {
        return i64::try_from(whole).ok();
    }
    // `80.0` and `8e1` are whole numbers too.
    let clean = without_underscores(text);
    let number: f64 = clean.parse().ok().filter(|_| is_decimal(&clean))?;
    (number.fract() == 0.0 && number.abs() < 1e15).then_some(number as i64)
}

/// Returns the text of a number that is used as a key: `0x10` is `16`. `None` if kubectl has none.
pub(super) fn key_of_number(text: &str) -> Option<String> {
    if let Some(whole) = integer_text(text) {
        return i64::try_from(whole).ok().map(|whole| whole.to_string());
    }
    let number: f64 = without_underscores(text).parse().ok()?;
    Some(shortest(number as f32))
}

/// Returns a number with as few digits as distinguish it from other `f32` values, with an exponent
/// if the number is small or large.
fn shortest(number: f32) -> String {
    if number.is_infinite() {
        return if number > 0.0 { ".inf".into() } else { "-.inf".into() };
    }
    let written = format!("{number:e}");
    let Some((digits, exponent)) = written.split_once('e') else { return written };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    format!("{number}")
}

/// Decodes base64 as Go does, in which kubectl and the API server are written: line breaks are left
/// out, padding is required, and bits that do not fill a byte are dropped.
pub fn from_base64(text: &str) -> Option<Vec<u8>> {
    const GO: GeneralPurpose =
        GeneralPurpose::new(&alphabet::STANDARD, PAD.with_decode_allow_trailing_bits(true));
    GO.decode(text.replace(['\n', '\r'], "")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_read_as_kubernetes_reads_them() {
        for text in ["80", "-1", "0x1F", "0o17", "1.5", "1e3", "0755", "1_000", ".5", ".inf"] {
            assert_eq!(plain(text.into()), Value::Number(text.into()), "{text}");
        }
        for text in
            ["10.0.0.1", "v1.34.4", "a", "1.2.3", "1h", "-", "0x", "12:30", "1-2", "e3", "+"]
        {
            assert_eq!(plain(text.into()), Value::String(text.into()), "{text}");
        }
        for (word, means) in [("yes", true), ("true", true), ("off", false), ("N", false)] {
            assert_eq!(plain(word.into()), Value::Bool(word.into()), "{word}");
            assert_eq!(truth(word), means, "{word}");
        }
        assert_eq!(plain("~".into()), Value::Null);
    }

    #[test]
    fn integers() {
        for (text, number) in [
            ("80", 80),
            ("-1", -1),
            ("0x50", 80),
            ("0o17", 15),
            ("0755", 493),
            ("8e1", 80),
            ("80.0", 80),
        ] {
            assert_eq!(integer(text), Some(number), "{text}");
        }
        for text in ["", "1.5", "x", "--1", "0x", "99999999999999999999"] {
            assert_eq!(integer(text), None, "{text}");
        }
    }

    #[test]
    fn base64() {
        for (text, plain) in [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg==", "foob"),
            ("Zm\r\n9v\n", "foo"),
            ("Zh==", "f"),
        ] {
            assert_eq!(from_base64(text).unwrap(), plain.as_bytes(), "{text}");
        }
        for text in ["Zm-v", "Zg", "Zg=", "Z===", "Zg==Zg==", " Zm9v"] {
            assert_eq!(from_base64(text), None, "{text}");
        }
    }
}
