//! Reads a schema file.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Member, MemberKind, Object, Service};

/// A schema file in its JSON form. A member's type is written `string`, `int`, `uint`, `bool`,
/// `float`, the name of an object, or one of these in brackets for a list; a `!` after it marks a
/// required member of requests.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    service: String,
    version: String,
    actions: Vec<String>,
    objects: Map<String, Value>,
}

/// Reads a service.
///
/// # Errors
///
/// Returns the error in the file: JSON of another form, a type that is not text, an unknown object,
/// or an action without its request or answer.
pub(super) fn service(text: &str) -> Result<Service, String> {
    let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let objects = file.objects.into_iter().map(|(name, members)| {
        let Value::Object(members) = members else {
            return Err(format!("{name} is not an object"));
        };
        let members = members.into_iter().map(|(member, kind)| match kind {
            Value::String(kind) => Ok(read_member(member, &kind)),
            _ => Err(format!("{name}.{member} has no type")),
        });
        let members = members.collect::<Result<_, String>>()?;
        Ok((name, Object { members }))
    });
    let service = Service {
        name: file.service,
        version: file.version,
        actions: file.actions.into_iter().collect(),
        objects: objects.collect::<Result<_, String>>()?,
    };
    all_present(&service)?;
    Ok(service)
}

fn read_member(name: String, kind: &str) -> Member {
    let (kind, required) = match kind.strip_suffix('!') {
        Some(kind) => (kind, true),
        None => (kind, false),
    };
    Member { name, kind: read_kind(kind), required }
}

fn read_kind(text: &str) -> MemberKind {
    match text {
        "string" => MemberKind::String,
        "int" => MemberKind::Integer,
        "uint" => MemberKind::Unsigned,
        "bool" => MemberKind::Boolean,
        "float" => MemberKind::Float,
        _ => match text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
            Some(item) => MemberKind::List(Box::new(read_kind(item))),
            None => MemberKind::Object(text.to_owned()),
        },
    }
}

fn all_present(service: &Service) -> Result<(), String> {
    for action in &service.actions {
        if service.request(action).is_none() || service.response(action).is_none() {
            return Err(format!("{action} lacks its request or its answer"));
        }
    }
    let members = service.objects.values().flat_map(|object| &object.members);
    for member in members {
        if let Some(name) = object_in(&member.kind)
            && !service.objects.contains_key(name)
        {
            return Err(format!("{} has a type that is not there: {name}", member.name));
        }
    }
    Ok(())
}

fn object_in(kind: &MemberKind) -> Option<&str> {
    match kind {
        MemberKind::Object(name) => Some(name),
        MemberKind::List(item) => object_in(item),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::services;

    #[test]
    fn every_service_is_read() {
        let actions: usize = services().iter().map(|service| service.actions.len()).sum();
        let names: Vec<&str> = services().iter().map(|service| service.name.as_str()).collect();
        assert_eq!(names, ["clb", "cvm", "vpc", "tag", "cam", "ssl", "sts"]);
        assert!(actions > 150, "{actions} actions");
    }
}
