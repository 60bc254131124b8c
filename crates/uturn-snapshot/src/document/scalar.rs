//! What a plain YAML scalar means, as Kubernetes reads it.

use std::borrow::Cow;

use super::Value;

const TRUE: [&str; 11] = ["true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y"];
const FALSE: [&str; 11] =
    ["false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N"];

/// What the word of a boolean means.
pub(crate) fn truth(word: &str) -> bool {
    TRUE.contains(&word)
}

/// A plain (unquoted) scalar: null, a boolean (`yes` and `on` too), a number or a string.
pub(super) fn plain(text: Cow<'_, str>) -> Value<'_> {
    match &*text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        word if TRUE.contains(&word) || FALSE.contains(&word) => Value::Bool(text),
        other if is_number(other) => Value::Number(text),
        _ => Value::String(text),
    }
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return false;
    }
    let radix = |prefix: &str, fits: fn(&u8) -> bool| {
        digits.strip_prefix(prefix).is_some_and(|rest| {
            !rest.is_empty() && rest.as_bytes().iter().all(|byte| fits(byte) || *byte == b'_')
        })
    };
    if radix("0x", u8::is_ascii_hexdigit)
        || radix("0o", |byte| (b'0'..=b'7').contains(byte))
        || radix("0b", |byte| matches!(byte, b'0' | b'1'))
    {
        return true;
    }
    if matches!(digits, ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let plain = digits.bytes().all(|byte| {
        byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-' | b'_')
    });
    plain && digits.replace('_', "").parse::<f64>().is_ok()
}

/// A whole number, in any of YAML's ways to write one.
pub(crate) fn integer(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (digits, radix) = match digits.get(..2) {
        Some("0x") => (&digits[2..], 16),
        Some("0o") => (&digits[2..], 8),
        Some("0b") => (&digits[2..], 2),
        Some(two) if two.starts_with('0') && two.as_bytes()[1].is_ascii_digit() => (digits, 8),
        _ => (digits, 10),
    };
    if !digits.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    let clean = if digits.contains('_') { digits.replace('_', "") } else { digits.to_owned() };
    match i64::from_str_radix(&clean, radix) {
        Ok(number) => Some(sign * number),
        // `80.0` and `8e1` are whole numbers too.
        Err(_) if radix == 10 => {
            let number: f64 = clean.parse().ok()?;
            let whole = number.fract() == 0.0 && number.abs() < 1e15;
            whole.then_some(sign * number as i64)
        }
        Err(_) => None,
    }
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
}
