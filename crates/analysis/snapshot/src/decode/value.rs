//! Parses single values of documents.

use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;
use uturn_document::{Node, Value, integer, truth};
use uturn_model::{Name, NamespacedName, Port, Protocol, Text};

/// A type that can be parsed from one value of a document.
pub(crate) trait FromNode: Sized {
    /// The description of the type in messages: `a port from 1 to 65535`.
    const EXPECTED: &'static str;
    /// Whether the type is written as text, so that a number or `yes` in its place needs quotes.
    const IS_TEXT: bool = false;

    /// Reads a value.
    ///
    /// # Errors
    /// Returns a description of what was expected, or an empty text for [`Self::EXPECTED`].
    fn from_node(node: &Node<'_>) -> Result<Self, String>;
}

/// Returns the hint for a number or `yes` in place of a text.
pub(super) fn quote_hint<T: FromNode>(node: &Node<'_>) -> Option<String> {
    let quotes = T::IS_TEXT && matches!(node.value, Value::Bool(_) | Value::Number(_));
    quotes.then(|| "put it in quotes: without them YAML does not read it as text".to_owned())
}

impl FromNode for bool {
    const EXPECTED: &'static str = "true or false";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        match &node.value {
            Value::Bool(word) => Ok(truth(word)),
            _ => Err(String::new()),
        }
    }
}

macro_rules! integers {
    ($($type:ty: $expected:literal),*) => {$(
        impl FromNode for $type {
            const EXPECTED: &'static str = $expected;

            fn from_node(node: &Node<'_>) -> Result<Self, String> {
                match &node.value {
                    Value::Number(text) => {
                        integer(text).and_then(|number| number.try_into().ok()).ok_or_else(String::new)
                    }
                    _ => Err(String::new()),
                }
            }
        }
    )*};
}

integers!(
    u8: "a whole number from 0 to 255",
    u16: "a whole number from 0 to 65535",
    u32: "a whole number, zero or more",
    u64: "a whole number, zero or more",
    usize: "a whole number, zero or more"
);

impl FromNode for f64 {
    const EXPECTED: &'static str = "a number";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        match &node.value {
            Value::Number(text) => text.parse().map_err(|_| String::new()),
            _ => Err(String::new()),
        }
    }
}

/// Any text, of any length.
impl FromNode for Text {
    const EXPECTED: &'static str = "a text";
    const IS_TEXT: bool = true;

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        node.as_str().map(Text::from).ok_or_else(String::new)
    }
}

/// A text, even if it reads as a number: `1.30` keeps its zero.
pub(crate) struct Loose(pub(crate) Text);

impl FromNode for Loose {
    const EXPECTED: &'static str = "a text";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        match &node.value {
            Value::String(text) | Value::Number(text) => Ok(Self((&**text).into())),
            _ => Err(String::new()),
        }
    }
}

/// Implements [`FromNode`] for types that parse their text.
macro_rules! parsed {
    ($($type:ty: $is_text:literal $expected:literal),*) => {$(
        impl FromNode for $type {
            const EXPECTED: &'static str = $expected;
            const IS_TEXT: bool = $is_text;

            fn from_node(node: &Node<'_>) -> Result<Self, String> {
                node.as_str().and_then(|text| text.parse().ok()).ok_or_else(String::new)
            }
        }
    )*};
}

pub(crate) use parsed;

parsed!(
    IpAddr: false "an IP address",
    Protocol: false "TCP, UDP or SCTP",
    NamespacedName: false "NAMESPACE/NAME",
    Name: true "a name (lower-case letters, digits, '-' and '.')"
);

impl FromNode for IpNet {
    const EXPECTED: &'static str = "a range such as 10.0.0.0/16";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        let text = node.as_str().map(str::trim);
        // Some fields accept a single address as a range of one address.
        let net = text.and_then(|text| {
            text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
        });
        net.map(|net: Self| net.trunc()).ok_or_else(String::new)
    }
}

impl FromNode for Port {
    const EXPECTED: &'static str = "a port from 1 to 65535";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        u16::from_node(node).ok().and_then(Self::new).ok_or_else(String::new)
    }
}

/// A time such as `4s`, `500ms` or `1m`.
impl FromNode for Duration {
    const EXPECTED: &'static str = "a time such as 4s or 500ms";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        let parse = |text: &str| {
            let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
            let (number, unit) = text.split_at(end);
            let nanos: u128 = match unit {
                "ns" => 1,
                "us" => 1_000,
                "ms" => 1_000_000,
                "s" => 1_000_000_000,
                "m" => 60_000_000_000,
                "h" => 3_600_000_000_000,
                _ => return None,
            };
            if let Ok(whole) = number.parse::<u128>() {
                let all = whole.checked_mul(nanos)?;
                let rest = u32::try_from(all % 1_000_000_000).ok()?;
                return Some(Self::new(u64::try_from(all / 1_000_000_000).ok()?, rest));
            }
            Self::try_from_secs_f64(number.parse::<f64>().ok()? * nanos as f64 / 1e9).ok()
        };
        node.as_str().and_then(parse).ok_or_else(String::new)
    }
}

/// Parses one of a few words.
pub(crate) fn one_of<T: Copy>(node: &Node<'_>, words: &[(&str, T)]) -> Result<T, String> {
    let found = node.as_str().and_then(|text| words.iter().find(|(word, _)| *word == text));
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        match names.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            _ => names.concat(),
        }
    })
}
