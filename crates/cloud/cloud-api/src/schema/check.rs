//! Checks parameters against the schema.

use serde_json::Value;

use super::{MemberKind, Object, Service};
use crate::wire::error::{ApiError, ErrorCode};

impl Service {
    /// Checks an object's members against the schema. A member that is `null` counts as absent.
    ///
    /// # Errors
    ///
    /// Returns `UnknownParameter` for a member that the schema lacks, `MissingParameter` for a
    /// required member that is absent, and `InvalidParameter` for a value of another type. The
    /// message names the member, such as `Targets.0.Port`.
    pub fn check(&self, object: &str, value: &Value) -> Result<(), ApiError> {
        self.check_object(object, value, "")
    }

    fn check_object(&self, name: &str, value: &Value, path: &str) -> Result<(), ApiError> {
        let Value::Object(members) = value else {
            return Err(wrong_type(path, "an object", value));
        };
        let object = self.objects.get(name).unwrap_or(const { &Object { members: Vec::new() } });
        for (member, value) in members {
            let path = join(path, member);
            let known = object.member(member).ok_or_else(|| {
                let message = format!("the parameter `{path}` is not recognized");
                ApiError::new(ErrorCode::UnknownParameter, message)
            })?;
            if !value.is_null() {
                self.check_value(&known.kind, value, &path)?;
            }
        }
        for member in object.members.iter().filter(|member| member.required) {
            if members.get(&member.name).is_none_or(Value::is_null) {
                let path = join(path, &member.name);
                let message = format!("the parameter `{path}` is missing");
                return Err(ApiError::new(ErrorCode::MissingParameter, message));
            }
        }
        Ok(())
    }

    fn check_value(&self, kind: &MemberKind, value: &Value, path: &str) -> Result<(), ApiError> {
        let (holds, expected) = match kind {
            MemberKind::Object(name) => return self.check_object(name, value, path),
            MemberKind::List(item) => {
                let Value::Array(items) = value else {
                    return Err(wrong_type(path, "a list", value));
                };
                for (index, value) in items.iter().enumerate() {
                    self.check_value(item, value, &join(path, &index.to_string()))?;
                }
                return Ok(());
            }
            MemberKind::String => (value.is_string(), "a string"),
            MemberKind::Integer => (value.is_i64(), "an integer"),
            MemberKind::Unsigned => (value.is_u64(), "an unsigned integer"),
            MemberKind::Boolean => (value.is_boolean(), "a boolean"),
            MemberKind::Float => (value.is_number(), "a number"),
        };
        if holds { Ok(()) } else { Err(wrong_type(path, expected, value)) }
    }
}

fn join(path: &str, member: &str) -> String {
    if path.is_empty() { member.to_owned() } else { format!("{path}.{member}") }
}

fn wrong_type(path: &str, expected: &str, value: &Value) -> ApiError {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a fraction",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    let subject = match path {
        "" => "the request".to_owned(),
        _ => format!("the parameter `{path}`"),
    };
    let message = format!("{subject} has to be {expected}, found {found}");
    ApiError::new(ErrorCode::InvalidParameter, message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::services;
    use super::*;

    fn error(action: &str, parameters: &Value) -> Option<(ErrorCode, String)> {
        let clb = &services()[0];
        let request = clb.request(action).unwrap();
        clb.check(request, parameters).err().map(|error| (error.code, error.message))
    }

    #[test]
    fn what_the_schema_has_passes() {
        let rule = json!({ "Url": "/", "HealthCheck": { "SourceIpType": 1, "HttpCode": null } });
        let request = json!({ "LoadBalancerId": "lb-1", "ListenerId": "lbl-1", "Rules": [rule] });
        assert_eq!(error("CreateRule", &request), None);
    }

    #[test]
    fn each_departure_has_its_code_and_names_the_member() {
        let base = json!({ "LoadBalancerId": "lb-1", "ListenerId": "lbl-1" });
        let with = |name: &str, value: Value| {
            let mut parameters = base.clone();
            parameters[name] = value;
            error("RegisterTargets", &parameters).unwrap()
        };
        assert_eq!(
            error("RegisterTargets", &base).unwrap(),
            (ErrorCode::MissingParameter, "the parameter `Targets` is missing".to_owned())
        );
        assert_eq!(
            with("Targets", json!([{ "EniIp": "10.0.0.1" }])),
            (ErrorCode::MissingParameter, "the parameter `Targets.0.Port` is missing".to_owned())
        );
        assert_eq!(
            with("Target", json!([])),
            (ErrorCode::UnknownParameter, "the parameter `Target` is not recognized".to_owned())
        );
        assert_eq!(
            with("Targets", json!([{ "Port": "80" }])),
            (
                ErrorCode::InvalidParameter,
                "the parameter `Targets.0.Port` has to be an integer, found a string".to_owned()
            )
        );
        assert_eq!(
            with("Targets", json!({})),
            (
                ErrorCode::InvalidParameter,
                "the parameter `Targets` has to be a list, found an object".to_owned()
            )
        );
        assert_eq!(
            error("RegisterTargets", &json!([])).unwrap(),
            (
                ErrorCode::InvalidParameter,
                "the request has to be an object, found a list".to_owned()
            )
        );
    }
}
