//! Parses the parameters of a GET: a query string in which lists and objects are flattened
//! (`Rules.0.HealthCheck.TimeOut=2`) and every value is text.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

use super::{MemberKind, Service};
use crate::wire::error::{ApiError, ErrorCode};

/// The most parts of a parameter's name. Published names have less than half as many.
const MAX_DEPTH: usize = 32;

/// Returns the parameters of a query string as JSON, with each value in its type from the schema.
/// Members that the schema lacks stay texts, which [`Service::check`] refuses.
///
/// # Errors
///
/// Returns `InvalidParameter` for a name that occurs twice or contradicts another, for a list with
/// a gap, and for a text that is not of its member's type.
pub fn parameters(service: &Service, object: &str, query: &str) -> Result<Value, ApiError> {
    let mut root = Node::default();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decode(name)?;
        root.insert(&name, decode(value)?)?;
    }
    typed_object(service, object, root, "")
}

/// A part of a flattened parameter: a text, or parts with names.
#[derive(Debug, Default)]
struct Node {
    text: Option<String>,
    parts: BTreeMap<String, Node>,
}

impl Node {
    fn insert(&mut self, name: &str, text: String) -> Result<(), ApiError> {
        let mut node = self;
        if name.split('.').count() > MAX_DEPTH {
            let start: String = name.chars().take(40).collect();
            let message = format!("the parameter `{start}…` has more than {MAX_DEPTH} parts");
            return Err(invalid(message));
        }
        for part in name.split('.') {
            if node.text.is_some() {
                return Err(contradiction(name));
            }
            node = node.parts.entry(part.to_owned()).or_default();
        }
        if !node.parts.is_empty() || node.text.replace(text).is_some() {
            return Err(contradiction(name));
        }
        Ok(())
    }
}

fn typed_object(
    service: &Service,
    object: &str,
    node: Node,
    path: &str,
) -> Result<Value, ApiError> {
    if node.text.is_some() {
        return Err(invalid(format!("the parameter `{path}` has to be an object, found a string")));
    }
    let members = service.objects.get(object);
    let typed = node.parts.into_iter().map(|(name, node)| {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let kind = members.and_then(|object| object.member(&name)).map(|member| &member.kind);
        let value = match kind {
            Some(kind) => typed(service, kind, node, &path)?,
            None => Value::String(node.text.unwrap_or_default()),
        };
        Ok((name, value))
    });
    Ok(Value::Object(typed.collect::<Result<Map<_, _>, ApiError>>()?))
}

fn typed(service: &Service, kind: &MemberKind, node: Node, path: &str) -> Result<Value, ApiError> {
    match kind {
        MemberKind::Object(object) => return typed_object(service, object, node, path),
        MemberKind::List(item) => return typed_list(service, item, node, path),
        _ => {}
    }
    let text = node
        .text
        .ok_or_else(|| invalid(format!("the parameter `{path}` has no members of its own")))?;
    let value = match kind {
        MemberKind::Integer => text.parse().ok().map(|number: i64| Value::Number(number.into())),
        MemberKind::Unsigned => text.parse().ok().map(|number: u64| Value::Number(number.into())),
        MemberKind::Boolean => text.to_ascii_lowercase().parse().ok().map(Value::Bool),
        MemberKind::Float => text.parse().ok().and_then(Number::from_f64).map(Value::Number),
        _ => return Ok(Value::String(text)),
    };
    value.ok_or_else(|| {
        let expected = match kind {
            MemberKind::Boolean => "true or false",
            MemberKind::Float => "a number",
            _ => "an integer",
        };
        invalid(format!("the parameter `{path}` has to be {expected}, found {text:?}"))
    })
}

fn typed_list(
    service: &Service,
    item: &MemberKind,
    node: Node,
    path: &str,
) -> Result<Value, ApiError> {
    if node.text.is_some() {
        return Err(invalid(format!("the parameter `{path}` has to be a list: `{path}.0` …")));
    }
    let mut parts = BTreeMap::new();
    for (name, node) in node.parts {
        // `00` would otherwise mean the same item as `0`.
        let index = name.parse().ok().filter(|index: &usize| index.to_string() == name);
        let index = index.ok_or_else(|| {
            invalid(format!("the parameter `{path}.{name}` has to be numbered: `{path}.0` …"))
        })?;
        parts.insert(index, node);
    }
    let items = parts.into_iter().enumerate().map(|(position, (index, node))| {
        if position != index {
            return Err(invalid(format!("the parameter `{path}.{position}` is missing")));
        }
        typed(service, item, node, &format!("{path}.{index}"))
    });
    Ok(Value::Array(items.collect::<Result<_, _>>()?))
}

/// Decodes percent-encoded text, in which `+` is a space, as in forms.
fn decode(text: &str) -> Result<String, ApiError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                let value = digit().and_then(|high| Some(16 * high + digit()?));
                let value = value.and_then(|value| u8::try_from(value).ok());
                bytes.push(value.ok_or_else(|| {
                    invalid(format!("{text:?} has a % that two hexadecimal digits do not follow"))
                })?);
            }
            _ => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).map_err(|_| invalid(format!("{text:?} is not UTF-8")))
}

fn contradiction(name: &str) -> ApiError {
    invalid(format!("the parameter `{name}` stands twice, or beside parts of itself"))
}

fn invalid(message: String) -> ApiError {
    ApiError::new(ErrorCode::InvalidParameter, message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::services;

    fn read(query: &str) -> Result<Value, String> {
        let clb = &services()[0];
        let request = clb.request("CreateRule").unwrap();
        parameters(clb, request, query).map_err(|error| error.message)
    }

    #[test]
    fn values_get_the_types_of_the_schema() {
        let query = "LoadBalancerId=lb-1&Rules.0.Url=%2Fa%20b&Rules.1.Url=/&\
                     Rules.1.HealthCheck.TimeOut=3&Rules.1.Http2=true";
        assert_eq!(
            read(query).unwrap(),
            json!({
                "LoadBalancerId": "lb-1",
                "Rules": [
                    { "Url": "/a b" },
                    { "Url": "/", "HealthCheck": { "TimeOut": 3 }, "Http2": true },
                ],
            })
        );
    }

    #[test]
    fn unknown_members_are_left_for_the_check() {
        assert_eq!(read("Rule=1").unwrap(), json!({ "Rule": "1" }));
    }

    #[test]
    fn contradictions_gaps_and_other_types_are_named() {
        for (query, message) in [
            ("Rules.1.Url=/", "the parameter `Rules.0` is missing"),
            ("Rules.00.Url=/", "`Rules.00` has to be numbered"),
            ("Rules.a.Url=/", "`Rules.a` has to be numbered"),
            ("Rules=1", "`Rules` has to be a list"),
            ("Rules.0=1", "`Rules.0` has to be an object"),
            ("Rules.0.Url=/&Rules.0.Url=/", "`Rules.0.Url` stands twice"),
            ("Rules.0.Url=/&Rules.0=1", "`Rules.0` stands twice"),
            ("LoadBalancerId=a&LoadBalancerId.b=c", "`LoadBalancerId.b` stands twice"),
            ("LoadBalancerId.b=c", "`LoadBalancerId` has no members"),
            ("Rules.0.HealthCheck.TimeOut=2s", "has to be an integer, found \"2s\""),
            ("LoadBalancerId=%4", "two hexadecimal digits"),
            ("LoadBalancerId=%ff", "is not UTF-8"),
        ] {
            let found = read(query).unwrap_err();
            assert!(found.contains(message), "{query}: {found}");
        }
    }

    #[test]
    fn a_name_with_very_many_parts_is_refused() {
        let name = vec!["a"; MAX_DEPTH].join(".");
        assert!(read(&name).is_ok());
        let message = read(&format!("{}=1", vec!["a"; 16_000].join("."))).unwrap_err();
        assert!(message.contains("has more than 32 parts") && message.len() < 200, "{message}");
    }
}
