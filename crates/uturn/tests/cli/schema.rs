//! Holds JSON against a JSON schema: the part of draft 7 that the SARIF schema uses. A word
//! that is not known is a fault of the schema, so that nothing passes unlooked at.

use serde_json::Value;

/// Everything that is wrong, each with its place.
pub(crate) fn faults(schema: &Value, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    Check { root: schema }.value(schema, value, "", &mut faults);
    faults
}

struct Check<'s> {
    root: &'s Value,
}

impl Check<'_> {
    fn value(&self, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
        let Some(words) = schema.as_object() else {
            return faults.push(format!("{at}: the schema is no object"));
        };
        for (word, want) in words {
            let is_kept = match word.as_str() {
                "$ref" => {
                    let path = want.as_str().unwrap().strip_prefix('#').unwrap();
                    self.value(self.root.pointer(path).unwrap(), value, at, faults);
                    true
                }
                "type" => match want {
                    Value::Array(some) => some.iter().any(|one| is_type(value, one)),
                    one => is_type(value, one),
                },
                "enum" => want.as_array().unwrap().contains(value),
                "required" => value.as_object().is_none_or(|fields| {
                    want.as_array()
                        .unwrap()
                        .iter()
                        .all(|one| fields.contains_key(one.as_str().unwrap()))
                }),
                "minItems" => {
                    value.as_array().is_none_or(|all| all.len() as u64 >= want.as_u64().unwrap())
                }
                "uniqueItems" => value.as_array().is_none_or(|all| {
                    want != &Value::Bool(true)
                        || all.iter().enumerate().all(|(i, one)| !all[..i].contains(one))
                }),
                "minimum" => value.as_f64().is_none_or(|number| number >= want.as_f64().unwrap()),
                "maximum" => value.as_f64().is_none_or(|number| number <= want.as_f64().unwrap()),
                "anyOf" | "oneOf" => {
                    let fits = |one: &&Value| {
                        let mut inner = Vec::new();
                        self.value(one, value, at, &mut inner);
                        inner.is_empty()
                    };
                    let count = want.as_array().unwrap().iter().filter(fits).count();
                    if word == "anyOf" { count > 0 } else { count == 1 }
                }
                "pattern" => {
                    let pattern = regex_lite::Regex::new(want.as_str().unwrap()).unwrap();
                    value.as_str().is_none_or(|text| pattern.is_match(text))
                }
                "format" => value.as_str().is_none_or(|text| match want.as_str().unwrap() {
                    "uri" => text.contains(':') && is_uri(text),
                    "uri-reference" => is_uri(text),
                    "date-time" => false,
                    other => panic!("format {other} is not known"),
                }),
                "items" => {
                    for (i, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.value(want, item, &format!("{at}/{i}"), faults);
                    }
                    true
                }
                "properties" | "additionalProperties" => {
                    self.field(schema, word, want, value, at, faults);
                    true
                }
                "title" | "description" | "default" | "definitions" | "$schema" | "$id" => true,
                other => panic!("{other} is not known"),
            };
            if !is_kept {
                faults.push(format!("{at}: {word} {want} is not kept by {value}"));
            }
        }
    }

    fn field(
        &self,
        schema: &Value,
        word: &str,
        want: &Value,
        value: &Value,
        at: &str,
        faults: &mut Vec<String>,
    ) {
        for (key, one) in value.as_object().into_iter().flatten() {
            let at = format!("{at}/{key}");
            match (word, schema["properties"].get(key)) {
                ("properties", Some(known)) => self.value(known, one, &at, faults),
                ("additionalProperties", None) if want.is_object() => {
                    self.value(want, one, &at, faults);
                }
                ("additionalProperties", None) if want == &Value::Bool(false) => {
                    faults.push(format!("{at}: there is no such field"));
                }
                _ => {}
            }
        }
    }
}

fn is_type(value: &Value, name: &Value) -> bool {
    match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("type {other} is not known"),
    }
}

fn is_uri(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&b))
}
